"""Strict JSON, as every dialect reads it: one meaning for every reader downstream, or an error with its place."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Literal, NoReturn

MAX_DEPTH = 64
"""Deepest nesting of arrays and objects; more would run readers downstream out of stack."""

MAX_INTEGER = 2**53 - 1
"""Largest integer all JSON readers agree on (RFC 7493, section 2.2)."""

Fault = Literal["syntax", "ended", "extra", "value"]
"""Broken syntax; text that stops too early; text after the value; valid JSON that `check` refuses."""

_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_INTEGER = len(str(MAX_INTEGER)) + 1


class JsonError(ValueError):
    """What is wrong with a text that should be JSON, in one line."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def loads(text: str) -> Any:
    """Reads one JSON value.

    Raises:
        JsonError: the text is not JSON (trailing commas, comments, `NaN`), an object repeats a key, or the
            value is one `check` refuses. The message names the character where it can.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_constant=lambda name: _constant(name, text),
        )
    except json.JSONDecodeError as error:
        raise JsonError(_fault(error, text), f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise JsonError("value", f"nested deeper than {MAX_DEPTH} levels") from None
    check(value)
    return value


def dumps(value: Any, *, tight: bool = False) -> str:
    """Writes what `loads` reads back as itself; `tight` leaves out the spaces after `,` and `:`.

    Raises:
        JsonError: `value` is one `check` refuses.
    """
    check(value)
    separators = (",", ":") if tight else (", ", ": ")
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=separators)


def check(value: Any) -> None:
    """Refuses values that some JSON reader would change or choke on.

    Raises:
        JsonError: nesting beyond `MAX_DEPTH`, an integer beyond `MAX_INTEGER`, a number that is not finite, text
            with a lone surrogate, a key that is no text, or a type JSON does not have.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise JsonError("value", f"nested deeper than {MAX_DEPTH} levels")


def _children(item: Any) -> list[Any]:
    """Checks one value and returns those inside it."""
    if isinstance(item, dict):
        keys = [key for key in item if not isinstance(key, str)]
        return _refuse("key that is no text") if keys else [*item.keys(), *item.values()]
    if isinstance(item, list):
        return item
    if isinstance(item, str):
        return _refuse("text with a lone surrogate") if _SURROGATE.search(item) else []
    if isinstance(item, float):
        return [] if math.isfinite(item) else _refuse("number that is not finite")
    if isinstance(item, int) and abs(item) > MAX_INTEGER:
        _refuse("integer beyond 2**53 (write it as text)")
    if item is None or isinstance(item, int):
        return []
    return _refuse(f"value of type {type(item).__name__}")


def _refuse(what: str) -> NoReturn:
    raise JsonError("value", f"{what} is not allowed")


def _fault(error: json.JSONDecodeError, text: str) -> Fault:
    if error.msg == "Extra data":
        return "extra"
    ended = error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip())
    return "ended" if ended else "syntax"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise JsonError("syntax", f"key {key[:40]!r} occurs twice in one object")
        found[key] = value
    return found


def _integer(digits: str) -> int:
    # int() is quadratic in the number of digits, and refuses thousands of them with an error of its own
    return int(digits) if len(digits) <= _LONGEST_INTEGER else _refuse("integer beyond 2**53 (write it as text)")


def _constant(name: str, text: str) -> NoReturn:
    places = (match.start() for match in _CONSTANT.finditer(text) if match.group(1))
    raise JsonError("syntax", f"{name} is no JSON value, at character {next(places)}")
