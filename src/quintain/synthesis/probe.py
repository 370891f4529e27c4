"""Probes of synthesised text: can a bag of words tell right from wrong, and how often do openings repeat?

What a linear classifier over words can tell, a model learns in place of the task.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from quintain.interface.words import fold, words

FOLDS = 5
RIDGE = 1.0
"""Weight of the squared norm: the usual default of logistic regression."""
OPENING = 4
"""Words of an opening; a Chinese character counts as one."""
_WORD = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+")


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Accuracy of a classifier on texts it was not fitted to.

    Attributes:
        accuracy: share it labels right; 0.5 is chance, for both labels are made equally many.
        count: texts it was measured on.
    """

    accuracy: float
    count: int


def bag_of_words(texts: Sequence[str], labels: Sequence[bool], clusters: Sequence[str]) -> ProbeResult | None:
    """Cross-validated accuracy of logistic regression on word counts.

    Both labels are cut to the same number; folds keep a cluster together.

    Args:
        texts: what is classified.
        labels: what is to be told.
        clusters: of each text.

    Returns:
        None if a label has fewer than `FOLDS` texts.
    """
    chosen = _balanced(labels)
    if len(chosen) < 2 * FOLDS:
        return None
    counts = _counts([texts[index] for index in chosen])
    truth = np.array([labels[index] for index in chosen], dtype=np.float64)
    fold_of = np.array([_hash(clusters[index]) % FOLDS for index in chosen])
    right = 0
    for fold_number in range(FOLDS):
        held = fold_of == fold_number
        if held.any() and not held.all():
            weights = _fit(counts[~held], truth[~held])
            right += int(((counts[held] @ weights > 0) == (truth[held] > 0.5)).sum())
    return ProbeResult(right / len(chosen), len(chosen))


def _balanced(labels: Sequence[bool]) -> list[int]:
    """As many texts of either label, the same ones every time."""
    sides = [[index for index, label in enumerate(labels) if label == side] for side in (True, False)]
    least = min(map(len, sides))
    return [index for side in sides for index in sorted(side, key=lambda one: _hash(str(one)))[:least]]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6])


def _counts(texts: Sequence[str]) -> csr_matrix:
    """Word counts `[texts, words + 1]`, the last column all ones."""
    known: dict[str, int] = {}
    rows, columns = [], []
    for row, text in enumerate(texts):
        for word in words(text):
            rows.append(row)
            columns.append(known.setdefault(word, len(known)))
    ones = list(range(len(texts)))
    values = np.ones(len(rows) + len(ones))
    places = (rows + ones, columns + [len(known)] * len(ones))
    return csr_matrix((values, places), shape=(len(texts), len(known) + 1))


def _fit(counts: csr_matrix, truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights `[words + 1]` of ridge logistic regression."""
    signs = 2 * truth - 1

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = signs * (counts @ weights)
        gradient = counts.T @ (-signs / (1 + np.exp(np.clip(margin, -30, 30)))) + RIDGE * weights
        return float(np.logaddexp(0, -margin).sum() + RIDGE / 2 * weights @ weights), gradient

    found: NDArray[np.float64] = minimize(loss, np.zeros(counts.shape[1]), jac=True, method="L-BFGS-B").x
    return found


def commonest_opening(texts: Iterable[str]) -> tuple[str, float]:
    """The commonest first `OPENING` words and the share of texts that begin with them; `("", 0.0)` without texts."""
    found = Counter(" ".join(_WORD.findall(fold(text))[:OPENING]) for text in texts)
    if not found:
        return "", 0.0
    opening, count = found.most_common(1)[0]
    return opening, count / found.total()
