"""JSON Schemas of tools made strict enough for a grammar: whatever it generates, every reader reads alike."""

from __future__ import annotations

from typing import Any, NoReturn

from quintain.interface.errors import InputError

Schema = dict[str, Any]

LARGEST = 2**53 - 1
"""Largest whole number that dialects read (RFC 7493)."""

JSON_STYLE: dict[bool, Schema] = {
    tight: {"whitespace_flexible": False, "item_separator": comma, "key_separator": colon}
    for tight, comma, colon in ((True, ",", ":"), (False, ", ", ": "))
}
"""llguidance's options for JSON with and without spaces: as dialects write it, and no room for endless white space."""

_BOUNDS = {"minimum": -LARGEST, "maximum": LARGEST}
_NARROWS_TEXT = {"enum", "const", "pattern", "format", "minLength", "maxLength"}
_UNIONS = ("anyOf", "oneOf", "allOf")
_SAID = ("title", "description", "default", "examples")
"""Keys that say something to a reader and nothing to a grammar."""


def closed(tool: str, schema: Schema, text: str) -> Schema:
    """The parameters of a tool with objects closed, numbers bounded and texts free of markers.

    Args:
        tool: its name, for errors.
        schema: of its parameters.
        text: regular expression that every text must match.

    Raises:
        InputError: a value may be anything, or an object may have any keys, which a grammar can't keep from repeating.
    """
    return _Closer(tool, text).object({"type": "object", "properties": {}} | schema, "")


def takes_text(schema: Any) -> bool:
    """Whether any text fits a parameter's schema."""
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type", ())
    text = "string" in ([kind] if isinstance(kind, str) else kind) and not _NARROWS_TEXT & set(schema)
    return text or any(takes_text(one) for key in _UNIONS for one in schema.get(key, ()))


def _unsaid(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in _SAID}


class _Closer:
    def __init__(self, tool: str, text: str) -> None:
        self._tool = tool
        self._pattern = f"^{text}$".replace(r"\/", "/")

    def value(self, schema: Any, where: str) -> Schema:
        """Any schema below the parameters; `where` is its path."""
        if not isinstance(schema, dict):
            self._refuse(where, "may be anything")
        known = _unsaid(schema)
        for key in _UNIONS:
            if key in known:
                return known | {key: [self.value(one, where) for one in known[key]]}
        if isinstance(known.get("type"), list):
            return {"anyOf": [self.value(known | {"type": one}, where) for one in known["type"]]}
        if "$ref" in known or "enum" in known or "const" in known:
            return known
        return self._typed(known, where)

    def _typed(self, schema: Schema, where: str) -> Schema:
        match schema.get("type"):
            case "object" if "properties" in schema or schema.get("additionalProperties", True) is False:
                return self.object(schema, where)
            case "object":
                self._refuse(where, "may have any keys, which a grammar can't keep from repeating")
            case "array":
                return schema | {"items": self.value(schema.get("items"), f"{where}[]")}
            case "string":
                return schema | ({} if {"pattern", "format"} & set(schema) else {"pattern": self._pattern})
            case "integer" | "number":
                return _BOUNDS | schema
            case "boolean" | "null":
                return schema
            case _:
                self._refuse(where, "may be anything")

    def object(self, schema: Schema, where: str) -> Schema:
        """A schema of type `object`."""
        properties = {name: self.value(one, f"{where}.{name}") for name, one in schema.get("properties", {}).items()}
        found = _unsaid(schema) | {"properties": properties, "additionalProperties": False}
        if "$defs" in schema:
            found["$defs"] = {name: self.value(one, f"{where}.{name}") for name, one in schema["$defs"].items()}
        return found

    def _refuse(self, where: str, why: str) -> NoReturn:
        name = where.removeprefix(".") or "its parameters"
        raise InputError(f"grammar: tool {self._tool!r}: {name} {why}; give it a type, or leave `grammar` off")
