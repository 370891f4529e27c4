"""Common prefixes of token sequences: how long they are, and which are worth reading once for several rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_OVERHEAD = 128
"""Reading a trunk apart costs about as much as reading this many tokens of one row (kernel launches)."""


@dataclass(frozen=True, slots=True)
class Trunk:
    """`members` (indices of sequences) share their first `length` tokens."""

    members: tuple[int, ...]
    length: int


def shared_length(left: list[int], right: list[int]) -> int:
    """Length of the common prefix."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    # Invariant: the first `low` tokens are equal, the first `high` are not; slices compare at C speed.
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


def find_trunks(sequences: Sequence[list[int]]) -> list[Trunk]:
    """The disjoint sets of sequences whose shared prefixes save the most reading, `(members - 1) * length` each.

    Sorted lexicographically, sequences that share a prefix are neighbours, so the best sets are intervals and
    dynamic programming over their ends finds them in `O(n^2)`.
    """
    order = sorted(range(len(sequences)), key=lambda index: sequences[index])
    beside = [shared_length(sequences[a], sequences[b]) for a, b in pairwise(order)]
    best = [0] * (len(order) + 1)
    choice: list[Trunk | None] = [None] * (len(order) + 1)
    begin = list(range(-1, len(order)))
    for stop in range(1, len(order) + 1):
        best[stop] = best[stop - 1]
        length = 2**62
        for start in range(stop - 2, -1, -1):
            length = min(length, beside[start])
            if length == 0:
                break
            saved = best[start] + (stop - start - 1) * length - _OVERHEAD
            if saved > best[stop]:
                best[stop], begin[stop] = saved, start
                choice[stop] = Trunk(tuple(order[start:stop]), length)
    found: list[Trunk] = []
    stop = len(order)
    while stop > 0:
        trunk = choice[stop]
        if trunk is not None:
            found.append(trunk)
        stop = begin[stop]
    return found
