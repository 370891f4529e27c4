"""The program's side of a sandbox: a fork of the warm interpreter, on its way to what it shall run.

Runs inside the sandbox, with the standard library only; see `warden`. Frames on its pipes are `!II`, the
lengths of a JSON header and of a body, then both.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import linecache
import mmap
import os
import resource
import signal
import struct
import sys
import threading
import traceback
import types
from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522
PAGE = os.sysconf("SC_PAGE_SIZE")
CONTROL = 3  # where the program waits for its request
OVERFLOWED = 1  # what the program writes into the shared byte when it dies of MemoryError

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """Raises OSError for a failed C call."""
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")
    return result


def read_exactly(fd: int, count: int) -> bytes:
    """Reads `count` bytes, fewer only at the end of the stream."""
    parts = bytearray()
    while len(parts) < count:
        part = os.read(fd, min(count - len(parts), 1 << 20))
        if not part:
            break
        parts += part
    return bytes(parts)


def receive(fd: int) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None when the host is gone."""
    head = read_exactly(fd, 8)
    if len(head) < 8:
        return None
    header, body = struct.unpack("!II", head)
    return json.loads(read_exactly(fd, header)), read_exactly(fd, body)


def send(fd: int, header: dict[str, Any], body: bytes = b"") -> None:
    """Writes one frame."""
    text = json.dumps(header).encode()
    data = memoryview(struct.pack("!II", len(text), len(body)) + text + body)
    while data:
        data = data[os.write(fd, data) :]


def become(settings: dict[str, Any], streams: tuple[int, int, int], control: int, overflow: mmap.mmap) -> NoReturn:
    """The program: gives up its privileges, waits for what to run, and never returns."""
    status = 125
    try:
        check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
        os.setsid()
        for fd, source in enumerate([os.dup(source) for source in (*streams, control)]):
            os.dup2(source, fd)
        os.closerange(CONTROL + 1, 65536)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if settings["confined"]:
            confine(settings)
        if not os.access(settings["scratch"], os.R_OK | os.W_OK | os.X_OK):  # an earlier call took its rights away
            os.chmod(settings["scratch"], 0o700)
        os.chdir(settings["scratch"])
        received = receive(CONTROL)
        os.close(CONTROL)
        if received is not None:
            request = received[0]
            limit(settings, request["limits"], warm=not request["argv"])
            status = run_argv(request["argv"]) if request["argv"] else run_source(request["source"], overflow)
    except BaseException as error:
        os.write(2, f"sandbox: {error!r}\n".encode())
    finally:
        os._exit(status)


def limit(settings: dict[str, Any], limits: dict[str, Any], warm: bool) -> None:
    """Sets the limits that the kernel keeps."""
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * PAGE if warm else 0
    cpu = -int(-limits["cpu_seconds"] // 1)
    bounds = {
        resource.RLIMIT_AS: (limits["memory_bytes"] + held,) * 2,
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_FSIZE: (limits["file_bytes"],) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    if settings["confined"]:
        bounds[resource.RLIMIT_NOFILE] = (256, 256)
        bounds[resource.RLIMIT_MEMLOCK] = (0, 0)
        bounds[resource.RLIMIT_MSGQUEUE] = (0, 0)
    if settings["count_processes"]:
        bounds[resource.RLIMIT_NPROC] = (limits["processes"] + settings["own_processes"],) * 2
    for kind, (soft, hard) in bounds.items():
        ceiling = resource.getrlimit(kind)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(kind, (soft, hard))


class FilterProgram(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def confine(settings: dict[str, Any]) -> None:
    """Gives up every privilege, for good, and installs the system-call filter."""
    if settings["switch_user"]:
        os.setgroups([])
        os.setresgid(*(settings["uid"],) * 3)
        os.setresuid(*(settings["uid"],) * 3)
    check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl")
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, bytes(24)), "capset")
    check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")  # else its own /proc entries belong to root
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    code = bytes.fromhex(settings["seccomp"])
    program = FilterProgram(len(code) // 8, code)
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0), "seccomp")


def run_argv(argv: list[str]) -> int:
    """Becomes the command; returns as a shell does if there is none."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        return 126 if isinstance(error, PermissionError) else 127


def run_source(source: str, overflow: mmap.mmap) -> int:
    """Runs Python source as `__main__`, as the interpreter would; returns the exit status."""
    name = "<program>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [name]
    sys.path.insert(0, os.getcwd())
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # each call draws its own numbers; `random` does so by itself
    status = 0
    try:
        exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as error:
        status = exit_status(error.code)
    except BaseException as error:
        status = report(error, overflow)
    return finish(status)


def exit_status(code: object) -> int:
    """What `sys.exit(code)` makes of its argument."""
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def report(error: BaseException, overflow: mmap.mmap) -> int:
    """Prints an uncaught exception without the frames of this file."""
    if isinstance(error, MemoryError):
        overflow[0] = OVERFLOWED
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    try:
        sys.stdout.flush()
        traceback.print_exception(type(error), error, frames)
    except MemoryError:
        os.write(2, b"MemoryError\n")
    return 1


def finish(status: int) -> int:
    """Waits for threads, runs exit handlers and flushes, as the interpreter would."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        return status or 120
    return status
