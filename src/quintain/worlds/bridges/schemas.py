"""JSON Schemas as other programs write them, rewritten as draft 2020-12: what tools here are checked by.

MCP servers and OpenAPI files bring drafts 4 to 2019-09 and OpenAPI's own additions, schemas without a `type`, and
references to places of their own. The rewritten schema says the same and stands alone: every reference leads to its
`$defs`. Titles are left out; generators write them from the names, and they cost an agent tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from quintain.interface.errors import InputError

Schema = dict[str, Any]

_IN_MAPS = ("properties", "patternProperties", "dependentSchemas")
_IN_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_ALONE = (
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_DROPPED = (
    "$anchor",
    "$defs",
    "$id",
    "$schema",
    "definitions",
    "discriminator",
    "example",
    "externalDocs",
    "id",
    "xml",
)
"""Keys that are gone after rewriting: definitions are gathered anew, the others say nothing about a value."""


def rewritten(schema: Any, document: Any = None, where: str = "schema") -> Schema:
    """A schema of any draft as one of draft 2020-12 that stands alone.

    Args:
        schema: as it came; None stands for an object without members.
        document: what `#/...` references start from; the schema itself by default.
        where: for error messages.

    Raises:
        InputError: it is no schema, or a reference leads elsewhere, nowhere or only to itself.
    """
    if schema is None:
        return {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        raise InputError(f"{where}: a JSON Schema is an object, found {str(schema)[:60]!r}")
    writer = _Rewriter(schema if document is None else document, where)
    made = writer.object(schema)
    return made | ({"$defs": writer.definitions} if writer.definitions else {})


def parameters(schema: Any, document: Any = None, where: str = "schema") -> Schema:
    """The same for a tool's parameters, which are an object whether the schema says so or not.

    Raises:
        InputError: as `rewritten`, or its values are no objects.
    """
    made = {"type": "object"} | rewritten(schema, document, where)
    if made["type"] != "object":
        raise InputError(f"{where}: parameters are an object, found type {made['type']!r}")
    return {"properties": {}} | made


class _Rewriter:
    def __init__(self, document: Any, where: str) -> None:
        self.definitions: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._document = document
        self._where = where

    def value(self, schema: Any) -> Any:
        """Any schema: an object, or true or false."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise InputError(f"{self._where}: a JSON Schema is an object, found {str(schema)[:60]!r}")
        return self.object(schema)

    def object(self, schema: Schema) -> Schema:
        """A schema that is an object."""
        made = dict(self._members(schema))
        _bounds(made)
        if schema.get("nullable") is True:
            _allow_null(made)
        made.pop("nullable", None)
        return made

    def _members(self, schema: Schema) -> Iterator[tuple[str, Any]]:
        for key, value in schema.items():
            match key:
                case "$ref":
                    yield key, self._reference(value)
                case "dependencies":
                    yield from self._dependencies(value)
                case "items" if isinstance(value, list):  # a tuple, before 2020-12
                    yield "prefixItems", [self.value(one) for one in value]
                    if "additionalItems" in schema:
                        yield "items", self.value(schema["additionalItems"])
                case "title" if isinstance(value, str):
                    continue
                case "additionalItems":
                    continue
                case _ if key in _DROPPED:
                    continue
                case _ if key in _IN_MAPS and isinstance(value, dict):
                    yield key, {name: self.value(one) for name, one in value.items()}
                case _ if key in _IN_LISTS and isinstance(value, list):
                    yield key, [self.value(one) for one in value]
                case _ if key in _ALONE:
                    yield key, self.value(value)
                case _:
                    yield key, value

    def _dependencies(self, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        lists = {name: one for name, one in value.items() if isinstance(one, list)}
        schemas = {name: self.value(one) for name, one in value.items() if not isinstance(one, list)}
        if lists:
            yield "dependentRequired", lists
        if schemas:
            yield "dependentSchemas", schemas

    def _reference(self, pointer: Any) -> str:
        """The reference to a definition, which is made on its first use: a schema may hold itself."""
        target, found = _follow(pointer, self._document, self._where)
        if target not in self._names:
            name = self._names[target] = self._name(target)
            self.definitions[name] = True  # taken, before what it holds is rewritten
            self.definitions[name] = self.value(found)
        return f"#/$defs/{self._names[target]}"

    def _name(self, pointer: str) -> str:
        """The last part of a pointer, numbered where two end alike."""
        plain = "".join(char if char.isalnum() or char in "_.-" else "_" for char in pointer.split("/")[-1]) or "root"
        name, number = plain, 1
        while name in self.definitions:
            number += 1
            name = f"{plain}_{number}"
        return name


def pointed(record: Any, document: Any, where: str) -> Any:
    """What a `{"$ref": ...}` leads to; anything else is itself.

    Raises:
        InputError: it leads elsewhere, nowhere or only to itself.
    """
    is_reference = isinstance(record, dict) and "$ref" in record
    return _follow(record["$ref"], document, where)[1] if is_reference else record


def _follow(pointer: Any, document: Any, where: str) -> tuple[str, Any]:
    """Where a chain of references ends, and what stands there."""
    seen: list[Any] = []
    found: Any = {"$ref": pointer}
    while isinstance(found, dict) and set(found) == {"$ref"}:
        pointer = found["$ref"]
        if pointer in seen:
            raise InputError(f"{where}: references go round in a circle: {' -> '.join([*seen, pointer])}")
        seen.append(pointer)
        found = _at(pointer, document, where)
    return pointer, found


def _at(pointer: Any, document: Any, where: str) -> Any:
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        raise InputError(f"{where}: $ref {pointer!r} leads out of the document; only '#/...' is followed")
    found = document
    for part in pointer.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            raise InputError(f"{where}: $ref {pointer!r} leads nowhere: there is no {key!r}")
    return found


def _bounds(made: Schema) -> None:
    """Draft 4 and OpenAPI 3.0 mark an exclusive bound with true."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(exclusive), bool):
            strict = made.pop(exclusive)
            if strict and bound in made:
                made[exclusive] = made.pop(bound)


def _allow_null(made: Schema) -> None:
    """OpenAPI 3.0 writes `nullable` where JSON Schema has the type `null`."""
    if isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    if isinstance(made.get("enum"), list) and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
