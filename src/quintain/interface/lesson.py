"""What is learnt from an episode: chosen by curation, read by training and by exports.

Nothing of the episode is copied. One longer than a window is cut at turn borders; every window keeps the prompt, so the
task stays in view.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple


class Window(NamedTuple):
    """Turns `first` to `last - 1`, of which those from `learnt_from` on are learnt."""

    first: int
    last: int
    learnt_from: int


def windows(turns: int, longest: int) -> Iterator[Window]:
    """One window if all turns fit, else windows of `longest` turns that start half a window apart.

    Of the first window all turns are learnt, of the others the later half: every turn is learnt exactly once, with at
    least half a window of history.
    """
    if turns <= longest:
        yield Window(0, turns, 0)
        return
    stride = longest - longest // 2
    for first in range(0, turns - longest + stride, stride):
        yield Window(first, min(first + longest, turns), first + (longest - stride if first else 0))


@dataclass(frozen=True, slots=True)
class Lesson:
    """One window of an episode and what is learnt of it.

    Attributes:
        source: name of the journal the episode lies in.
        episode: the episode's id.
        first: first turn of the window.
        last: one past its last turn.
        learnt: turns that carry loss; the others are context.
        condition: what the system says before everything else, so that a failure is learnt as one ("" for nothing).
        question: what the user asks after the last turn ("" for nothing).
        judgement: what the agent answers to that; it carries loss.
    """

    source: str
    episode: str
    first: int
    last: int
    learnt: tuple[int, ...]
    condition: str = ""
    question: str = ""
    judgement: str = ""


def lesson_from_json(record: dict[str, Any]) -> Lesson:
    """Reads the JSON object of a lesson."""
    return Lesson(**{**record, "learnt": tuple(record["learnt"])})
