"""The host's end of a sandbox: one warden process, and the frames to and from it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import struct
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from quintain.harness.sandbox.program import Limits, Program, ProgramResult
from quintain.interface.errors import InfraError, InputError

GRACE = 10.0  # seconds past its limit after which a call's keeper counts as broken
START_SECONDS = 60.0  # for the interpreter and its imports

_READ = """
import os, stat, sys
try:
    path = os.path.realpath(sys.stdin.read())
    if os.path.commonpath((path, os.getcwd())) != os.getcwd():
        raise OSError(13, "")
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise OSError(22, "")
    while part := os.read(file, 1 << 20):
        sys.stdout.buffer.write(part)
except OSError as error:
    sys.stderr.write(str(error.errno))
    sys.exit(1)
"""
_WRITE = """
import os, sys
try:
    name, data = sys.stdin.buffer.read().split(b"\\0", 1)
    path = os.path.realpath(name.decode())
    if os.path.commonpath((path, os.getcwd())) != os.getcwd():
        raise OSError(13, "")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOFOLLOW, 0o644)
    while data:
        data = data[os.write(file, data):]
except OSError as error:
    sys.stderr.write(str(error.errno))
    sys.exit(1)
"""


_BOOT = """
import sys, types
for name, text in {texts!r}:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
module.main()
"""


@cache
def warden_source() -> str:
    """The warden's modules as one text, for the interpreter's `-c`: inside, this package can't be imported."""
    names = ("inmate", "warden")
    package = __name__.rpartition(".")[0]
    files = {name: Path(__file__).with_name(f"{name}.py") for name in names}
    return _BOOT.format(texts=[(f"{package}.{name}", file.read_text("utf-8")) for name, file in files.items()])


class StartError(Exception):
    """The warden ended before it was ready; the message is its last words."""


class Session:
    """A running warden. Calls are served one after another.

    A call that is cancelled ends the session, and so does one whose keeper overstays: the stream of
    frames has no other way back to a known state.
    """

    def __init__(self, process: asyncio.subprocess.Process, confined: bool, scratch_bytes: int) -> None:
        self._process = process
        self._confined = confined
        self._scratch_bytes = scratch_bytes
        self._lock = asyncio.Lock()
        self._alive = True

    @classmethod
    async def start(cls, command: tuple[str, ...], environment: dict[str, str], settings: dict[str, Any]) -> Session:
        """Starts a warden and waits until its imports are done.

        Raises:
            StartError: it ended before.
            InputError: an import fails.
            InfraError: it takes longer than `START_SECONDS`.
        """
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, "-c", warden_source(), stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd="/"
        )
        session = cls(process, settings["confined"], settings["scratch_bytes"])
        try:
            async with asyncio.timeout(START_SECONDS):
                await session._greet(settings)
        except TimeoutError:
            await session.close()
            raise InfraError(f"sandbox: not ready after {START_SECONDS:.0f} s; is the machine overloaded?") from None
        except BaseException:
            await session.close()
            raise
        return session

    async def _greet(self, settings: dict[str, Any]) -> None:
        try:
            await self._send(settings, b"")
            reply, _ = await self._receive()
        except (ConnectionError, asyncio.IncompleteReadError):
            raise StartError(await self._end()) from None
        if reply["problem"]:
            raise InputError(f"sandbox: imports {list(settings['imports'])} fail inside: {reply['problem']}")

    async def call(self, program: Program) -> ProgramResult:
        """Runs one program.

        Raises:
            InfraError: the warden is gone or does not keep to its protocol.
        """
        async with self._lock:
            if not self._alive:
                raise InfraError("sandbox: closed, or broken by an earlier call; open a new one")
            try:
                async with asyncio.timeout(program.limits.seconds + GRACE):
                    return await self._exchange(program)
            except (ConnectionError, asyncio.IncompleteReadError):
                words = await self._end()
                raise InfraError(f"sandbox: its warden died ({words or 'killed'}); open a new one") from None
            except TimeoutError:
                await self._end()
                raise InfraError(
                    f"sandbox: no reply {GRACE:.0f} s after the limit of {program.limits.seconds:g} s; open a new one"
                ) from None
            except BaseException:
                await self._end()
                raise

    async def _exchange(self, program: Program) -> ProgramResult:
        request = {"source": program.source, "argv": program.argv, "limits": asdict(program.limits)}
        await self._send(request, program.stdin)
        reply, output = await self._receive()
        if "over" in reply:
            raise InfraError(f"sandbox: the keeper of a call died with wait status {reply['over']}; open a new one")
        await self._receive()  # every process of the call is dead
        cut = reply["stdout"]
        stdout = output[:cut][: program.limits.output_bytes]
        stderr = output[cut:][: program.limits.output_bytes - len(stdout)]
        return ProgramResult(
            stdout, stderr, reply["exit"], reply["ended"], reply["seconds"], self._confined, reply["signal"]
        )

    async def read(self, path: str) -> bytes:
        """A file of the scratch folder, read by a confined process: no link leads it further than a program."""
        limits = Limits(output_bytes=self._scratch_bytes + 64)
        result = await self.call(Program(source=_READ, stdin=os.fsencode(path), limits=limits))
        _raise_if_failed(result, path)
        return result.stdout

    async def write(self, path: str, data: bytes) -> None:
        """Writes a file of the scratch folder, as `read` reads it."""
        limits = Limits(file_bytes=self._scratch_bytes)
        result = await self.call(Program(source=_WRITE, stdin=os.fsencode(path) + b"\0" + data, limits=limits))
        _raise_if_failed(result, path)

    async def close(self) -> None:
        """Ends every process: with the warden, the kernel kills all of its PID namespace."""
        self._kill()
        async with self._lock:  # a call under way ends first, with an InfraError
            await self._end()

    def _kill(self) -> None:
        self._alive = False
        if self._process.returncode is None:
            # not Process.kill(): that reaps behind the back of asyncio's child watcher
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    async def _end(self) -> str:
        """Kills, and waits for the end; the last line of the warden's errors, docker's `Run '... --help'` aside."""
        self._kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdin.close()
        await self._process.stdout.read()  # with unread output asyncio would never see the end
        words = (await self._process.stderr.read()).decode(errors="replace").strip()
        await self._process.wait()
        lines = [line for line in words.splitlines() if line and "--help'" not in line]
        return lines[-1] if lines else ""

    async def _send(self, header: dict[str, Any], body: bytes) -> None:
        assert self._process.stdin is not None
        text = json.dumps(header).encode()
        self._process.stdin.write(struct.pack("!II", len(text), len(body)) + text + body)
        await self._process.stdin.drain()

    async def _receive(self) -> tuple[dict[str, Any], bytes]:
        assert self._process.stdout is not None
        header, body = struct.unpack("!II", await self._process.stdout.readexactly(8))
        text = await self._process.stdout.readexactly(header)
        return json.loads(text), await self._process.stdout.readexactly(body)


def _raise_if_failed(result: ProgramResult, path: str) -> None:
    if result.ok:
        return
    number = int(result.stderr) if result.stderr.isdigit() else errno.EIO
    raise OSError(number, f"sandbox: {os.strerror(number)}", path)
