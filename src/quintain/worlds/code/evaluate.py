"""Evaluates calls of a module and reports the values. Runs inside the sandbox, with the standard library only.

Only calls are known inside, never what they should give: the host compares. So there is nothing to forge here; whatever
code under judgement does to this process, the one thing it can send out is values.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

DEPTH = 12  # of nesting; deeper values are not compared


def encode(value: Any, depth: int = 0) -> list[Any]:
    """A value as JSON that keeps its type; objects of other classes only by the name of theirs."""
    kind = type(value)
    if depth > DEPTH:
        return ["deep"]
    if value is None or kind is bool:
        return ["constant", value]
    if kind is int:
        return ["int", hex(value)]
    if kind is float:
        return ["float", value.hex()]
    if kind is str:
        return ["str", value]
    if kind in (bytes, bytearray):
        return ["bytes", value.hex()]
    if kind in (list, tuple):
        return [kind.__name__, [encode(one, depth + 1) for one in value]]
    if kind in (set, frozenset):
        return ["set", sorted((encode(one, depth + 1) for one in value), key=json.dumps)]
    if kind is dict:
        return [
            "dict",
            sorted(([encode(key, depth + 1), encode(one, depth + 1)] for key, one in value.items()), key=json.dumps),
        ]
    return ["object", kind.__name__]


def evaluate(expression: str, names: dict[str, Any]) -> list[Any]:
    """The encoded value of an expression, or the name of the exception it raises."""
    try:
        return encode(eval(expression, dict(names)))
    except Exception as error:
        return ["raises", type(error).__name__]


def main() -> None:
    """Reads `{"module", "calls"}` from standard input and writes the values in one piece, when all are known."""
    request = json.loads(sys.stdin.read())
    report = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    names = vars(__import__(request["module"]))
    values = [evaluate(expression, names) for expression in request["calls"]]
    data = json.dumps(values).encode()
    while data:
        data = data[os.write(report, data) :]
