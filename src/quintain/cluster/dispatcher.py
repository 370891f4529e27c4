"""Which episode runs on which worker: bookkeeping alone, without a clock, a thread or a network."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from quintain.interface.generation import Load

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class _Worker(Generic[Key]):
    slots: int
    version: int
    load: Load = field(default_factory=Load)
    running: dict[Key, str] = field(default_factory=dict)  # with the episode's world

    @property
    def fullness(self) -> float:
        """Episodes it runs and requests its engine has queued, each by its slots, and the share of its KV cache used.

        What was assigned since the last report counts at once, so that no burst goes to one worker.
        """
        return (len(self.running) + self.load.queued) / self.slots + self.load.kv


class Dispatcher(Generic[Key]):
    """Every planned episode is delivered exactly once, whatever is lost and whatever comes twice.

    An episode is *open* from `plan` to its first `finish`; it waits or runs on a worker. An episode of a lost worker
    waits again, before all that were planned after it. Workers are never given more than their slots, so what can't
    run yet waits here and no engine is idle while episodes wait.

    Args:
        limits: most episodes of a world that run at once; worlds not named have no limit.
        lag: a worker whose weights are more versions behind the published ones gets no new episode.
    """

    def __init__(self, limits: Mapping[str, int] | None = None, lag: int = 0) -> None:
        self._limits = limits or {}
        self._lag = lag
        self._version = 0
        self._planned = 0
        self._open: dict[Key, tuple[int, str]] = {}
        self._waiting: dict[str, list[tuple[int, Key]]] = defaultdict(list)
        self._workers: dict[str, _Worker[Key]] = {}

    def plan(self, key: Key, world: str) -> None:
        """Adds an episode.

        Raises:
            ValueError: it is planned already.
        """
        if key in self._open:
            raise ValueError(f"episode {key!r} is planned twice")
        self._open[key] = (self._planned, world)
        heapq.heappush(self._waiting[world], (self._planned, key))
        self._planned += 1

    def drop(self, key: Key) -> None:
        """Nobody waits for an episode any more; where it runs, it runs on in vain."""
        self._open.pop(key, None)

    def join(self, worker: str, slots: int, version: int) -> None:
        """Adds a worker that runs up to `slots` episodes at once, with weights of `version`."""
        self._workers[worker] = _Worker(slots, version)

    def report(self, worker: str, load: Load) -> None:
        """Takes what a worker says of its engine."""
        if worker in self._workers:
            self._workers[worker].load = load

    def publish(self, version: int) -> None:
        """There are new weights."""
        self._version = version

    def updated(self, worker: str, version: int) -> None:
        """A worker has taken new weights; news of older ones may come later."""
        if worker in self._workers:
            self._workers[worker].version = max(version, self._workers[worker].version)

    def assign(self) -> list[tuple[str, Key]]:
        """Gives waiting episodes to workers, in the order they were planned, each to the least loaded one."""
        given: list[tuple[str, Key]] = []
        while (free := self._free()) and (key := self._next()) is not None:
            worker = min(free, key=lambda name: self._workers[name].fullness)
            self._workers[worker].running[key] = self._open[key][1]
            given.append((worker, key))
        return given

    def finish(self, key: Key) -> bool:
        """An episode's end has come, from whichever worker; True the first time, and only then."""
        return self._open.pop(key, None) is not None

    def free(self, worker: str, key: Key) -> None:
        """A worker is done with an episode."""
        if worker in self._workers:
            self._workers[worker].running.pop(key, None)

    def lose(self, worker: str) -> list[Key]:
        """A worker is gone; returns its open episodes, which wait again."""
        lost = self._workers.pop(worker, None)
        again = [key for key in lost.running if key in self._open] if lost else []
        for key in again:
            order, world = self._open[key]
            heapq.heappush(self._waiting[world], (order, key))
        return again

    def _free(self) -> list[str]:
        oldest = self._version - self._lag
        return [name for name, one in self._workers.items() if len(one.running) < one.slots and one.version >= oldest]

    def _next(self) -> Key | None:
        """Takes the earliest planned waiting episode whose world is below its limit."""
        busy = Counter(world for one in self._workers.values() for world in one.running.values())
        heads = [
            (waiting[0], world)
            for world, waiting in self._waiting.items()
            if self._drop_closed(waiting) and busy[world] < self._limits.get(world, busy[world] + 1)
        ]
        if not heads:
            return None
        (_, key), world = min(heads, key=lambda head: head[0][0])
        heapq.heappop(self._waiting[world])
        return key

    def _drop_closed(self, waiting: list[tuple[int, Key]]) -> bool:
        """Takes away what was delivered while it waited; whether anything is left."""
        while waiting and self._open.get(waiting[0][1], (-1, ""))[0] != waiting[0][0]:
            heapq.heappop(waiting)
        return bool(waiting)
