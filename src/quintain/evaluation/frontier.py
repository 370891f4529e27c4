"""Success against cost: which agents nobody beats on both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """One agent: its pass@1, and what an episode of it costs in some unit."""

    name: str
    success: float
    cost: float


def frontier(points: Sequence[Point]) -> list[Point]:
    """Points that no other beats, cheapest first.

    A point is beaten by another that succeeds at least as often and costs no more, and is better in one of the two.
    Equal points stand side by side.
    """
    kept = [point for point in points if not any(_beats(other, point) for other in points)]
    return sorted(kept, key=lambda point: (point.cost, point.name))


def _beats(one: Point, other: Point) -> bool:
    no_worse = one.success >= other.success and one.cost <= other.cost
    return no_worse and (one.success > other.success or one.cost < other.cost)
