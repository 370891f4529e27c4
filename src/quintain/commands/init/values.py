"""Arguments made up for a tool's parameters, plausible enough that a call may do something."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from quintain.interface.tools import Tool

DEEPEST = 4
"""Schemas that go on below this level (they may hold themselves) get no value."""
OPTIONAL_SHARE = 0.3
"""Share of the optional parameters that are given."""
_ATTEMPTS = 6
"""Tries for each set of arguments that is asked for."""

_WORDS = ("tea", "bread", "soap", "honey", "rice", "salt", "paper", "wool", "glass", "stone", "copper", "cedar")
_BY_FORMAT = {
    "date": "2024-05-{n:02d}",
    "date-time": "2024-05-{n:02d}T10:00:00Z",
    "time": "10:{n:02d}:00",
    "email": "{w}@example.com",
    "uri": "https://example.com/{w}",
    "uuid": "00000000-0000-4000-8000-0000000000{n:02d}",
}
_BY_NAME = {
    "date": "2024-05-{n:02d}",
    "time": "10:{n:02d}",
    "zone": "Etc/UTC",
    "mail": "{w}@example.com",
    "url": "https://example.com/{w}",
    "path": "{w}.txt",
    "file": "{w}.txt",
    "id": "{n}",
}
_QUOTED = re.compile(r"[`'\"]([^`'\"\s]{1,40})[`'\"]")
"""What a description quotes is most often an example."""


class NoValue(Exception):
    """Nothing that fits could be made up."""


def argument_sets(tool: Tool, count: int, rng: random.Random) -> list[dict[str, Any]]:
    """At most `count` different sets of arguments that fit a tool's schema; fewer where it allows or defies no more."""
    found: list[dict[str, Any]] = []
    for _ in range(_ATTEMPTS * count):
        made = _attempt(tool, rng)
        if made is not None and made not in found:
            found.append(made)
        if len(found) == count:
            break
    return found


def _attempt(tool: Tool, rng: random.Random) -> dict[str, Any] | None:
    try:
        made = _Maker(tool.parameters.get("$defs", {}), rng).object(tool.parameters, 0)
    except NoValue:
        return None
    return made if tool.check_arguments(made) is None else None


class _Maker:
    def __init__(self, definitions: Mapping[str, Any], rng: random.Random) -> None:
        self._definitions = definitions
        self._rng = rng

    def object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        chosen = {
            name: one
            for name, one in schema.get("properties", {}).items()
            if name in required or self._rng.random() < OPTIONAL_SHARE
        }
        return {name: self.value(one, name, depth + 1) for name, one in chosen.items()}

    def value(self, schema: Any, name: str, depth: int) -> Any:
        if depth > DEEPEST:
            raise NoValue
        if not isinstance(schema, dict):
            return self._word(name, {})
        if "$ref" in schema:
            return self.value(self._definitions[schema["$ref"].rpartition("/")[2]], name, depth + 1)
        for key in ("enum", "examples"):
            if schema.get(key):
                return self._rng.choice(schema[key])
        if "const" in schema:
            return schema["const"]
        for key in ("anyOf", "oneOf", "allOf"):
            if schema.get(key):
                return self.value(self._some(schema[key]), name, depth + 1)
        return self._typed(schema, name, depth)

    def _some(self, schemas: list[Any]) -> Any:
        return next((one for one in schemas if one != {"type": "null"}), schemas[0])

    def _typed(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        kinds = schema.get("type", "string")
        match kinds if isinstance(kinds, str) else self._some([one for one in kinds if one != "null"] or kinds):
            case "integer":
                return self._rng.randint(*_bounds(schema))
            case "number":
                low, high = _bounds(schema)
                return self._rng.randint(2 * low, 2 * high) / 2
            case "boolean":
                return self._rng.random() < 0.5
            case "null":
                return None
            case "array":
                least = max(1, schema.get("minItems", 1))
                return [self.value(schema.get("items"), name, depth + 1) for _ in range(least)]
            case "object":
                return self.object(schema, depth)
        return self._word(name, schema)

    def _word(self, name: str, schema: Mapping[str, Any]) -> str:
        quoted = _QUOTED.findall(str(schema.get("description", "")))
        if quoted:
            return str(self._rng.choice(quoted))
        hint = next((text for part, text in _BY_NAME.items() if part in name.lower()), "{w}")
        pattern = _BY_FORMAT.get(str(schema.get("format")), hint)
        return pattern.format(w=self._rng.choice(_WORDS), n=self._rng.randint(1, 28))


def _bounds(schema: Mapping[str, Any]) -> tuple[int, int]:
    """Whole numbers between a schema's bounds, from 1 to 100 where it has none."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(100, low + 100)))
    return int(low), max(int(low), int(high))
