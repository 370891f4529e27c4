"""When an answer is right: one strict rule for texts and numbers.

An answer may be the bare value or a short sentence around it. It is right if

- the gold value stands in it: a text word by word, a number as the *only* number;
- no rejected value stands in it (the loser of a comparison);
- every other word comes from the question or from `SMALL_WORDS`.

So a list of guesses, a hedge ("not", "or" another value) and a longer name that merely contains the gold
text all fail. Case, accents, width variants, thousands separators, a leading `+` and trailing zeros do
not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.words import fold

ROUNDING = Decimal("0.005")
"""Relative tolerance of a number that was rounded; whole numbers and looked-up values have none."""

_SMALL = """
the a an is are was of in at it its has have there that this s answer about equals
people inhabitants km km2 square kilometres kilometers per ft feet foot m metres meters u g cm3 times
是 的 为 有 它 其 答 案 约 在 等 于 该 这 个 人 平 方 公 里 每 英 尺 米 克 立 厘 倍 高 多
"""
SMALL_WORDS = frozenset(_SMALL.split())
"""Function words and units an answer may have around its value."""

_TOKEN = re.compile(
    r"[㐀-鿿]|[^\W\d_㐀-鿿][^\W_㐀-鿿]*|[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|[-+]?\d+(?:\.\d+)?|%"
)


def tokens(text: str) -> list[str]:
    """Words, single Chinese characters and numbers in one spelling.

    >>> tokens("About 80,783,000 people, 12.50 km2")
    ['about', '80783000', 'people', '12.5', 'km2']
    """
    return [_canonical(token) for token in _TOKEN.findall(fold(text).replace("−", "-"))]


def _canonical(token: str) -> str:
    number = _number(token)
    if number is None:
        return token
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number(token: str) -> Decimal | None:
    return Decimal(token.replace(",", "")) if token.lstrip("-+")[:1].isdecimal() else None


def wrong(gold: Any, answer: str, question: str) -> str:
    """Why an answer is not right, in one line; "" if it is.

    Args:
        gold: a text, a number, `{"text", "aliases"?, "reject"?}` or `{"number", "rounded"?}`.
        answer: what the agent said.
        question: what it was asked.

    Raises:
        InputError: `gold` is none of these.
    """
    found = tokens(answer)
    allowed = SMALL_WORDS | frozenset(tokens(question))
    if isinstance(gold, dict) and isinstance(gold.get("text"), str):
        names = [gold["text"], *gold.get("aliases", ())]
        return _wrong_text(names, gold.get("reject", ()), found, allowed)
    if isinstance(gold, dict) and "number" in gold:
        return _wrong_number(Decimal(str(gold["number"])), bool(gold.get("rounded")), found, allowed)
    if isinstance(gold, str):
        return _wrong_text([gold], (), found, allowed)
    if isinstance(gold, int | float) and not isinstance(gold, bool):
        return _wrong_number(Decimal(str(gold)), isinstance(gold, float), found, allowed)
    raise InputError(f"gold answer {gold!r}: give a text, a number or an object with 'text', 'number' or 'decline'")


def _wrong_text(names: Iterable[str], reject: Iterable[str], found: list[str], allowed: frozenset[str]) -> str:
    right = [tokens(name) for name in names]
    left, rejected = [tokens(name) for name in reject], False
    rest, hit = list(found), False
    for name in sorted(right + left, key=len, reverse=True):
        rest, here = _without(rest, name)
        hit = hit or (here and name in right)
        rejected = rejected or (here and name not in right)
    if not hit:
        return "the expected value is not in the answer"
    if rejected:
        return "the answer names the other value too"
    return _strange(rest, allowed)


def _wrong_number(gold: Decimal, rounded: bool, found: list[str], allowed: frozenset[str]) -> str:
    numbers = [number for token in found if (number := _number(token)) is not None]
    if len(numbers) != 1:
        return f"{len(numbers)} numbers in the answer, expected exactly one"
    if abs(numbers[0] - gold) > (ROUNDING * abs(gold) if rounded else 0):
        return "the number is wrong"
    return _strange([token for token in found if _number(token) is None], allowed)


def _strange(rest: list[str], allowed: frozenset[str]) -> str:
    strange = [word for word in rest if word not in allowed and word != ""]
    return f"the answer says more than the value: {strange[0]!r}" if strange else ""


def _without(found: list[str], name: Sequence[str]) -> tuple[list[str], bool]:
    """The tokens with every occurrence of a name replaced by an empty token, and whether there was one."""
    rest, at, hit = list(found), 0, False
    while name and at + len(name) <= len(rest):
        if rest[at : at + len(name)] == list(name):
            rest[at : at + len(name)] = [""]
            hit = True
        at += 1
    return rest, hit
