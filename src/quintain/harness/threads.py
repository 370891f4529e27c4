"""Runs blocking functions off the event loop, on threads that can be abandoned.

A standard pool waits for its threads at exit and counts a hung one as busy for ever. Here a call that runs
past its time is simply left behind on its daemon thread, and the next call gets another one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Any

from quintain.interface.errors import describe

_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class _Worker:
    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="quintain-world").start()

    def _run(self) -> None:
        while True:
            function, loop, future = self.jobs.get()
            result: Any = None
            failure: BaseException | None = None
            try:
                result = function()
            except BaseException as error:
                failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._deliver, future, result, failure)

    def _deliver(self, future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
        _idle.append(self)
        if future.done():  # abandoned, and it came back after all
            return
        if failure is None:
            future.set_result(result)
        elif isinstance(failure, Exception) and not isinstance(failure, StopIteration):
            future.set_exception(failure)
        else:  # SystemExit or KeyboardInterrupt raised by a tool must not end the run; futures take no StopIteration
            future.set_exception(RuntimeError(describe(failure)))


_idle: list[_Worker] = []


async def off_loop(function: Callable[[], Any], seconds: float | None = None) -> Any:
    """Runs `function` on a thread of its own and awaits its result.

    Raises:
        TimeoutError: it ran past `seconds`; it is abandoned, its result discarded.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    worker = _idle.pop() if _idle else _Worker()
    worker.jobs.put((function, loop, future))
    async with asyncio.timeout(seconds):
        return await future


async def on_loop(function: Callable[[], Awaitable[Any]], seconds: float | None = None) -> Any:
    """Awaits what an async function of a world returns.

    Raises:
        TimeoutError: it ran past `seconds`; it was cancelled.
    """
    task = asyncio.current_task()
    assert task is not None
    try:
        async with asyncio.timeout(seconds):
            return await function()
    except (asyncio.CancelledError, SystemExit, KeyboardInterrupt) as error:
        if task.cancelling():  # the run is being stopped
            raise
        raise RuntimeError(describe(error)) from None


async def settle(function: Callable[..., Any], *arguments: Any, seconds: float | None = None) -> Any:
    """Calls a function of a world, sync (off the loop) or async, within a time limit.

    Raises:
        TimeoutError: it ran past `seconds`.
    """
    run = on_loop if asyncio.iscoroutinefunction(function) else off_loop
    return await run(lambda: function(*arguments), seconds)
