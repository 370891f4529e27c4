"""Arithmetic for the `calculate` tool, through `simpleeval` (a walk over the syntax tree, never `eval`)."""

from __future__ import annotations

import ast
import math
import operator
import unicodedata
from collections.abc import Callable
from typing import Any

import simpleeval

MAX_LENGTH = 200
"""Characters of one expression."""

MAX_DIGITS = 60
"""Digits of any number on the way."""

_SPELLINGS = str.maketrans({"×": "*", "÷": "/", "−": "-", "–": "-"})


def _bounded(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        result = operation(left, right)
        if abs(result) >= 10**MAX_DIGITS:
            raise ValueError(f"a number on the way has more than {MAX_DIGITS} digits")
        return result

    return apply


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) * math.log10(max(abs(base), 1 / abs(base) if base else 1, 1)) > MAX_DIGITS:
        raise ValueError(f"the power has more than {MAX_DIGITS} digits")
    return base**exponent


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _bounded(operator.add),
    ast.Sub: _bounded(operator.sub),
    ast.Mult: _bounded(operator.mul),
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "max": max, "min": min, "round": round, "sqrt": math.sqrt}


def calculate(expression: str) -> str:
    """The value of an arithmetic expression: integers exact, other numbers as `shown` rounds them.

    Raises:
        ValueError: the expression is not arithmetic, too large or undefined; one line that names the cause.
    """
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"cannot calculate: {len(expression)} characters, at most {MAX_LENGTH} are allowed")
    text = unicodedata.normalize("NFKC", expression).translate(_SPELLINGS).strip()
    evaluator = simpleeval.SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names={})
    try:
        return shown(evaluator.eval(text))
    except Exception as error:  # simpleeval passes on whatever the operators raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"cannot calculate {expression!r}: {reason}") from None


def shown(value: Any) -> str:
    """A result as text: six significant digits, never fewer than two decimals, no trailing zeros.

    >>> shown(226.21068), shown(18.015), shown(0.001234567), shown(7.0), shown(True)
    ('226.211', '18.015', '0.00123457', '7', 'true')

    Raises:
        ValueError: it is not a finite real number or a truth value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, float) or not math.isfinite(value):
        raise ValueError("the result is not a finite number")
    if value == 0:
        return "0"
    decimals = max(2, 5 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
