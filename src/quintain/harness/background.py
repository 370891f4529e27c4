"""An event loop in a thread of its own, for work that outlives the loops of those who ask for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """An event loop in a daemon thread, from its first use until `stop`; used again, it begins anew.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changing = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begins something; its result is asked for later."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    async def there(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits something; cancelling here cancels there."""
        return await asyncio.wrap_future(self.start(work))

    def stop(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """Cancels what is under way, and waits until it has ended; then runs `last` in the same loop."""
        if self._loop is None and last is None:
            return
        self.start(_end(last)).result()
        with self._changing:
            loop, self._loop = self._loop, None
            if loop is not None:
                loop.call_soon_threadsafe(loop.stop)
                self._thread.join()
                loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._changing:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop


async def _end(last: Callable[[], Awaitable[None]] | None) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    if last is not None:
        await last()
