"""Shapes of JSON values: what a schema declares or what was observed, and how two shapes differ, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

_STRUCTURE = ("type", "properties", "required", "items", "$ref", "$defs", "anyOf", "oneOf", "allOf")

Kind = Literal["parameter", "result field"]
_ROOT: dict[Kind, str] = {"parameter": "parameters", "result field": "result"}
_REQUIRED: dict[Kind, tuple[str, str]] = {
    "parameter": ("is no longer required", "is now required"),
    "result field": ("may now be missing", "is now always there"),
}


@dataclass(frozen=True)
class Shape:
    """Keys and types of JSON values.

    Attributes:
        types: names of JSON types; empty if nothing is known.
        fields: shapes of an object's members.
        required: members that are always there.
        items: shape of an array's items; None if nothing is known.
        rules: everything else a schema says (`default`, `enum`, `description`, bounds).
    """

    types: frozenset[str] = frozenset()
    fields: Mapping[str, Shape] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    items: Shape | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)

    @property
    def vague(self) -> bool:
        """True if it leaves open what members or items look like, so a change of those would not show."""
        open_object = "object" in self.types and not self.fields
        open_array = "array" in self.types and (self.items is None or self.items.vague)
        return not self.types or open_object or open_array or any(shape.vague for shape in self.fields.values())

    def to_schema(self) -> dict[str, Any]:
        """The shape as a JSON Schema, which `shape_of_schema` reads back."""
        types = sorted(self.types)
        schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types} if types else {}
        if "object" in self.types:
            schema["properties"] = {name: shape.to_schema() for name, shape in self.fields.items()}
            schema["required"] = sorted(self.required)
        if self.items is not None:
            schema["items"] = self.items.to_schema()
        return schema | dict(self.rules)


def shape_of_value(value: Any) -> Shape:
    """Shape of one JSON value; the items of an array are merged."""
    if isinstance(value, dict):
        fields = {str(name): shape_of_value(member) for name, member in value.items()}
        return Shape(frozenset({"object"}), fields, frozenset(fields))
    if isinstance(value, list):
        items: Shape | None = None
        for item in value:
            items = shape_of_value(item) if items is None else _merge(items, shape_of_value(item))
        return Shape(frozenset({"array"}), items=items)
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return Shape(frozenset({names[type(value)]}))


def shape_of_schema(schema: Mapping[str, Any] | None) -> Shape:
    """Shape a JSON Schema declares; local references are followed, a recursive one only once."""
    return Shape() if schema is None else _read(schema, schema.get("$defs", {}), ())


def _read(schema: Any, definitions: Mapping[str, Any], path: tuple[str, ...]) -> Shape:
    if not isinstance(schema, dict):
        return Shape()
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in path:
        return Shape(frozenset({f"recursive {name}"}))
    types = schema.get("type", [])
    shape = Shape(
        frozenset([types] if isinstance(types, str) else types),
        {key: _read(member, definitions, path) for key, member in schema.get("properties", {}).items()},
        frozenset(schema.get("required", ())),
        _read(schema["items"], definitions, path) if "items" in schema else None,
        {key: value for key, value in schema.items() if key not in _STRUCTURE},
    )
    others = [part for key in ("anyOf", "oneOf") for part in schema.get(key, ())]
    for index, part in enumerate(others):
        read = _read(part, definitions, path)
        shape = _join(shape, read) if index == 0 else _merge(shape, read)
    for part in schema.get("allOf", ()):
        shape = _join(shape, _read(part, definitions, path))
    return _join(shape, _read(definitions[name], definitions, (*path, name))) if name in definitions else shape


def _merge(one: Shape, other: Shape) -> Shape:
    """Shape of values that are `one` or `other`: only members of both stay required."""
    objects = [shape for shape in (one, other) if "object" in shape.types]
    required = frozenset.intersection(*(shape.required for shape in objects)) if objects else frozenset()
    both = _join(one, other)
    return Shape(both.types, both.fields, required, both.items, both.rules)


def _join(one: Shape, other: Shape) -> Shape:
    """Everything both say."""
    fields = dict(one.fields)
    for name, shape in other.fields.items():
        fields[name] = _merge(fields[name], shape) if name in fields else shape
    items = _merge(one.items, other.items) if one.items and other.items else one.items or other.items
    rules = {**other.rules, **one.rules}
    return Shape(one.types | other.types, fields, one.required | other.required, items, rules)


def differences(old: Shape, new: Shape, kind: Kind, path: str = "") -> Iterator[str]:
    """How `new` differs from `old`, one line for each change.

    A field that vanished beside one of the same type that appeared is taken for renamed.

    Args:
        old: the shape before.
        new: the shape now.
        kind: what to call a field.
        path: where both stand; `a.b` is a member, `a[]` an item.
    """
    here = f'{kind} "{path}"' if path else _ROOT[kind]
    if old.types != new.types and old.types and new.types:
        yield f"{here}: type changed from {_types(old)} to {_types(new)}"
        if not old.types & new.types:
            return
    for rule in sorted({*old.rules, *new.rules}):
        yield from _rule(here, rule, old.rules, new.rules)
    renamed = _renames(old, new)
    for before, after in renamed.items():
        yield f'{kind} "{_at(path, before)}" renamed to "{_at(path, after)}"'
    for name in old.fields:
        if name not in new.fields and name not in renamed:
            yield f'{kind} "{_at(path, name)}" removed'
    for name, shape in new.fields.items():
        if name not in old.fields and name not in renamed.values():
            needed = ", required" if name in new.required else ""
            yield f'{kind} "{_at(path, name)}" added ({_types(shape)}{needed})'
    for name, shape in old.fields.items():
        after = renamed.get(name, name)
        if after in new.fields:
            if (name in old.required) != (after in new.required):
                yield f'{kind} "{_at(path, after)}" {_REQUIRED[kind][after in new.required]}'
            yield from differences(shape, new.fields[after], kind, _at(path, after))
    if old.items and new.items:
        yield from differences(old.items, new.items, kind, f"{path}[]")
    elif old.items and "array" in new.types:
        yield f"{here}: items can no longer be compared (there are none, or nothing is said of them)"


def _renames(old: Shape, new: Shape) -> dict[str, str]:
    """Old to new names, where exactly one field of a type vanished and exactly one appeared."""
    gone = [name for name in old.fields if name not in new.fields]
    come = [name for name in new.fields if name not in old.fields]
    found = {}
    for name in gone:
        twins = [other for other in gone if old.fields[other].types == old.fields[name].types]
        heirs = [other for other in come if new.fields[other].types == old.fields[name].types]
        if len(twins) == len(heirs) == 1:
            found[name] = heirs[0]
    return found


def _rule(here: str, rule: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = old.get(rule), new.get(rule)
    if before == after and (rule in old) == (rule in new):
        return
    if rule == "description":
        yield f"{here}: description changed"
        return
    yield f"{here}: {rule} changed from {_short(rule, old)} to {_short(rule, new)}"


def _short(rule: str, rules: Mapping[str, Any]) -> str:
    if rule not in rules:
        return "nothing"
    text = json.dumps(rules[rule], ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 60 else text[:57] + "..."


def _types(shape: Shape) -> str:
    return " or ".join(sorted(shape.types)) or "any"


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
