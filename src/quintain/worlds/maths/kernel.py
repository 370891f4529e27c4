"""Computer algebra on text an agent wrote: a strict parser, the operations, and the judge of expressions.

Runs inside the sandbox, with the standard library and sympy only. Nothing is ever evaluated as Python: the syntax tree
is walked, and what is not listed here is refused. One JSON request on standard input, one reply on standard output.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

import sympy

MAX_EXPONENT = 1000
MAX_FACTORIAL = 1000
MAX_NESTING = 50
MAX_RESULT = 1000
"""Characters of one result."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: lambda left, right: _power(left, right),
}
_CONSTANTS = {"pi": sympy.pi, "E": sympy.E, "I": sympy.I}


class Refused(ValueError):
    """The text is not an expression, or asks for too much; one line for the agent."""


def _power(base: Any, exponent: Any) -> Any:
    if exponent.is_number and abs(exponent) > MAX_EXPONENT:
        raise Refused(f"an exponent is above {MAX_EXPONENT}")
    return base**exponent


def _factorial(number: Any) -> Any:
    if number.is_number and abs(number) > MAX_FACTORIAL:
        raise Refused(f"factorial of more than {MAX_FACTORIAL}")
    return sympy.factorial(number)


def _binomial(top: Any, bottom: Any) -> Any:
    if any(one.is_number and abs(one) > MAX_FACTORIAL for one in (top, bottom)):
        raise Refused(f"binomial of more than {MAX_FACTORIAL}")
    return sympy.binomial(top, bottom)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": sympy.sqrt,
    "exp": sympy.exp,
    "log": sympy.log,
    "ln": sympy.log,
    "sin": sympy.sin,
    "cos": sympy.cos,
    "tan": sympy.tan,
    "asin": sympy.asin,
    "acos": sympy.acos,
    "atan": sympy.atan,
    "sinh": sympy.sinh,
    "cosh": sympy.cosh,
    "tanh": sympy.tanh,
    "abs": sympy.Abs,
    "Abs": sympy.Abs,
    "floor": sympy.floor,
    "ceiling": sympy.ceiling,
    "max": sympy.Max,
    "min": sympy.Min,
    "gcd": lambda *values: reduce(sympy.gcd, values),
    "lcm": lambda *values: reduce(sympy.lcm, values),
    "factorial": _factorial,
    "binomial": _binomial,
}


def parse(text: str) -> Any:
    """The sympy expression of a text in Python's notation; `^` is a power too, decimals are exact.

    Raises:
        Refused: it is not one.
    """
    try:
        tree = ast.parse(text.replace("^", "**").strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Refused(f"cannot read {text!r}: write it like 2*x**2 - 3*x + 1") from None
    value = _build(tree.body, 0)
    if value.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise Refused("the expression is not defined (division by zero?)")
    return value


def _build(node: ast.AST, depth: int) -> Any:
    if depth > MAX_NESTING:
        raise Refused(f"nested more than {MAX_NESTING} deep")
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return _number(node.value)
    if isinstance(node, ast.Name):
        return _CONSTANTS.get(node.id) or _symbol(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_build(node.left, depth + 1), _build(node.right, depth + 1))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _build(node.operand, depth + 1)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise Refused(f"no function {node.func.id!r}; there are {', '.join(FUNCTIONS)}")
        return FUNCTIONS[node.func.id](*(_build(one, depth + 1) for one in node.args))
    raise Refused("use numbers, letters, + - * / % ** and functions such as sqrt(x) only")


def _number(value: float) -> Any:
    if value in (float("inf"), float("-inf")):
        raise Refused("a number is too large")
    return sympy.Rational(repr(value))


def _symbol(name: str) -> Any:
    if len(name) > 12 or name.startswith("_"):
        raise Refused(f"{name!r} is no variable; use letters such as x")
    return sympy.Symbol(name)


def _equation(text: str) -> Any:
    """Left side minus right side."""
    sides = text.replace("==", "=").split("=")
    if len(sides) > 2:
        raise Refused("an equation has one =; separate equations by ;")
    return parse(sides[0]) - (parse(sides[1]) if len(sides) == 2 else 0)


def _variable(expression: Any, name: str) -> Any:
    """The named variable, or the only one there is."""
    if name:
        return _symbol(name.strip())
    free = sorted(expression.free_symbols, key=str)
    if len(free) != 1:
        raise Refused(f"name the variable; the expression has {', '.join(map(str, free)) or 'none'}")
    return free[0]


def solve(text: str, variable: str) -> str:
    """Solutions of an equation or of several separated by `;`, as `x = 1 or x = 2`, `x = 1, y = 2`."""
    equations = [_equation(one) for one in text.split(";") if one.strip()]
    if not equations:
        raise Refused("there is no equation")
    if all(sympy.simplify(one) == 0 for one in equations):
        return "every value is a solution"
    names = [name for name in variable.replace(",", " ").split() if name]
    free = set().union(*(one.free_symbols for one in equations))
    unknowns = [_symbol(name) for name in names] or sorted(free, key=str)
    found = sympy.solve(equations, unknowns, dict=True)
    found.sort(key=lambda one: [sympy.default_sort_key(one[name]) for name in unknowns if name in one])
    lines = [", ".join(f"{name} = {one[name]}" for name in unknowns if name in one) for one in found]
    return " or ".join(lines) or "no solution"


def factor(text: str, variable: str) -> str:
    """Prime factors of a whole number, or the factors of an expression."""
    value = parse(text)
    if not value.is_Integer:
        return str(sympy.factor(value))
    powers = sorted(sympy.factorint(value).items())
    return " * ".join(f"{prime}**{power}" if power > 1 else str(prime) for prime, power in powers) or "1"


def integrate(text: str, variable: str) -> str:
    """An antiderivative, without the constant."""
    value = parse(text)
    found = sympy.integrate(value, _variable(value, variable))
    if found.has(sympy.Integral):
        raise Refused("found no antiderivative")
    return str(found)


def differentiate(text: str, variable: str) -> str:
    """The derivative."""
    value = parse(text)
    return str(sympy.diff(value, _variable(value, variable)))


OPERATIONS: dict[str, Callable[[str, str], str]] = {
    "simplify": lambda text, variable: str(sympy.simplify(parse(text))),
    "expand": lambda text, variable: str(sympy.expand(parse(text))),
    "factor": factor,
    "solve": solve,
    "differentiate": differentiate,
    "integrate": integrate,
}


def same(gold: dict[str, str], text: str) -> bool:
    """True if a text is an expression equal to `gold["expression"]`, or an antiderivative of `gold["integrand"]`."""
    try:
        value = parse(text)
    except Refused:
        return False
    if "integrand" in gold:
        unknown = sympy.Symbol(gold["variable"])
        return bool(sympy.simplify(sympy.diff(value, unknown) - parse(gold["integrand"])) == 0)
    return bool(sympy.simplify(value - parse(gold["expression"])) == 0)


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request: `{"result"}`, `{"verdicts"}` or `{"error"}`."""
    if "gold" in request:
        return {"verdicts": [same(request["gold"], text) for text in request["texts"]]}
    try:
        result = OPERATIONS[request["operation"]](request["expression"], request["variable"])
    except MemoryError:
        return {"error": "too hard: it needs too much memory"}
    except Exception as error:  # sympy raises whatever it likes on what it can't do
        return {"error": " ".join(str(error).split())[:200] or type(error).__name__}
    if len(result) > MAX_RESULT:
        return {"error": f"the result has {len(result)} characters, at most {MAX_RESULT} are allowed"}
    return {"result": result}


def warm_up() -> None:
    """Fills sympy's caches and loads what it imports late, for all later forks."""
    x = "x**2 - 3*x + 2"
    for operation in OPERATIONS:
        reply({"operation": operation, "expression": x, "variable": "x"})
    for more in ("x + y = 3; x - y = 1", "a = 3*b; a + b = 12"):
        reply({"operation": "solve", "expression": more, "variable": ""})
    reply({"operation": "integrate", "expression": "x*sin(x) + exp(x)/x", "variable": "x"})
    reply({"gold": {"integrand": "2*x", "variable": "x"}, "texts": ["x**2", "3*x + C"]})


def main() -> None:
    """Serves one request."""
    print(json.dumps(reply(json.load(sys.stdin))))
