"""Small faults in Python source: what a person might have mistyped, put in by the syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPERATORS: Final[dict[type[ast.operator], tuple[type[ast.operator], ...]]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Div: (ast.FloorDiv,),
    ast.FloorDiv: (ast.Mod,),
    ast.Mod: (ast.FloorDiv,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.Mult: (ast.Add,),
}
_CALLS: Final = {
    "min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "lower": "upper", "upper": "lower",
    "startswith": "endswith", "endswith": "startswith", "lstrip": "rstrip", "rstrip": "lstrip", "find": "rfind",
    "rfind": "find", "floor": "ceil", "append": "extend", "strip": "rstrip", "split": "rsplit", "index": "count",
}  # fmt: skip
_LARGEST = 4096  # constants beyond it are tables and magic numbers, where one more or less is hard to see


@dataclass(frozen=True, slots=True)
class Mutation:
    """One replaced piece of source.

    Attributes:
        kind: which rule made it.
        start: byte offset of the piece.
        stop: byte offset of its end.
        text: what stands there instead.
    """

    kind: str
    start: int
    stop: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """The source with the piece replaced."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


def mutations(source: str) -> list[Mutation]:
    """Every mutation of the code inside functions, in the order of the source. Docstrings and annotations stay."""
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    found = []
    for node in _inside_functions(ast.parse(source)):
        for kind, changed in _changes(node):
            start = offsets[node.lineno - 1] + node.col_offset
            stop = offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            found.append(Mutation(kind, start, stop, _spell(changed)))
    return sorted(set(found), key=lambda one: (one.start, one.stop, one.text))


def _spell(node: ast.AST) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.BoolOp | ast.UnaryOp) else text


def _inside_functions(tree: ast.Module) -> Iterator[ast.expr]:
    """Expressions of function bodies, without docstrings, annotations and formatted strings."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    left_out = {id(one) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for one in ast.walk(node)}
    for function in functions:
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.expr) and id(node) not in left_out:
                    yield node


def _changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(ops=[operator]):
            for other in _COMPARISONS[type(operator)]:
                yield "comparison", _with(node, ops=[other()])
        case ast.BinOp(op=operator):
            for replacement in _OPERATORS.get(type(operator), ()):
                yield "operator", _with(node, op=replacement())
        case ast.BoolOp(op=ast.And()):
            yield "boolean", _with(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield "boolean", _with(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "negation", operand
        case ast.Constant(value=int() as value) if not isinstance(value, bool) and value <= _LARGEST:
            yield "constant", ast.Constant(value + 1)
            if value:
                yield "constant", ast.Constant(value - 1)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield "call", _with(node, func=ast.Name(_CALLS[name]))
        case ast.Call(func=ast.Attribute(attr=name)) if name in _CALLS:
            yield "call", _with(node, func=_with(node.func, attr=_CALLS[name]))
        case ast.Call(args=[first, second], keywords=[]):
            yield "arguments", _with(node, args=[second, first])
        case ast.IfExp():
            yield "branches", _with(node, body=node.orelse, orelse=node.body)
        case _:
            return


def _with(node: ast.expr, **fields: object) -> ast.expr:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
