"""Ctrl-C while a step runs: it waits for the step's end, where there is something to save."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from quintain.progress import say
from quintain.training import ranks


@contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Holds the first Ctrl-C back; yields whether it came. The second one interrupts at once.

    In another thread than the main one, under `torchrun`, whose processes can't agree on a step, and where somebody
    else handles or ignores the signal, nothing is held back.
    """
    alone = threading.current_thread() is threading.main_thread() and not ranks.joined()
    if not alone or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    came = threading.Event()

    def hold(_number: int, _frame: FrameType | None) -> None:
        if came.is_set():
            raise KeyboardInterrupt
        came.set()
        say("interrupted: this step is finished and saved first; once more to stop at once")

    signal.signal(signal.SIGINT, hold)
    try:
        yield came.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
