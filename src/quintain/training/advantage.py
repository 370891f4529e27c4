"""Groups of episodes of one task, and what each episode did better than its group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from quintain.interface.episode import Episode

MIN_SURVIVORS = 4
"""Scored episodes a group needs: the mean of fewer says too little about the task."""

SAME = 1e-6
"""Rewards whose standard deviation is below this are equal; what is left is rounding."""

Kind = Literal["mean", "standardised"]


def mean_only(rewards: Sequence[float]) -> list[float]:
    """Reward minus the group's mean `[G]` (Liu et al. 2025, "Understanding R1-Zero-Like Training", arXiv 2503.20783).

    Unlike the standardised form it does not blow small differences up: where all succeed, a cost of 0.02 a call
    stays a matter of 0.02.
    """
    mean = math.fsum(rewards) / len(rewards)
    return [reward - mean for reward in rewards]


def standardised(rewards: Sequence[float]) -> list[float]:
    """Reward minus the mean, over the standard deviation `[G]` (Shao et al. 2024, GRPO, arXiv 2402.03300).

    Raises:
        ZeroDivisionError: all rewards are equal; such groups are dropped before.
    """
    return [centred / spread(rewards) for centred in mean_only(rewards)]


def spread(rewards: Sequence[float]) -> float:
    """Standard deviation of a group's rewards (of the group itself, not of a population it was drawn from)."""
    centred = mean_only(rewards)
    return math.sqrt(math.fsum(value * value for value in centred) / len(centred))


ADVANTAGES: dict[Kind, Callable[[Sequence[float]], list[float]]] = {"mean": mean_only, "standardised": standardised}


@dataclass(frozen=True, slots=True)
class Group:
    """The scored episodes of one task by one policy.

    Attributes:
        task_id: the task.
        episodes: those with a score `[G]`.
        rewards: of each `[G]`.
        infra: episodes that left the group because the world or the engine broke.
    """

    task_id: str
    episodes: tuple[Episode, ...]
    rewards: tuple[float, ...]
    infra: int

    @property
    def short(self) -> int:
        """Episodes missing to `MIN_SURVIVORS`."""
        return max(0, MIN_SURVIVORS - len(self.episodes))

    @property
    def spread(self) -> float:
        """Standard deviation of the rewards; 0 for an empty group."""
        return spread(self.rewards) if self.rewards else 0.0

    @property
    def varies(self) -> bool:
        """Whether the rewards differ; a group whose rewards are equal teaches nothing."""
        return self.spread > SAME

    @property
    def kept(self) -> bool:
        """Whether the group is learnt from."""
        return not self.short and self.varies

    def advantages(self, kind: Kind) -> list[float]:
        """Of each episode `[G]`."""
        return ADVANTAGES[kind](self.rewards)


def form_groups(episodes: Iterable[Episode], reward: Callable[[Episode], float | None]) -> list[Group]:
    """Groups by task, in the order in which tasks first appear; episodes without a reward are counted as infra."""
    by_task: dict[str, list[Episode]] = {}
    for episode in episodes:
        by_task.setdefault(episode.task_id, []).append(episode)
    return [_group(task, members, reward) for task, members in by_task.items()]


def _group(task: str, members: list[Episode], reward: Callable[[Episode], float | None]) -> Group:
    pairs = [(episode, value) for episode in members if (value := reward(episode)) is not None]
    return Group(
        task,
        tuple(episode for episode, _ in pairs),
        tuple(value for _, value in pairs),
        len(members) - len(pairs),
    )
