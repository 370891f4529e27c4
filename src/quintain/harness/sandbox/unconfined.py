"""Runs programs with this process's own rights. For those who ask for it by this name."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile

from quintain.harness.sandbox.mechanism import thread_limits
from quintain.harness.sandbox.program import MEBIBYTE, Program, ProgramResult
from quintain.harness.sandbox.session import Session, StartError
from quintain.interface.errors import InfraError


class Unconfined:
    """Runs programs as the user runs, and says so in every result (`confined` is False).

    They see the network, the files and the other processes of this user. The limits on seconds, memory of one
    process, output and file size hold; those on processes and the scratch folder don't, and a process that leaves
    the program's session survives it. A cancelled call ends the sandbox.

    Args:
        imports: modules that the interpreter imports once, before the first call.
    """

    def __init__(self, *, imports: tuple[str, ...] = ()) -> None:
        self._imports = imports
        self._session: Session | None = None
        self._scratch = ""
        self._starting = asyncio.Lock()
        self._closed = False

    async def run(self, program: Program) -> ProgramResult:
        """Runs a program to its end; see `Sandbox.run`."""
        return await (await self._running()).call(program)

    async def read(self, path: str) -> bytes:
        """A file of the scratch folder; see `Sandbox.read`."""
        return await (await self._running()).read(path)

    async def write(self, path: str, data: bytes) -> None:
        """Writes a file of the scratch folder; see `Sandbox.write`."""
        await (await self._running()).write(path, data)

    async def close(self) -> None:
        """Ends the interpreter and removes the scratch folder."""
        self._closed = True
        async with self._starting:
            if self._session is not None:
                await self._session.close()
            shutil.rmtree(self._scratch, ignore_errors=True)

    async def _running(self) -> Session:
        async with self._starting:
            if self._closed:
                raise InfraError("sandbox: closed; open a new one")
            if self._session is None:
                self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="quintain-"))
                self._session = await _start(self._scratch, self._imports)
            return self._session


async def _start(scratch: str, imports: tuple[str, ...]) -> Session:
    environment = {"PATH": os.defpath, "HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8", **thread_limits()}
    settings = {
        "confined": False,
        "namespaces": False,
        "switch_user": False,
        "imports": imports,
        "path": [],
        "scratch": scratch,
        "scratch_bytes": 64 * MEBIBYTE,
        "count_processes": False,
    }
    try:
        return await Session.start((sys.executable, "-I", "-B", "-X", "utf8"), environment, settings)
    except StartError as error:
        raise InfraError(f"sandbox: the interpreter did not start ({error})") from None
