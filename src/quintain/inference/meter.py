"""How much an engine in other processes has to do, counted where it is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from quintain.interface.generation import Load


class Meter:
    """Counts the requests under way.

    Args:
        sessions: sequences that the engine computes at once; what it has beyond them is queued.
        kv_tokens: tokens that its cache holds. Prompts under way count as if they shared no prefix.
    """

    def __init__(self, sessions: float = math.inf, kv_tokens: float = math.inf) -> None:
        self._sessions = sessions
        self._kv_tokens = kv_tokens
        self._began = self._since = monotonic()
        self._busy = 0.0
        self._requests = 0
        self._tokens = 0

    @contextmanager
    def request(self, tokens: int) -> Iterator[None]:
        """A request with a prompt of so many tokens is under way."""
        if not self._requests:
            self._since = monotonic()
        self._requests += 1
        self._tokens += tokens
        try:
            yield
        finally:
            self._requests -= 1
            self._tokens -= tokens
            if not self._requests:
                self._busy += monotonic() - self._since

    def load(self) -> Load:
        """The engine computes while any request is under way."""
        now = monotonic()
        busy = self._busy + (now - self._since if self._requests else 0.0)
        queued = int(max(0, self._requests - self._sessions))
        return Load(queued, min(1.0, self._tokens / self._kv_tokens), busy, now - self._began)
