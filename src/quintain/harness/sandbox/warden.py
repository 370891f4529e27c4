"""The program inside a sandbox: a warm interpreter that forks once per call. Standard library only.

The host hands its source to the interpreter as text, since no host folder need be readable inside. Three roles:

- the *server* (PID 1 of the sandbox) has done the imports, and serves one call after another;
- the *keeper* (PID 1 of the call's own PID namespace) feeds and watches the program. The program cannot signal
  it, and when it exits the kernel kills every process of the call; the server waits for that;
- the *program* (see `inmate`), stripped of privileges, under limits and the system-call filter.

Keeper and program of the next call are forked ahead of it, so that a call waits for neither.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import mmap
import os
import resource
import select
import signal
import sys
import time
import traceback
import types
from typing import Any, NoReturn

from quintain.harness.sandbox.inmate import OVERFLOWED, PAGE, PR_SET_PDEATHSIG, become, check, libc, receive, send

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_RDONLY, MS_REC, MS_PRIVATE = 2, 4, 8, 1, 0x4000, 0x40000
TICK = 0.02  # seconds between looks at the program's memory
HOST_GONE = 3  # exit status of a keeper that waited in vain


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
    problem = warm_up(settings)
    send(replies, {"problem": problem})
    if problem:
        return
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY) if settings["namespaces"] else -1
    while True:
        if settings["namespaces"]:
            check(libc.unshare(CLONE_NEWPID), "unshare")
        keeper = os.fork()
        if keeper == 0:
            keep(settings, requests, replies)
        if settings["namespaces"]:
            check(libc.setns(own_pids, CLONE_NEWPID), "setns")  # else a second unshare is refused
        _, status = os.waitpid(keeper, 0)
        if os.waitstatus_to_exitcode(status) == HOST_GONE:
            return
        if settings["switch_user"] and not settings["namespaces"]:
            end_user(settings["uid"])
        send(replies, {"over": status})


def end_user(uid: int) -> None:
    """Kills every process of the programs' user, in a container that all calls share. Nobody else has that user."""
    killer = os.fork()
    if killer == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def prepare(settings: dict[str, Any]) -> None:
    """Makes the scratch folder, or where a container brings it, the programs' own."""
    sys.path[:] = settings["path"] or sys.path
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]  # `site` is skipped, programs use them
    if settings["confined"]:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")  # when the machine runs out of memory, a sandbox goes before its host
    if settings["namespaces"]:
        check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
        size = settings["scratch_bytes"]
        owner = f"uid={settings['uid']},gid={settings['uid']}"
        options = f"size={size},nr_inodes={256 + size // 8192},mode=0700,{owner}"
        scratch = settings["scratch"].encode()
        check(libc.mount(b"tmpfs", scratch, b"tmpfs", MS_NOSUID | MS_NODEV, options.encode()), "mount scratch")
    elif settings["switch_user"]:
        os.chown(settings["scratch"], settings["uid"], settings["uid"])


def warm_up(settings: dict[str, Any]) -> str:
    """Does the imports and what else a first use costs; what is wrong with them, or an empty string."""
    try:
        for name in settings["imports"]:
            __import__(name)
        for name, text in settings.get("modules", {}).items():
            module = sys.modules[name] = types.ModuleType(name)
            exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        numpy.ones((64, 64)) @ numpy.ones((64, 64))  # OpenBLAS takes its buffers now, before any limit
    exec(compile("1", "<warm>", "exec"), {})  # a first compilation takes a millisecond
    with open("/proc/self/statm") as file:
        settings["resident"] = int(file.read().split()[1]) * PAGE
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page it marks
    return ""


def keep(settings: dict[str, Any], requests: int, replies: int) -> NoReturn:
    """The keeper: makes ready for a call, waits for it, runs one program, replies, and exits."""
    status = 70
    try:
        check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
        if settings["namespaces"]:
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
            streams = (self.stdin_pipe[0], self.pipes[0][1], self.pipes[1][1])
            become(settings, streams, self.control[0], self.overflow)
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
            drained = [fd for fd in ready if fd in self.captured]
            for fd in drained:
                self.drain(fd)
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
        pids = [name for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
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
