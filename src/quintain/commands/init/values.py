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
_QUOTED = re.compile(r"\"([^\"]{1,40})\"|`([^`]{1,40})`|'([^'\s]{1,40})'")
"""What a description quotes is most often an example."""
_COMMA = r"(?:,\s*(?:or\s+|and\s+)?|\s+or\s+)"
_LISTED = re.compile(rf"(?:one of|either|such as|e\.g\.|for example)[:,]?\s+((?:[\w./-]+{_COMMA})+[\w./-]+)", re.I)


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


def examples(text: str) -> list[str]:
    """What a description gives as examples: what it quotes, else what it lists.

    >>> examples('The colour, such as "red" or "dark blue".'), examples("Unit: one of km, mi or m.")
    (['red', 'dark blue'], ['km', 'mi', 'm'])
    """
    quoted = ["".join(one) for one in _QUOTED.findall(text)]
    listed = _LISTED.search(text)
    if quoted or not listed:
        return quoted
    return [one.rstrip(".") for one in re.split(_COMMA, listed[1])]


def _mentioned(tool: Tool) -> dict[str, list[str]]:
    """Examples in a tool's own description, by parameter: those after its name and a colon, else those before any."""
    names = list(tool.parameters.get("properties", {}))
    if not names:
        return {}
    name = rf"\b({'|'.join(map(re.escape, names))})\s*(?:\([^)]*\))?:"
    general, *pieces = re.split(name, tool.description)
    own = {one: examples(text) for one, text in zip(pieces[::2], pieces[1::2], strict=True)}
    common = [one for one in examples(general) if one not in names]
    return {one: own.get(one) or common for one in names}


def _attempt(tool: Tool, rng: random.Random) -> dict[str, Any] | None:
    try:
        made = _Maker(tool, rng).object(tool.parameters, 0)
    except NoValue:
        return None
    return made if tool.check_arguments(made) is None else None


class _Maker:
    def __init__(self, tool: Tool, rng: random.Random) -> None:
        self._definitions: Mapping[str, Any] = tool.parameters.get("$defs", {})
        self._mentioned = _mentioned(tool)
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
        given = examples(str(schema.get("description", "")))
        if not given and "format" not in schema:
            given = self._mentioned.get(name, [])
        if given:
            return self._rng.choice(given)
        hint = next((text for part, text in _BY_NAME.items() if part in name.lower()), "{w}")
        pattern = _BY_FORMAT.get(str(schema.get("format")), hint)
        return pattern.format(w=self._rng.choice(_WORDS), n=self._rng.randint(1, 28))


def _bounds(schema: Mapping[str, Any]) -> tuple[int, int]:
    """Whole numbers between a schema's bounds, from 1 to 100 where it has none."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(100, low + 100)))
    return int(low), max(int(low), int(high))
