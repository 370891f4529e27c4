"""When an answer of a teacher matches the gold answer: every gold value stands in it, and no other number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from quintain.interface.words import fold, has_chinese

ROUNDING = Decimal("0.005")
"""Relative tolerance of a gold number with a fraction; whole numbers have none."""

NUMBER = r"(?:[-+]?\d{1,3}(?:[,，]\d{3})+(?:\.\d+)?|[-+]?\d+(?:\.\d+)?)"
"""Pattern of a number, with or without separators of thousands."""


def numbers(text: str) -> list[Decimal]:
    """The numbers of a text, thousands separators aside.

    >>> numbers("About 4,222 of 12.5 (-3)")
    [Decimal('4222'), Decimal('12.5'), Decimal('-3')]
    """
    return [Decimal(re.sub("[,，]", "", found)) for found in re.findall(NUMBER, text.replace("−", "-"))]


def names(text: str, name: str) -> bool:
    """True if `name` stands in the text as whole words; case, accents and width variants do not count.

    A Chinese character ends a word: `Yaounde` stands in `城市是Yaounde。`
    """
    wanted, whole = fold(name).strip(), fold(text)
    at = whole.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if not (_joins(whole[at - 1 : at], wanted[0]) or _joins(wanted[-1], whole[end : end + 1])):
            return True
        at = whole.find(wanted, at + 1)
    return False


def _joins(before: str, after: str) -> bool:
    """True if two characters belong to one word."""
    return all(char.isalnum() and not has_chinese(char) for char in (before, after))


def stands(value: str, text: str) -> bool:
    """True if a value stands in a text, a number however its thousands are separated."""
    found = numbers(value)
    if len(found) == 1 and not re.search(r"[^\W\d_]", value):
        return any(_equal(one, found[0]) for one in numbers(text))
    return names(text, value)


def matches(gold: Sequence[str], answer: str, question: str = "") -> bool:
    """True if the answer holds every gold value, and no number but those of the gold values and the question.

    Args:
        gold: values that have to be in it.
        answer: what the teacher said.
        question: whose numbers may be repeated.
    """
    allowed = [number for text in (*gold, question) for number in numbers(text)]
    stray = [one for one in numbers(answer) if not any(_equal(one, other) for other in allowed)]
    return bool(gold) and not stray and all(stands(value, answer) for value in gold)


def _equal(said: Decimal, gold: Decimal) -> bool:
    whole = gold == gold.to_integral_value()
    return abs(said - gold) <= (0 if whole else ROUNDING * abs(gold))
