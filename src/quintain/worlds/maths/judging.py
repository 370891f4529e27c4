"""When an answer is right, and which results of tools hold it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from quintain.interface.errors import InputError
from quintain.worlds.answers import ROUNDING, wrong
from quintain.worlds.maths.algebra import equal

JUDGED_RESULTS = 20
"""Results of tools that are compared with an expression: the last so many."""

_VALUE = re.compile(r"-?\d+(?:\.\d+)?(?:/\d+)?")


def values(result: str) -> list[Fraction]:
    """The numbers a tool's result gives: `12.5`, or each value in `x = -2 or x = 3`, `x = 1, y = 1/2`.

    >>> values("x = -2 or x = 7/2"), values("12.5"), values("x**2 + 1")
    ([Fraction(-2, 1), Fraction(7, 2)], [Fraction(25, 2)], [])
    """
    parts = [part.rpartition("= ")[2].strip() for part in re.split(r", | or ", result)]
    return [Fraction(part) for part in parts if _VALUE.fullmatch(part) and not re.search(r"/0+$", part)]


async def judge(gold: dict[str, Any], answer: str, results: Sequence[str], question: str) -> tuple[str, bool]:
    """Why the answer is not right ("" if it is), and whether a tool gave the gold value.

    Args:
        gold: `{"number", "rounded"?}`, `{"exact"}`, `{"expression"}` or `{"integrand", "variable"}`.
        answer: what the agent said.
        results: what the tools returned in this episode.
        question: what it was asked.

    Raises:
        InputError: `gold` is none of these.
        InfraError: the sandbox broke.
    """
    if "number" in gold:
        return wrong(gold, answer, question), number_given(gold, results)
    if "exact" in gold:
        found = [_bare(text) == _bare(gold["exact"]) for text in (answer, *results)]
    elif "expression" in gold or "integrand" in gold:
        found = await equal(gold, (answer, *results[-JUDGED_RESULTS:]))
    else:
        raise InputError(f"gold answer {gold!r}: give 'number', 'exact', 'expression' or 'integrand'")
    return "" if found[0] else "the answer is not the expected one", any(found[1:])


def number_given(gold: dict[str, Any], results: Sequence[str]) -> bool:
    """True if one of the results holds the gold number."""
    expected = Fraction(str(gold["number"]))
    allowed = Fraction(ROUNDING) * abs(expected) if gold.get("rounded") else 0
    return any(abs(value - expected) <= allowed for result in results for value in values(result))


def _bare(text: str) -> str:
    return "".join(text.split())
