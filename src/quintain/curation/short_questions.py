"""Short questions in a stream of text: too few runs of 5 tokens survive a cut or another order, so single tokens count.

What tells a short question from others of its template are the tokens that few clusters of the template share, or the
pairs of tokens: its *names*. A stretch of text gives it away in two cases, which both need all of the names:

- in another order: as many tokens in a row as the question has hold every token of it, and so nothing else;
- cut short: more than half of it in a row, up to its last token and the mark it ends with, or from its first token on
  where a question begins with wording. "the currency of Palau?" is cut from a question; "the currency of Palau is"
  is how a document states a fact, and facts are no leaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEAST_TOKENS = 4
"""Shorter texts are found as a whole item only."""


@dataclass(frozen=True, slots=True)
class ShortQuestion:
    """What of a short text is compared.

    Attributes:
        raw: hash of each token.
        masked: the distinct ones, numbers alike.
        end: the mark after its last token; "" if there is none.
        from_end: tokens up to the end that hold all names and more than half of the text.
        from_start: the same from the start on; 0 where the text begins with a name.
        pieces: the distinct tokens, numbers alike, of the shortest pieces that give it away. A text that holds all of
            none of them needs no closer look.
    """

    raw: tuple[int, ...]
    masked: frozenset[int]
    end: str
    from_end: int
    from_start: int
    pieces: tuple[frozenset[int], ...]


def short_question(
    text: str, raw: Sequence[int], masked: Sequence[int], places: Sequence[int], size: int
) -> ShortQuestion | None:
    """How a text with names of `size` tokens at these places is compared; None if it can't be told from others."""
    if len(raw) < LEAST_TOKENS or not places:
        return None
    most = len(raw) // 2 + 1
    last = text.rstrip()[-1:]
    from_start = max(most, places[-1] + size) if places[0] else 0
    end = "" if last.isalnum() else last
    from_end = max(most, len(raw) - places[0])
    pieces = [masked[-from_end:]] if end else []
    pieces += [masked[:from_start]] if from_start else []
    found = tuple(frozenset(piece) for piece in pieces or [masked])
    return ShortQuestion(tuple(raw), frozenset(masked), end, from_end, from_start, found)


def in_another_order(question: ShortQuestion, masked: Sequence[int]) -> bool:
    """Whether as many tokens in a row as the question has hold each of its tokens."""
    size, missing, held = len(question.raw), len(question.masked), Counter[int]()
    for at, token in enumerate(masked):
        if token in question.masked:
            missing -= not held[token]
            held[token] += 1
        if at >= size and (gone := masked[at - size]) in question.masked:
            held[gone] -= 1
            missing += not held[gone]
        if not missing:
            return True
    return False


def longest_cut(question: ShortQuestion, raw: Sequence[int], marked: Callable[[int], bool]) -> int:
    """Tokens of the longest piece of the question that a text holds; 0 if none is long enough.

    Args:
        question: what is looked for.
        raw: hash of each token of the text.
        marked: whether the question's end mark follows a token of the text, by its place.
    """
    tokens, best = question.raw, 0
    for at, token in enumerate(raw):
        if token == tokens[-1] and question.end:
            found = _shared(tokens[::-1], raw[at::-1])
            if found >= question.from_end and marked(at):
                best = max(best, found)
        if token == tokens[0] and question.from_start:
            found = _shared(tokens, raw[at : at + len(tokens)])
            best = max(best, found if found >= question.from_start else 0)
    return best


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common beginning."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
