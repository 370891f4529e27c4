"""Warm sandboxes that all episodes of a process share."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, Final

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
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: asyncio.LifoQueue[Bubblewrap] = asyncio.LifoQueue()
        self._made: set[Bubblewrap] = set()

    async def run(self, program: Program) -> ProgramResult:
        """Runs a program to its end; see `Sandbox.run`.

        Raises:
            CannotConfine: this machine can't confine programs; the line says why and what helps.
            InfraError: the sandbox broke; the next call gets another one.
        """
        result: ProgramResult = await self._there(self._run(program))
        return result

    async def start(self) -> None:
        """Starts every interpreter that does not run, so that no call pays for the imports.

        Raises:
            CannotConfine, InputError, InfraError: as `Bubblewrap.start`.
        """
        await self._there(self._start())

    def close(self) -> None:
        """Ends every process."""
        with self._starting:
            if self._loop is None:
                return
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(CLOSE_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    async def _there(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_serve, args=(self._loop,), daemon=True, name="quintain-sandbox").start()
                self._idle, self._made = asyncio.LifoQueue(), set()
                for _ in range(self._size):
                    self._idle.put_nowait(self._new())
                atexit.register(self.close)
            return self._loop

    def _new(self) -> Bubblewrap:
        box = Bubblewrap(imports=self._imports, modules=self._modules)
        self._made.add(box)
        return box

    async def _run(self, program: Program) -> ProgramResult:
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
        await asyncio.gather(*(box.start() for box in self._made))

    async def _close(self) -> None:
        await asyncio.gather(*(box.close() for box in self._made))


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()
