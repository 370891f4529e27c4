"""Warm sandboxes that all episodes of a process share."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Mapping
from typing import Final

from quintain.harness.background import Background
from quintain.harness.sandbox.confined import Bubblewrap
from quintain.harness.sandbox.program import Program, ProgramResult

CLOSE_SECONDS: Final = 10.0


class SharedSandbox:
    """Runs fixed programs on text that agents wrote, from any event loop and thread.

    For programs of the world's own whose imports are too heavy for a sandbox per episode. Calls share a scratch
    folder across episodes, so programs an agent wrote belong into `World.sandbox` instead. The sandboxes live on a
    thread of their own; one that breaks, or whose call is cancelled, is replaced.

    Args:
        imports: modules that each interpreter imports once.
        modules: sources of modules of the world's own, by name; see `Bubblewrap`.
        size: calls that run at once; others wait.
    """

    def __init__(
        self, *, imports: tuple[str, ...] = (), modules: Mapping[str, str] | None = None, size: int = 2
    ) -> None:
        self._imports = imports
        self._modules = modules
        self._size = size
        self._background = Background("quintain-sandbox")
        self._idle: asyncio.LifoQueue[Bubblewrap] = asyncio.LifoQueue()
        self._made: set[Bubblewrap] = set()  # empty while no sandbox was asked for

    async def run(self, program: Program) -> ProgramResult:
        """Runs a program to its end; see `Sandbox.run`.

        Raises:
            CannotConfine: this machine can't confine programs; the line says why and what helps.
            InfraError: the sandbox broke; the next call gets another one.
        """
        return await self._background.there(self._run(program))

    async def start(self) -> None:
        """Starts every interpreter that does not run, so that no call pays for the imports.

        Raises:
            CannotConfine, InputError, InfraError: as `Bubblewrap.start`.
        """
        await self._background.there(self._start())

    def close(self) -> None:
        """Ends every process."""
        if self._made:
            self._background.start(self._close()).result(CLOSE_SECONDS)
            self._background.stop()
            self._made.clear()

    def _fill(self) -> None:
        if not self._made:
            self._idle = asyncio.LifoQueue()
            for _ in range(self._size):
                self._idle.put_nowait(self._new())
            atexit.register(self.close)

    def _new(self) -> Bubblewrap:
        box = Bubblewrap(imports=self._imports, modules=self._modules)
        self._made.add(box)
        return box

    async def _run(self, program: Program) -> ProgramResult:
        self._fill()
        box = await self._idle.get()
        try:
            return await box.run(program)
        except BaseException:
            self._made.discard(box)
            broken, box = box, self._new()
            await broken.close()
            raise
        finally:
            self._idle.put_nowait(box)

    async def _start(self) -> None:
        self._fill()
        await asyncio.gather(*(box.start() for box in self._made))

    async def _close(self) -> None:
        await asyncio.gather(*(box.close() for box in self._made))
