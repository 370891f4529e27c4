"""Which tasks to play next: those whose group is likely to hold both successes and failures."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from quintain.interface.episode import Episode
from quintain.interface.tasks import Task

MEMORY = 0.95
"""What an observation still counts a step later: the policy changes, so its pass rates do."""

PRIOR = 2.0
"""How many episodes of its own a task's pass rate needs to outweigh that of its template."""

FLOOR = 0.1
"""Least chance given to a group to vary: a task that never succeeded so far is tried again now and then."""

Outcomes = Mapping[str, tuple[int, int]]
"""Scored episodes and successes by task id."""


class Curriculum:
    """Pass rates so far, by task, with the task's template as prior.

    Args:
        tasks: the pool.
        group_size: episodes in a group.
        seed: of the draws.
    """

    def __init__(self, tasks: Sequence[Task], group_size: int, seed: int) -> None:
        self._tasks = tasks
        self._template = {task.id: task.template for task in tasks}
        self._group_size = group_size
        self._seed = seed
        self._by_task: dict[str, tuple[float, float]] = {}
        self._by_template: dict[str, tuple[float, float]] = {}

    def observe(self, outcomes: Outcomes) -> None:
        """Takes the outcomes of one step; earlier ones count less from now on."""
        for table in (self._by_task, self._by_template):
            table.update({key: (n * MEMORY, c * MEMORY) for key, (n, c) in table.items()})
        for task, (n, c) in outcomes.items():
            _add(self._by_task, task, n, c)
            _add(self._by_template, self._template[task], n, c)

    def pass_rate(self, task: str) -> float:
        """Estimated probability of success: the task's own episodes, and `PRIOR` of its template."""
        seen, wins = self._by_template.get(self._template[task], (0.0, 0.0))
        prior = (wins + 1.0) / (seen + 2.0)
        n, c = self._by_task.get(task, (0.0, 0.0))
        return (c + PRIOR * prior) / (n + PRIOR)

    def promise(self, task: str) -> float:
        """Probability that a group of this task varies, at least `FLOOR`."""
        p = self.pass_rate(task)
        return max(FLOOR, 1.0 - p**self._group_size - (1.0 - p) ** self._group_size)

    def choose(self, count: int, draw: str, without: Iterable[str] = ()) -> list[Task]:
        """Draws `count` different tasks, each with a chance by its promise.

        Args:
            count: how many; fewer if the pool has fewer.
            draw: name of this draw; with the seed it fixes the result.
            without: ids not to draw.
        """
        rng = random.Random(f"{self._seed}/{draw}")
        left_out = set(without)
        # Weighted draws without replacement: the largest keys u ** (1 / weight) (Efraimidis & Spirakis 2006).
        keys = [(rng.random() ** (1.0 / self.promise(task.id)), index) for index, task in enumerate(self._tasks)]
        ranked = [self._tasks[index] for _, index in sorted(keys, reverse=True)]
        return [task for task in ranked if task.id not in left_out][:count]


def outcomes_of(episodes: Iterable[Episode]) -> dict[str, tuple[int, int]]:
    """Scored episodes and successes by task."""
    table: dict[str, tuple[int, int]] = {}
    for episode in episodes:
        if episode.scored:
            n, c = table.get(episode.task_id, (0, 0))
            table[episode.task_id] = (n + 1, c + episode.success)
    return table


def _add(table: dict[str, tuple[float, float]], key: str, n: float, c: float) -> None:
    seen, wins = table.get(key, (0.0, 0.0))
    table[key] = (seen + n, wins + c)
