"""The program inside a sandbox: a warm interpreter that forks once per call. Standard library only.

The host hands its source to the interpreter as text; it is never imported there. Three roles:

- the *server* (PID 1 of the sandbox) has done the imports, and serves one request after another;
- the *keeper* (PID 1 of the call's own PID namespace) feeds and watches the program. The program cannot signal
  it, and when it exits the kernel kills every process of the call; the server waits for that;
- the *program*, stripped of privileges, under limits and the system-call filter.

Frames on both pipes: `!II`, lengths of a JSON header and of a body, then both.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import json
import linecache
import mmap
import os
import resource
import select
import signal
import struct
import sys
import threading
import time
import traceback
import types
from typing import Any, NoReturn

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_RDONLY, MS_REC, MS_PRIVATE = 2, 4, 8, 1, 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522
TICK = 0.02  # seconds between looks at the program's memory
PAGE = os.sysconf("SC_PAGE_SIZE")
HOST_GONE = 3  # exit status of a keeper that waited in vain
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


def main() -> None:
    """The server."""
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what an import prints must not end up among the replies
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a namespace's first process ignores signals without a handler
    first = receive(requests)
    if first is None:
        return
    settings = first[0]
    prepare(settings)
    send(replies, {"ready": True})
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY) if settings["confined"] else -1
    while True:
        if settings["confined"]:
            check(libc.unshare(CLONE_NEWPID), "unshare")
        keeper = os.fork()
        if keeper == 0:
            keep(settings, requests, replies)
        if settings["confined"]:
            check(libc.setns(own_pids, CLONE_NEWPID), "setns")  # else a second unshare is refused
        _, status = os.waitpid(keeper, 0)
        if os.waitstatus_to_exitcode(status) == HOST_GONE:
            return
        send(replies, {"over": status})


def prepare(settings: dict[str, Any]) -> None:
    """Mounts the scratch folder and does the imports."""
    sys.path[:] = settings["path"] or sys.path
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]  # `site` is skipped, programs use them
    if settings["confined"]:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")  # when the machine runs out of memory, a sandbox goes before its host
        check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
        size = settings["scratch_bytes"]
        owner = f"uid={settings['uid']},gid={settings['uid']}"
        options = f"size={size},nr_inodes={256 + size // 8192},mode=0700,{owner}"
        scratch = settings["scratch"].encode()
        check(libc.mount(b"tmpfs", scratch, b"tmpfs", MS_NOSUID | MS_NODEV, options.encode()), "mount scratch")
    for name in settings["imports"]:
        __import__(name)
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        numpy.ones((64, 64)) @ numpy.ones((64, 64))  # OpenBLAS takes its buffers now, before any limit
    exec(compile("1", "<warm>", "exec"), {})  # a first compilation takes a millisecond
    with open("/proc/self/statm") as file:
        settings["resident"] = int(file.read().split()[1]) * PAGE
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page it marks


def keep(settings: dict[str, Any], requests: int, replies: int) -> NoReturn:
    """The keeper: makes ready for a call, waits for it, runs one program, replies, and exits."""
    status = 70
    try:
        check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
        if settings["confined"]:
            check(libc.unshare(CLONE_NEWNS), "unshare")
            flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY
            check(libc.mount(b"proc", b"/proc", b"proc", flags, None), "mount /proc")
        call = Call(settings)
        request = receive(requests)
        if request is None:
            status = HOST_GONE
        else:
            send(replies, *call.run(*request))
            status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


class Call:
    """One program under watch. The fork is made ahead, and waits for what it shall run."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.limits: dict[str, Any] = {}
        self.stdin = memoryview(b"")
        self.overflow = mmap.mmap(-1, 1)
        self.status: int | None = None
        self.cpu = 0.0
        self.poller = select.poll()
        self.control, self.stdin_pipe, *self.pipes = (os.pipe() for _ in range(4))
        self.captured = {read: bytearray() for read, _ in self.pipes}
        self.program = os.fork()
        if self.program == 0:
            become(self)
        for fd in (self.control[0], self.stdin_pipe[0], *(write for _, write in self.pipes)):
            os.close(fd)

    def run(self, request: dict[str, Any], stdin: bytes) -> tuple[dict[str, Any], bytes]:
        """Runs it to its end; the header and body of the reply."""
        started = time.monotonic()
        self.limits, self.stdin = request["limits"], memoryview(stdin)
        send(self.control[1], request)
        os.close(self.control[1])
        ended = self.watch(started + self.limits["seconds"])
        self.kill()
        seconds = time.monotonic() - started
        stdout, stderr = (bytes(data) for data in self.captured.values())
        header = {**self.verdict(ended), "seconds": seconds, "stdout": len(stdout)}
        return header, stdout + stderr

    def watch(self, deadline: float) -> str:
        """Feeds and drains it until it ends or reaches a limit."""
        exited = os.pidfd_open(self.program)
        feed = self.stdin_pipe[1]
        os.set_blocking(feed, False)
        self.poller.register(feed, select.POLLOUT)
        for fd in (exited, *self.captured):
            self.poller.register(fd, select.POLLIN)
        look = time.monotonic() + TICK
        while (now := time.monotonic()) < deadline:
            ready = [fd for fd, _ in self.poller.poll(min(TICK, deadline - now) * 1000)]
            drained = [self.drain(fd) for fd in ready if fd in self.captured]
            if sum(map(len, self.captured.values())) > self.limits["output_bytes"]:
                return "output"
            if exited in ready and not drained:
                return "exit"
            if feed in ready:
                self.feed(feed)
            if now >= look and self.settings["confined"]:
                look = now + TICK
                self.reap()
                if over := self.over_limit():
                    return over
        return "timeout"

    def feed(self, fd: int) -> None:
        """Writes standard input; closes it at its end, or when the program has."""
        try:
            self.stdin = self.stdin[os.write(fd, self.stdin[:65536]) :]
        except BrokenPipeError:
            self.stdin = self.stdin[:0]
        if not self.stdin:
            self.poller.unregister(fd)
            os.close(fd)

    def drain(self, fd: int) -> None:
        """Reads what the program printed."""
        data = os.read(fd, 65536)
        self.captured[fd] += data
        if not data:
            self.poller.unregister(fd)

    def over_limit(self) -> str:
        """The limit that its processes together are over, or an empty string."""
        pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        if len(pids) > self.limits["processes"]:
            return "processes"
        allowed = self.limits["memory_bytes"] + self.settings["resident"]
        if sum(map(resident, pids)) > allowed and sum(map(proportional, pids)) > allowed:
            return "memory"
        return ""

    def reap(self) -> None:
        """Collects the dead, orphans of the program included."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.note(pid, status, usage)

    def note(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        """Remembers how the program itself ended."""
        if pid == self.program:
            self.status, self.cpu = status, usage.ru_utime + usage.ru_stime

    def kill(self) -> None:
        """Kills the program. What else it started dies with this process (confined) or its session's group."""
        if not self.settings["confined"] and self.status is None:
            with contextlib.suppress(ProcessLookupError):  # it had no time to found its session
                os.killpg(self.program, signal.SIGKILL)  # still unreaped, so the id is its own
        if self.status is None:
            os.kill(self.program, signal.SIGKILL)
            self.note(*os.wait4(self.program, 0))

    def verdict(self, ended: str) -> dict[str, Any]:
        """How it ended, for the reply."""
        assert self.status is not None
        number = os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0
        if ended == "exit" and self.overflow[0] == OVERFLOWED:
            ended = "memory"
        if ended == "exit" and number:
            spent = number == signal.SIGKILL and self.cpu >= self.limits["cpu_seconds"]  # it caught the first signal
            ended = "cpu" if spent or number == signal.SIGXCPU else "signal"
        return {
            "ended": ended,
            "exit": os.WEXITSTATUS(self.status) if ended == "exit" else None,
            "signal": number if ended == "signal" else 0,
        }


def resident(pid: str) -> int:
    """Bytes of resident memory that is no file's; 0 for a process that is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            _, pages, shared = file.read().split()[:3]
    except OSError:
        return 0
    return (int(pages) - int(shared)) * PAGE


def proportional(pid: str) -> int:
    """Bytes of resident memory, each page divided among the processes that share it."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            lines = file.read().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss_Anon:"))


def become(call: Call) -> NoReturn:
    """The program: gives up its privileges, waits for what to run, and never returns."""
    status = 125
    try:
        check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
        os.setsid()
        sources = (call.stdin_pipe[0], call.pipes[0][1], call.pipes[1][1], call.control[0])
        for fd, source in enumerate([os.dup(source) for source in sources]):
            os.dup2(source, fd)
        os.closerange(len(sources), 65536)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if call.settings["confined"]:
            confine(call.settings)
        os.chdir(call.settings["scratch"])
        received = receive(CONTROL)
        os.close(CONTROL)
        if received is not None:
            request = received[0]
            limit(call.settings, request["limits"], warm=not request["argv"])
            status = run_argv(request["argv"]) if request["argv"] else run_source(request["source"], call)
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


def run_source(source: str, call: Call) -> int:
    """Runs Python source as `__main__`, as the interpreter would; returns the exit status."""
    name = "<program>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [name]
    sys.path.insert(0, call.settings["scratch"])
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # each call draws its own numbers; `random` does so by itself
    status = 0
    try:
        exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as error:
        status = exit_status(error.code)
    except BaseException as error:
        status = report(error, call)
    return finish(status)


def exit_status(code: object) -> int:
    """What `sys.exit(code)` makes of its argument."""
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def report(error: BaseException, call: Call) -> int:
    """Prints an uncaught exception without the frames of this file."""
    if isinstance(error, MemoryError):
        call.overflow[0] = OVERFLOWED
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    try:
        sys.stdout.flush()
        traceback.print_exception(type(error), error, frames)
    except MemoryError:
        os.write(2, b"MemoryError\n")
    return 1


def finish(status: int) -> int:
    """Waits for threads, runs exit handlers and flushes, as the interpreter would."""
    import atexit

    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        return status or 120
    return status


if __name__ == "__main__":
    main()
