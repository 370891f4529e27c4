"""Rollouts and training as a discrete-event simulation: who waits for whom, when tools have long-tailed latencies.

An engine decodes all of its sequences together, one token each per step, and reads what is new to an episode before it
decodes on. Episodes alternate between their engine and their tools, the verdict after the last turn counted as one; the
trainer learns from a step once all of its episodes are played. Which steps may overlap is `ahead`, as in
`training/grpo_config.py`.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

_Z99 = 2.3263
"""99th percentile of the standard normal distribution."""
_ROUNDING = 1e-9
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Log-normal seconds of one turn's tools, by the two figures that people know of theirs.

    Attributes:
        median: half of all turns take longer.
        p99: one turn in a hundred does.
    """

    median: float
    p99: float

    @property
    def mean(self) -> float:
        """Seconds."""
        return self.median * math.exp(self._sigma**2 / 2)

    def draw(self, rng: random.Random) -> float:
        """Seconds of one turn."""
        return self.median * math.exp(self._sigma * rng.gauss(0.0, 1.0))

    @property
    def _sigma(self) -> float:
        return math.log(self.p99 / self.median) / _Z99 if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Shop:
    """What is simulated.

    Attributes:
        engines: each decodes on accelerators of its own.
        shared: the trainer works on the engines' accelerators, which stand still meanwhile.
        concurrency: episodes under way at once, over all engines.
        episodes: of one step.
        turns: of one episode.
        tokens: generated in one turn.
        prefill: seconds an engine reads before a turn.
        decoding: seconds of a decoding step, by the number of sequences.
        latency: of the tools of one turn; of the verdict, after the last.
        training: seconds of an optimiser step.
        ahead: steps whose episodes are played before the trainer asks for them.
    """

    engines: int
    shared: bool
    concurrency: int
    episodes: int
    turns: int
    tokens: int
    prefill: float
    decoding: Callable[[int], float]
    latency: Latency
    training: float
    ahead: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a simulation found, without its first step, which has nothing to overlap with.

    Attributes:
        step_seconds: from one optimiser step to the next.
        rate: episodes a second.
        trainer_idle: share of the time in which the trainer waits for episodes.
        engine_idle: share of the time in which an engine has nothing to do or stands still, mean over engines.
    """

    step_seconds: float
    rate: float
    trainer_idle: float
    engine_idle: float


class _Engine:
    """Sequences that are decoded together, in virtual time: the tokens each of them has gained.

    All turns have as many tokens, so that sequences end in the order in which they came.
    """

    def __init__(self, decoding: Callable[[int], float]) -> None:
        self.resident = 0
        self.busy = 0.0
        self.paused = False
        self.watched = False
        """Whether an event will look at its next sequence: later arrivals only delay that one."""
        self._decoding = decoding
        self._now = 0.0
        self._backlog = 0.0
        self._gained = 0.0
        self._active: deque[tuple[float, int]] = deque()

    def advance(self, now: float) -> None:
        """Does the work of the time since the last event."""
        span = 0.0 if self.paused else now - self._now
        self._now = now
        if not self._active:
            return
        read = min(self._backlog, span)
        self._backlog -= read
        self._gained += (span - read) / self._decoding(len(self._active))
        self.busy += span

    def add(self, episode: int, prefill: float, tokens: int) -> None:
        """Takes a turn to read and write."""
        self._backlog += prefill
        self._active.append((self._gained + tokens, episode))

    def due(self) -> float:
        """When the next sequence is done, if nothing else happens."""
        if self.paused or not self._active:
            return math.inf
        missing = max(0.0, self._active[0][0] - self._gained)
        return self._now + self._backlog + missing * self._decoding(len(self._active))

    def pop(self) -> int:
        """The episode whose turn is done."""
        return self._active.popleft()[1]


@dataclass(slots=True)
class _Episode:
    step: int
    engine: int
    turns: int = 0


@dataclass(slots=True)
class _Simulation:
    """One run of `steps` optimiser steps."""

    shop: Shop
    steps: int
    rng: random.Random
    now: float = 0.0
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    waiting: deque[int] = field(default_factory=deque)
    """Steps of the episodes that have no place yet."""
    episodes: list[_Episode] = field(default_factory=list)
    unfinished: dict[int, int] = field(default_factory=dict)
    played: int = 0
    trained: int = 0
    training: bool = False
    ends: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    """Seconds all engines had worked by the end of each step."""
    engines: list[_Engine] = field(default_factory=list)
    running: int = 0
    order: int = 0

    def run(self) -> Forecast:
        self.engines = [_Engine(self.shop.decoding) for _ in range(self.shop.engines)]
        self._begin()
        while self.trained < self.steps:
            self.now, _, happen = heapq.heappop(self.events)
            happen()
        steps = self.steps - 1
        seconds = (self.ends[-1] - self.ends[0]) / steps
        worked = (self.busy[-1] - self.busy[0]) / (steps * self.shop.engines)
        return Forecast(
            step_seconds=seconds,
            rate=self.shop.episodes / seconds,
            trainer_idle=max(0.0, 1 - self.shop.training / seconds),
            engine_idle=max(0.0, 1 - worked / seconds),
        )

    def _at(self, time: float, happen: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, happen))

    def _begin(self) -> None:
        """Begins the next step's episodes once all before are played, if the trainer is near enough."""
        step = self.played
        if step in self.unfinished or step >= self.steps or step - self.trained > self.shop.ahead:
            return
        self.unfinished[step] = self.shop.episodes
        self.waiting.extend([step] * self.shop.episodes)
        while self.waiting and self.running < self.shop.concurrency:
            self._admit()

    def _admit(self) -> None:
        engine = min(range(len(self.engines)), key=lambda one: self.engines[one].resident)
        self.engines[engine].resident += 1
        self.running += 1
        self.episodes.append(_Episode(self.waiting.popleft(), engine))
        self._turn(len(self.episodes) - 1)

    def _turn(self, number: int) -> None:
        episode = self.episodes[number]
        engine = self.engines[episode.engine]
        engine.advance(self.now)
        engine.add(number, self.shop.prefill, self.shop.tokens)
        self._watch(episode.engine)

    def _watch(self, number: int) -> None:
        """Sees to it that somebody looks when an engine's next sequence is done."""
        engine = self.engines[number]
        if not engine.watched and (due := engine.due()) < math.inf:
            engine.watched = True
            self._at(due, lambda: self._look(number))

    def _look(self, number: int) -> None:
        engine = self.engines[number]
        engine.watched = False
        engine.advance(self.now)
        if engine.due() <= self.now + _ROUNDING:
            self._generated(engine.pop())
        self._watch(number)

    def _generated(self, episode: int) -> None:
        self.episodes[episode].turns += 1
        over = self.episodes[episode].turns == self.shop.turns
        then = self._finished if over else self._turn
        self._at(self.now + self.shop.latency.draw(self.rng), lambda: then(episode))

    def _finished(self, number: int) -> None:
        episode = self.episodes[number]
        self.engines[episode.engine].resident -= 1
        self.running -= 1
        self.unfinished[episode.step] -= 1
        if self.waiting:
            self._admit()
        if not self.unfinished[episode.step]:
            self.played += 1
            self._begin()
            self._train()

    def _train(self) -> None:
        if self.training or self.trained >= self.played:
            return
        self.training = True
        self._pause(self.shop.shared)
        self._at(self.now + self.shop.training, self._learnt)

    def _learnt(self) -> None:
        self.training = False
        self.trained += 1
        self._pause(False)
        self.ends.append(self.now)
        self.busy.append(math.fsum(engine.busy for engine in self.engines))
        self._begin()
        self._train()

    def _pause(self, paused: bool) -> None:
        for number, engine in enumerate(self.engines):
            engine.advance(self.now)
            engine.paused = paused
            self._watch(number)


def simulate(shop: Shop, steps: int = 4, seed: int = 0) -> Forecast:
    """Plays and trains `steps` steps, at least 2, on paper."""
    return _Simulation(shop, steps, random.Random(seed)).run()
