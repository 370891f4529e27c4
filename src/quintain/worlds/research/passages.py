"""What a page says about a goal: its passages that fit best, in their order. No model reads the page."""

from __future__ import annotations

from quintain.worlds.desk.collection import pages_of
from quintain.worlds.desk.search import Ranking

PASSAGE = 600
"""Characters of a passage."""

PASSAGES = 5
"""Most passages of one page."""


def about(goal: str, text: str) -> str:
    """The passages of a text that share most with a goal, or its beginning where none shares a word."""
    pieces = pages_of(text, PASSAGE)
    if len(pieces) <= PASSAGES:
        return "\n".join(pieces)
    best = sorted(Ranking([("", piece) for piece in pieces]).best(goal, PASSAGES)) or list(range(PASSAGES))
    shown = "\n[...]\n".join(pieces[index] for index in best)
    return f"{shown}\n({len(best)} of {len(pieces)} passages, those closest to the goal)"
