"""How success and goal-keeping fall as episodes grow to dozens of turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from quintain.interface.episode import Episode

LONG = 20
"""Turns from which an episode counts as long."""

QUARTERS = 4


@dataclass(frozen=True, slots=True)
class GoalKeeping:
    """Does the late part of long episodes still serve the task asked at their start?

    A turn serves the task if it reaches a milestone of it for the first time (a document that is needed was opened, the
    calculation was done), or gives the answer of a successful episode. The world defines milestones, so no wording of a
    prompt is judged. The reference agent's own profile is the yardstick: it need not be flat.

    Attributes:
        episodes: scored episodes of at least `LONG` turns.
        successes: successful ones among them.
        profile: share of turns that serve the task, by quarter of the episode `[4]`; empty without a long episode.
        kept: the last quarter's share over the first one's; 1 means that the goal is kept, 0 that it is lost. None
            where no turn of the first quarter serves the task, for instance in worlds without milestones.
    """

    episodes: int
    successes: int
    profile: tuple[float, ...]
    kept: float | None


def goal_keeping(episodes: Sequence[Episode]) -> GoalKeeping:
    """Goal-keeping of the long ones among scored episodes; every episode weighs the same."""
    long = [episode for episode in episodes if episode.scored and len(episode.turns) >= LONG]
    if not long:
        return GoalKeeping(0, 0, (), None)
    quarters = [_quarters(episode) for episode in long]
    profile = tuple(sum(column) / len(long) for column in zip(*quarters, strict=True))
    kept = profile[-1] / profile[0] if profile[0] else None
    return GoalKeeping(len(long), sum(episode.success for episode in long), profile, kept)


def _quarters(episode: Episode) -> list[float]:
    """Share of turns that serve the task in each quarter of one episode."""
    turns = len(episode.turns)
    serving = set(episode.milestone_turns)
    if episode.success and episode.turns[-1].action.answer is not None:
        serving.add(turns - 1)
    borders = [round(turns * part / QUARTERS) for part in range(QUARTERS + 1)]
    return [sum(turn in serving for turn in range(*pair)) / (pair[1] - pair[0]) for pair in pairwise(borders)]
