"""BFCL's schemas and names become JSON Schema and the protocol's names, and schemas find the way back."""

from __future__ import annotations

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from quintain.worlds.bfcl.schemas import from_json_schema, to_json_schema, tool_name, tools

SCALARS = st.sampled_from(["string", "integer", "float", "boolean", "any"]).map(lambda kind: {"type": kind})
NAMES = st.sampled_from(["type", "items", "properties", "x", "default"])


def nested(inner):
    lists = st.builds(lambda kind, items: {"type": kind, "items": items}, st.sampled_from(["array", "tuple"]), inner)
    objects = st.dictionaries(NAMES, inner).map(lambda found: {"type": "dict", "properties": found})
    described = inner.map(lambda schema: {**schema, "description": "d", "default": {"type": "dict"}, "optional": True})
    return lists | objects | described


@given(st.recursive(SCALARS, nested, max_leaves=8))
def test_a_schema_becomes_valid_json_schema_and_finds_the_way_back(schema):
    made = to_json_schema(schema)
    jsonschema.Draft202012Validator.check_schema(made)
    assert from_json_schema(made) == schema


def test_every_foreign_type_takes_the_values_it_means():
    properties = {
        "where": {"type": "tuple", "items": {"type": "float"}},
        "what": {"type": "any"},
        "how": {"type": "dict", "properties": {"type": {"type": "float"}}},
    }
    made = jsonschema.Draft202012Validator(to_json_schema({"type": "dict", "properties": properties}))
    assert made.is_valid({"where": [1, 2.5], "what": "x", "how": {"type": 1.5}})
    assert made.is_valid({"what": [None]})
    assert not made.is_valid({"where": "1, 2"})
    assert not made.is_valid({"how": {"type": "x"}})


def test_a_property_named_like_a_keyword_is_a_property():
    schema = {"type": "dict", "properties": {"properties": {"type": "float"}, "items": {"type": "tuple"}}}
    made = to_json_schema(schema)["properties"]
    assert made == {"properties": {"type": "number"}, "items": {"type": "array", "$comment": "tuple"}}


def test_names_with_dots_become_names_the_protocol_allows():
    assert tool_name("math.hypot") == "math_hypot"
    document = {"name": "math.hypot", "description": "d", "parameters": {"type": "dict", "properties": {}}}
    (one,) = tools([document], lambda name: lambda: f"ran {name}")
    assert one.name == "math_hypot"
    assert one.function is not None
    assert one.function() == "ran math.hypot"
