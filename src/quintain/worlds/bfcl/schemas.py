"""BFCL's function documents as tools: its type names are not JSON Schema's, and its names hold dots.

| BFCL | JSON Schema |
|---|---|
| `dict` | `object` |
| `float` | `number` |
| `tuple` | `array`, with `"$comment": "tuple"` to find the way back |
| `any` | no `type` |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from quintain.interface.tools import Tool

_TUPLE = {"$comment": "tuple"}
_FORTH = {"dict": "object", "float": "number"}
_BACK = {theirs: ours for ours, theirs in _FORTH.items()}


def to_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of BFCL as JSON Schema; keywords that both know stay as they are."""
    made = {key: _inner(key, value, to_json_schema) for key, value in schema.items()}
    kind = made.pop("type", "any")
    if kind == "any":
        return made
    if kind == "tuple":
        return {"type": "array", **_TUPLE, **made}
    return {"type": _FORTH.get(kind, kind), **made}


def from_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of BFCL that `to_json_schema` turns into this one."""
    made = {key: _inner(key, value, from_json_schema) for key, value in schema.items()}
    kind = made.pop("type", "any")
    if kind == "array" and _TUPLE.items() <= made.items():
        return {"type": "tuple", **{key: value for key, value in made.items() if key not in _TUPLE}}
    return {"type": _BACK.get(kind, kind), **made}


def _inner(key: str, value: Any, convert: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    if key == "properties":
        return {name: convert(one) for name, one in value.items()}
    return convert(value) if key == "items" else value


def tool_name(function: str) -> str:
    """A function's name with `_` for what the chat completions protocol allows in no name, such as a dot."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", function)


def tools(functions: Sequence[Mapping[str, Any]], run: Callable[[str], Callable[..., Any]]) -> Iterator[Tool]:
    """Function documents as tools.

    Args:
        functions: with `name`, `description` and `parameters` as BFCL spells them.
        run: what is called for the function of a name.
    """
    for one in functions:
        parameters = to_json_schema(one["parameters"])
        yield Tool(tool_name(one["name"]), one["description"], parameters, function=run(one["name"]))
