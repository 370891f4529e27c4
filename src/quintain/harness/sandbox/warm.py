"""The life of a sandbox whose interpreter is warm: begun at the first call, used call by call, ended once."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from quintain.harness.sandbox.program import Program, ProgramResult
from quintain.harness.sandbox.session import Session
from quintain.interface.errors import InfraError


class WarmSandbox(ABC):
    """A `Sandbox` over one session, which starts at the first call or at `start`. A cancelled call ends the sandbox."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    @abstractmethod
    async def _begin(self) -> Session:
        """Starts the warm interpreter."""

    async def _ended(self) -> None:  # noqa: B027 (most need nothing)
        """Frees what the session leaves behind; it may never have begun."""

    async def start(self) -> None:
        """Starts the warm interpreter, unless it runs.

        Raises:
            CannotConfine: this machine can't confine programs in this way; the line says why and what helps.
            InputError: one of the modules to import fails.
            InfraError: it did start before in this process, or the sandbox is closed.
        """
        await self._running()

    async def run(self, program: Program) -> ProgramResult:
        """Runs a program to its end; see `Sandbox.run`.

        Raises:
            CannotConfine, InputError, InfraError: as in `start`; InfraError too if the sandbox breaks.
        """
        return await (await self._running()).call(program)

    async def read(self, path: str) -> bytes:
        """A file of the scratch folder, at most 10 s; see `Sandbox.read`."""
        return await (await self._running()).read(path)

    async def write(self, path: str, data: bytes) -> None:
        """Writes a file of the scratch folder, at most 10 s; see `Sandbox.write`."""
        await (await self._running()).write(path, data)

    async def close(self) -> None:
        """Ends every process and forgets the scratch folder."""
        self._closed = True
        async with self._starting:
            if self._session is not None:
                await self._session.close()
            await self._ended()

    async def _running(self) -> Session:
        async with self._starting:
            if self._closed:
                raise InfraError("sandbox: closed; open a new one")
            if self._session is None:
                self._session = await self._begin()
            return self._session
