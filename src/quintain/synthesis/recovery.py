"""Recovery: from episodes that went wrong, episodes that go right again, played and judged, never imagined.

An episode is rewound to a point after its trouble, a teacher goes on from there through the harness, and what comes
to a right end is kept. The wrong turn stays in view; what carries loss is decided when examples are made (wrong turns
do not). A wrong answer ends its episode, so there the point lies before it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quintain.harness.loop import Harness
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.failures import failed, faulted, recovered
from quintain.interface.messages import Action, Turn
from quintain.interface.tasks import Task
from quintain.interface.view import Agent


@dataclass(frozen=True, slots=True)
class Point:
    """Where a continuation begins.

    Attributes:
        episode: the original.
        turns: turns of it that are kept.
        kind: what went wrong: kind of fault, of error or of format error, `answer`, or `person` for
            a correction by hand.
        first: what to do first; None leaves it to the teacher.
        label: tells the continuations of one point apart.
    """

    episode: Episode
    turns: int
    kind: str
    first: Action | None = None
    label: str = "r"

    @property
    def id(self) -> str:
        """Id of the continuation."""
        return f"{self.episode.id}+{self.turns}{self.label}"


@dataclass(slots=True)
class Recovered:
    """What came of many points.

    Attributes:
        kept: continuations that came to a right end.
        tried: continuations played, by what had gone wrong.
        right: those of them that were kept.
    """

    kept: list[Episode] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, episode: Episode) -> None:
        """Counts one continuation and keeps it if it came to a right end."""
        self.tried[kind] += 1
        if recovered(episode):
            self.right[kind] += 1
            self.kept.append(episode)

    def join(self, other: Recovered, before: str) -> None:
        """Adds what came of other points, with a text before the ids of the kept."""
        self.tried += other.tried
        self.right += other.right
        self.kept += [replace(one, id=f"{before}{one.id}") for one in other.kept]

    def by_kind(self) -> dict[str, dict[str, int]]:
        """Tried and kept, by what had gone wrong."""
        return {kind: {"tried": count, "kept": self.right[kind]} for kind, count in sorted(self.tried.items())}


def points_of(episode: Episode, most: int) -> list[Point]:
    """Where to go on from, in one episode that failed or was struck by a fault: the first trouble, then the last ones.

    Args:
        episode: any.
        most: points of one episode.
    """
    if not episode.scored or not (faulted(episode) or not episode.success):
        return []
    last = len(episode.turns) - 1
    kinds: dict[int, str] = {}
    for number, turn in enumerate(episode.turns):
        trouble = _trouble(turn)
        if trouble:  # after the last turn nothing is left of the budget: there the point lies before it
            kinds.setdefault(min(number + 1, last), trouble)
    if not episode.success and last >= 0:
        kinds.setdefault(last, "answer")
    chosen = [*list(kinds)[:1], *list(kinds)[1:][-(most - 1) :]] if most > 1 else list(kinds)[:1]
    return [Point(episode, turns, kinds[turns]) for turns in chosen]


def _trouble(turn: Turn) -> str:
    """What went wrong in a turn, "" for nothing."""
    wrong = next((one for one in turn.observations if failed(one)), None)
    if wrong is None:
        return ""
    return wrong.fault or wrong.format_kind or wrong.error


async def go_on(
    harness: Harness,
    points: Sequence[Point],
    states: Mapping[tuple[str, int], bytes | None],
    tasks: Mapping[str, Task],
    teacher: Callable[[Point], Agent],
    on_episode: Callable[[Point, Episode], None],
) -> None:
    """Plays a continuation from every point, `harness.concurrency` at once.

    Args:
        harness: with the faults the originals met; its journal keeps every continuation.
        points: where to begin.
        states: the world's snapshot at each point, by episode and turns.
        tasks: the episodes' tasks, by id.
        teacher: who goes on from a point.
        on_episode: told of every continuation as it ends.

    Raises:
        InputError: an episode's task is not among the tasks.
    """
    slots = asyncio.Semaphore(harness.concurrency)

    async def one(point: Point) -> None:
        episode = point.episode
        if episode.task_id not in tasks:
            raise InputError(f"episode {episode.id!r}: its task is not among the {len(tasks)} of its pool")
        state = states[episode.id, point.turns]
        async with slots:
            task = tasks[episode.task_id]
            made = await harness.of(task).branch(
                episode, point.turns, task, teacher(point), state=state, name=point.label
            )
        on_episode(point, made)

    try:
        async with asyncio.TaskGroup() as group:
            for point in points:
                group.create_task(one(point))
    except BaseExceptionGroup as failure:
        raise failure.exceptions[0] from None
