"""Whether options give the answer away: where the right one lies, and whether its wording alone shows it."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scipy.stats import binomtest, chisquare

from quintain.interface.words import words

SMOOTHING = 0.5
"""Added to every word's count (Jeffreys), so that an unseen word rules nothing out."""

RARE = 20
"""Times a word must occur among the options the probe is made from. What is rarer is content: borrowed options carry it
from one cluster to another, where it misleads, and the probe would seem worse than chance."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One step as the probe sees it: the options' texts without any context.

    Attributes:
        cluster: what the step shares its content with; probe and test share no cluster.
        options: their texts.
        chosen: index of the action taken.
    """

    cluster: str
    options: tuple[str, ...]
    chosen: int


@dataclass(frozen=True, slots=True)
class Leaks:
    """What the two checks found.

    Attributes:
        steps: steps tested.
        chance: share of steps a blind guess gets right.
        accuracy: share of steps the probe gets right from the options' words and lengths alone.
        low: lower end of its 95 % interval (Clopper & Pearson 1934).
        high: upper end.
        position_p: p of the chi-square test that the action taken lies anywhere with the same probability.
    """

    steps: int
    chance: float
    accuracy: float
    low: float
    high: float
    position_p: float

    @property
    def suspicious(self) -> bool:
        """The probe beats chance for sure, or the positions are not uniform."""
        return self.low > self.chance or self.position_p < 0.001

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {**asdict(self), "suspicious": self.suspicious}


def find_leaks(steps: Sequence[Shown]) -> Leaks:
    """Tests steps that have alternatives; at least one is needed.

    The probe is a naive Bayes classifier of words and rough length, made from half of the clusters and tested on
    the other, both ways round.
    """
    tested = [step for step in steps if len(step.options) > 1]
    sides: tuple[list[Shown], list[Shown]] = ([], [])
    for step in tested:
        sides[hashlib.sha256(step.cluster.encode()).digest()[0] % 2].append(step)
    right = sum(_right(sides[1 - side], sides[side]) for side in (0, 1))
    interval = binomtest(right, len(tested)).proportion_ci()
    chance = sum(1 / len(step.options) for step in tested) / len(tested)
    return Leaks(
        len(tested), chance, right / len(tested), float(interval.low), float(interval.high), _position_p(tested)
    )


def _right(learnt: Sequence[Shown], tested: Sequence[Shown]) -> int:
    """How many steps the probe made from `learnt` gets right among `tested`."""
    taken: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for step in learnt:
        for index, option in enumerate(step.options):
            (taken if index == step.chosen else other).update(_features(option))
    known = {word for word in taken.keys() | other.keys() if taken[word] + other[word] >= RARE}
    sizes = [sum(side[word] + SMOOTHING for word in known) for side in (taken, other)]

    def score(option: str) -> float:
        """Log of how much likelier the words are in an action taken than in an alternative."""
        return sum(
            math.log((taken[word] + SMOOTHING) / sizes[0]) - math.log((other[word] + SMOOTHING) / sizes[1])
            for word in _features(option)
            if word in known
        )

    return sum(_best([score(option) for option in step.options], step) == step.chosen for step in tested)


def _best(scores: list[float], step: Shown) -> int:
    """Index of the highest score; ties are broken by a hash, so that no position is preferred."""
    tie = [
        hashlib.sha256(f"{step.cluster}/{index}/{text}".encode()).digest() for index, text in enumerate(step.options)
    ]
    return max(range(len(scores)), key=lambda index: (scores[index], tie[index]))


def _features(option: str) -> list[str]:
    found = words(option)
    return [*found, f"length {min(len(option) // 20, 12)}", f"words {min(len(found) // 4, 12)}"]


def _position_p(steps: Sequence[Shown]) -> float:
    """Chi-square over the positions of all steps, expecting each position of a step with the same probability."""
    most = max(len(step.options) for step in steps)
    found = [0.0] * most
    expected = [0.0] * most
    for step in steps:
        found[step.chosen] += 1
        for position in range(len(step.options)):
            expected[position] += 1 / len(step.options)
    return float(chisquare(found, expected).pvalue)
