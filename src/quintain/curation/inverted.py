"""An inverted index over hashes, made fast enough for a corpus: nearly every look-up misses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quintain.curation.tokens import Hashes, Positions

Weights = dict[int, float]
"""Share of a text's weight by the hash of a run; they add up to 1."""


class Inverted:
    """From hashes to the parts that hold them.

    Args:
        weights: for every part, its hashes with their shares.
    """

    def __init__(self, weights: Sequence[Weights]) -> None:
        rows = sorted((run, number, share) for number, one in enumerate(weights) for run, share in one.items())
        self._part = np.array([row[1] for row in rows], np.int64)
        self._share = np.array([row[2] for row in rows], np.float64)
        hashes = np.array([row[0] for row in rows], np.uint64)
        self._keys, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        self._first, self._counts = first.astype(np.int64), counts.astype(np.int64)
        bits = min(24, max(12, (32 * len(self._keys)).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, np.bool_)  # a miss here, the usual case, costs one look
        self._table[self._keys >> self._shift] = True

    def lookup(self, hashes: Hashes) -> tuple[Positions, Positions, NDArray[np.float64]]:
        """Where a sequence of hashes meets the index.

        Returns:
            position in the sequence, number of the part, and the hash's share of that part, a row per pair `[H]`.
        """
        at = np.flatnonzero(self._table[hashes >> self._shift])
        slot = np.searchsorted(self._keys, hashes[at])
        found = self._keys[np.minimum(slot, len(self._keys) - 1)] == hashes[at]
        at, slot = at[found], slot[found]
        counts = self._counts[slot]
        begins = np.cumsum(counts) - counts
        rows = np.repeat(self._first[slot] - begins, counts) + np.arange(counts.sum())
        return np.repeat(at, counts), self._part[rows], self._share[rows]
