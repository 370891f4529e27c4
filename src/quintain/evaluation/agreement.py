"""How far a judge's marks agree with labels that are known to be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quintain.evaluation.intervals import Estimate, mean_interval
from quintain.interface.errors import InputError


@dataclass(frozen=True, slots=True)
class Range:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """A judge beside the labels.

    Attributes:
        agreement: share of the answers that are marked as they are labelled.
        precision: right answers among those marked right; None if none was.
        recall: answers marked right among the right ones.
        kappa: agreement beyond chance: 0 is that of marks dealt out at random, 1 is perfect.
    """

    agreement: Estimate
    precision: Estimate | None
    recall: Estimate
    kappa: Range


def agreement(labels: Sequence[bool], marks: Sequence[bool], clusters: Sequence[str]) -> Agreement:
    """Agreement, precision, recall and Cohen's kappa, with intervals that resample clusters.

    Kappa is `(p - e) / (1 - e)`, with the agreement `p` and the agreement `e` of independent marks of the same shares
    (Cohen 1960, A coefficient of agreement for nominal scales). Its interval is that of `p`, with `e` taken as known,
    as there.

    Args:
        labels: whether each answer is right `[answers]`.
        marks: whether the judge says so `[answers]`.
        clusters: the question of each `[answers]`.

    Raises:
        InputError: no label is right, or none is wrong: then nothing tells a judge from a constant.
    """
    if len(set(labels)) < 2:
        raise InputError(f"{len(labels)} labels, {sum(labels)} of them right: give both right and wrong answers")
    same = mean_interval([float(a == b) for a, b in zip(labels, marks, strict=True)], clusters)
    right, marked = sum(labels) / len(labels), sum(marks) / len(marks)
    chance = right * marked + (1 - right) * (1 - marked)
    beyond = [(share - chance) / (1 - chance) for share in (same.value, same.low, same.high)]
    precision, recall = _share(labels, marks, clusters), _share(marks, labels, clusters)
    assert recall is not None, "some label is right"
    return Agreement(same, precision, recall, Range(*beyond))


def _share(hits: Sequence[bool], among: Sequence[bool], clusters: Sequence[str]) -> Estimate | None:
    """Share of hits among those that count; None if none does."""
    places = [place for place, counts in enumerate(among) if counts]
    if not places:
        return None
    return mean_interval([float(hits[place]) for place in places], [clusters[place] for place in places])
