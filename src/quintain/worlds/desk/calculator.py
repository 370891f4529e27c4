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


def _numbers(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The operation on numbers only (text times a number could fill the memory), with a bounded result."""

    def apply(*values: Any) -> Any:
        if not all(isinstance(value, int | float) for value in values):
            raise ValueError("only numbers can be calculated with")
        result = operation(*values)
        if isinstance(result, int | float) and abs(result) >= 10**MAX_DIGITS:
            raise ValueError(f"a number on the way has more than {MAX_DIGITS} digits")
        return result

    return apply


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) * math.log10(max(abs(base), 1 / abs(base) if base else 1, 1)) > MAX_DIGITS:
        raise ValueError(f"the power has more than {MAX_DIGITS} digits")
    return base**exponent


def _round(value: Any, digits: int = 0) -> Any:
    if abs(digits) > MAX_DIGITS:
        raise ValueError(f"round to at most {MAX_DIGITS} digits")
    return round(value, digits) if digits else round(value)


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _numbers(operator.add),
    ast.Sub: _numbers(operator.sub),
    ast.Mult: _numbers(operator.mul),
    ast.Div: _numbers(operator.truediv),
    ast.FloorDiv: _numbers(operator.floordiv),
    ast.Mod: _numbers(operator.mod),
    ast.Pow: _numbers(_power),
    ast.USub: _numbers(operator.neg),
    ast.UAdd: _numbers(operator.pos),
    ast.Gt: _numbers(operator.gt),
    ast.GtE: _numbers(operator.ge),
    ast.Lt: _numbers(operator.lt),
    ast.LtE: _numbers(operator.le),
    ast.Eq: _numbers(operator.eq),
    ast.NotEq: _numbers(operator.ne),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": _numbers(abs),
    "max": _numbers(max),
    "min": _numbers(min),
    "round": _numbers(_round),
    "sqrt": _numbers(math.sqrt),
}


_UNDERSTOOD = {ast.Constant, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Call}
"""Syntax that is evaluated: no attributes, no subscripts, no text formatting."""


def calculate(expression: str) -> str:
    """The value of an arithmetic expression: integers exact, other numbers as `shown` rounds them.

    Raises:
        ValueError: the expression is not arithmetic, too large or undefined; one line that names the cause.
    """
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"cannot calculate: {len(expression)} characters, at most {MAX_LENGTH} are allowed")
    text = unicodedata.normalize("NFKC", expression).translate(_SPELLINGS).strip()
    evaluator = simpleeval.SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names={})
    evaluator.nodes = {kind: how for kind, how in evaluator.nodes.items() if kind in _UNDERSTOOD}
    try:
        return shown(evaluator.eval(text, ast.parse(text, mode="eval").body))  # simpleeval takes the first of several
    except (simpleeval.InvalidExpression, SyntaxError):
        reason = f"use numbers without separators, + - * / // % **, comparisons and {', '.join(_FUNCTIONS)}"
    except Exception as error:  # simpleeval passes on whatever an operator raises
        reason = str(error) or type(error).__name__
    raise ValueError(f"cannot calculate {expression!r}: {reason}")


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
    if not 10**-MAX_DIGITS < abs(value) < 10**MAX_DIGITS:
        raise ValueError("the result is too large or too small to show")
    decimals = max(2, 5 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
