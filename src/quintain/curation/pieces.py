"""Which stretches of a text hold every token of a piece of a short question, for many stretches at once.

Names made of common characters stand in many clean texts: what is left to compare token by token has to be few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quintain.curation.inverted import Inverted
from quintain.curation.tokens import Hashes, Positions

_NONE = -1


class Pieces:
    """The pieces of every part that give it away.

    Args:
        pieces: for every part the distinct tokens of each of its pieces, numbers alike; none if it has none.
    """

    def __init__(self, pieces: Sequence[Sequence[frozenset[int]]]) -> None:
        rarity = Counter(token for one in pieces for piece in one for token in piece)
        place = {token: number for number, token in enumerate(rarity)}
        self._vocabulary = Inverted([{token: 1.0} for token in rarity])
        columns = max((len(piece) for one in pieces for piece in one), default=0)
        rows = max(map(len, pieces), default=0)
        self._wanted = np.full((rows, len(pieces), columns), _NONE, np.int64)
        for part, one in enumerate(pieces):
            for row in range(rows if one else 0):
                piece = sorted(one[min(row, len(one) - 1)], key=rarity.__getitem__)  # the rarest decide soonest
                self._wanted[row, part, : len(piece)] = [place[token] for token in piece]

    def held(self, masked: Hashes, part: Positions, begin: Positions, end: Positions) -> NDArray[np.bool_]:
        """Whether tokens `begin[i]` up to `end[i]` hold all of any piece of part `part[i]` `[S]`.

        Args:
            masked: hash of each token of the text, numbers alike `[T]`.
            part: number of the part, of each stretch `[S]`.
            begin: its first token `[S]`.
            end: the one after its last `[S]`.
        """
        found = np.zeros(len(part), np.bool_)
        if not len(part):
            return found
        inside = _inside(len(masked), begin, end)
        at, token, _ = self._vocabulary.lookup(masked[inside])
        room = len(masked) + 1
        places = np.append(np.sort(token * room + inside[at]), np.iinfo(np.int64).max)
        for wanted in self._wanted:
            left = np.flatnonzero(~found)
            for column in wanted.T:
                token = column[part[left]]
                following = places[np.searchsorted(places, token * room + begin[left])]
                left = left[(token == _NONE) | (following < token * room + end[left])]
            found[left] = True
        return found


def _inside(length: int, begin: Positions, end: Positions) -> Positions:
    """The tokens that any of the stretches covers."""
    edges = np.bincount(begin, minlength=length + 1) - np.bincount(end, minlength=length + 1)
    return np.flatnonzero(np.cumsum(edges[:length]))
