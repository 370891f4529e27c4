"""Cuts a function with all it needs out of a module's source: a small module that runs by itself."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

Definitions = dict[str, list[ast.stmt]]


@cache
def cut_out(module: str, name: str) -> str:
    """Source of a module that defines `name` and what it needs, with its comments and docstrings.

    Args:
        module: dotted name of an installed module; it is read, not imported.
        name: of a function or class at its top level.

    Raises:
        LookupError: the module or the name does not exist in this Python.
    """
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"no module {module!r}")
    text = Path(spec.origin).read_text(encoding="utf-8")
    definitions = _definitions(ast.parse(text))
    if name not in definitions:
        raise LookupError(f"no {name!r} in {module!r}")
    needed: dict[ast.stmt, set[str]] = {}
    waiting, seen = [name], {name}
    while waiting:
        current = waiting.pop()
        for statement in definitions.get(current, ()):
            needed.setdefault(statement, set()).add(current)
            new = _names(statement) - seen if not isinstance(statement, ast.Import | ast.ImportFrom) else set()
            seen |= new
            waiting += sorted(new)
    lines = text.splitlines()
    ordered = sorted(needed, key=lambda statement: statement.lineno)
    imports = [_import(one, needed[one]) for one in ordered if isinstance(one, ast.Import | ast.ImportFrom)]
    others = [_text(lines, one) for one in ordered if not isinstance(one, ast.Import | ast.ImportFrom)]
    return "\n".join(imports) + "\n\n" * bool(imports) + "\n\n".join(others) + "\n"


def _definitions(tree: ast.Module) -> Definitions:
    """Names of the top level with the statements that make them, in order."""
    found: Definitions = {}
    for statement in tree.body:
        for name in _made(statement):
            if not (isinstance(statement, ast.Try) and name in found):  # an accelerator for what is defined already
                found.setdefault(name, []).append(statement)
    return found


def _made(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in aliases)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For():
            stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name | ast.Subscript))
            yield from {name for node in stored if (name := _stored(node))}
        case ast.Try(body=body):
            yield from (name for one in body for name in _made(one))
        case _:
            return


def _stored(node: ast.Name | ast.Subscript) -> str:
    """The name that an assignment target changes; empty for one that is only read."""
    if not isinstance(node.ctx, ast.Store):
        return ""
    if isinstance(node, ast.Subscript):
        return node.value.id if isinstance(node.value, ast.Name) else ""
    return node.id


def _names(statement: ast.stmt) -> set[str]:
    """Names of the module that a statement reads, those inside its functions included."""
    found: set[str] = set()
    waiting = [symtable.symtable(ast.unparse(statement), "<slice>", "exec")]
    while waiting:
        table = waiting.pop()
        top = table.get_type() == "module"
        found |= {one.get_name() for one in table.get_symbols() if one.is_referenced() and (top or one.is_global())}
        waiting += table.get_children()
    return {name for name in found if not hasattr(builtins, name)}


def _import(statement: ast.Import | ast.ImportFrom, names: set[str]) -> str:
    """The import, with the needed names alone."""
    kept = [alias for alias in statement.names if (alias.asname or alias.name).partition(".")[0] in names]
    if isinstance(statement, ast.Import):
        return ast.unparse(ast.Import(names=kept))
    return ast.unparse(ast.ImportFrom(module=statement.module, names=kept, level=statement.level))


def _text(lines: list[str], statement: ast.stmt) -> str:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(one.lineno for one in decorators)])
    return "\n".join(lines[first - 1 : statement.end_lineno])
