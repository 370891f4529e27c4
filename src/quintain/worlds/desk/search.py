"""Ranking of documents for a query: BM25 over words and Chinese character n-grams.

BM25 is computed by `bm25s`. Titles weigh more than text, and a document whose whole title stands in the
query comes first, the longest title first ("Papua New Guinea" before "Guinea"). Documents titled in the
query's script (with or without Chinese characters) come before the others. Documents far behind the best one
are left out: what shares a common word only would fill a small model's window. Equal scores keep the order of the
collection, so a ranking never changes between runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import bm25s
import numpy as np

from quintain.interface.words import has_chinese, words

_TITLE_WEIGHT = 3
_FAR_BEHIND = 0.2
"""Hits with less than this share of the best score are left out."""
_NO_WORD = "\0"
"""Stands for the words of a document without any (bm25s needs one); no query holds it."""


class Ranking:
    """A BM25 index of `(title, text)` documents."""

    def __init__(self, documents: Sequence[tuple[str, str]]) -> None:
        tokens = [words(title) * _TITLE_WEIGHT + words(text) or [_NO_WORD] for title, text in documents]
        self._titles = [frozenset(words(title)) for title, _ in documents]
        self._chinese = np.array([has_chinese(title) for title, _ in documents])
        self._index = bm25s.BM25()
        self._index.index(tokens, show_progress=False)
        self._known = frozenset(token for document in tokens for token in document)

    def best(self, query: str, count: int) -> list[int]:
        """Indices of the at most `count` best documents, best first, without those far behind the best."""
        tokens = sorted(set(words(query)) & self._known)
        if not tokens:
            return []
        scores = np.asarray(self._index.get_scores(tokens), dtype=np.float64).copy()
        present = frozenset(tokens)
        for index in np.flatnonzero(scores > 0):
            if self._titles[index] <= present:
                scores[index] += 1000.0 * len(self._titles[index])
        other_script = self._chinese != has_chinese(query)
        order = np.lexsort((-scores, other_script & (scores > 0), scores <= 0))[:count]
        least = _FAR_BEHIND * scores.max()
        return [int(index) for index in order if scores[index] > 0 and scores[index] >= least]
