"""Is an answer right? By rule, as GAIA scores it (Mialon et al., 2023).

Numbers are compared as numbers, lists item by item, texts without case, punctuation and spaces. That is strict for
benchmarks whose answers are free text: what it rejects may still be right, and a judge has to look at it.
"""

from __future__ import annotations

import re
import string

from quintain.interface.words import fold

_PUNCTUATION = str.maketrans("", "", string.punctuation + "，。、；：？！“”‘’（）《》【】")
_BOXED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def right(gold: str, answer: str) -> bool:
    """True if an answer says the gold value and nothing else.

    Args:
        gold: one value, or several separated by `,` or `;`.
        answer: what the agent said; what stands in `<answer>` tags, if there are any.
    """
    found = _BOXED.findall(answer)
    said = (found[-1] if found else answer).strip()
    number = as_number(gold)
    if number is not None:
        return as_number(said) == number
    if re.search("[,;]", gold):
        wanted, given = (re.split("[,;]", text) for text in (gold, said))
        return len(wanted) == len(given) and all(_same(one, other) for one, other in zip(wanted, given, strict=True))
    return _plain(said) == _plain(gold)


def as_number(text: str) -> float | None:
    """The number a text is, without `$`, `%` and thousands separators; None if it is no number.

    >>> as_number("$1,234.50"), as_number("about 3")
    (1234.5, None)
    """
    plain = re.sub(r"[$%,\s]", "", text)
    return float(plain) if _NUMBER.fullmatch(plain) else None


def _same(one: str, other: str) -> bool:
    number = as_number(one)
    return as_number(other) == number if number is not None else _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return "".join(fold(text).translate(_PUNCTUATION).split())
