"""Schemas of other drafts, rewritten as draft 2020-12."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.interface.errors import InputError
from quintain.worlds.bridges.schemas import parameters, rewritten


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        (
            {"items": [{"type": "string"}], "additionalItems": False},
            {"prefixItems": [{"type": "string"}], "items": False},
        ),
        (
            {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
        ),
        ({"type": "string", "nullable": True, "enum": ["x"]}, {"type": ["string", "null"], "enum": ["x", None]}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "a", "type": "object"}, {"type": "object"}),
        ({"title": "Order", "properties": {"title": {"title": "Title"}}}, {"properties": {"title": {}}}),
    ],
)
def test_what_older_drafts_wrote_otherwise_means_the_same(old, new):
    assert rewritten(old) == new
    jsonschema.Draft202012Validator.check_schema(new)


def test_definitions_are_gathered_and_a_schema_may_hold_itself():
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/definitions/Tree"}}}}
    schema = {"$ref": "#/definitions/Tree", "definitions": {"Tree": tree, "Unused": {"type": "null"}}}
    made = rewritten(schema)
    assert made["$ref"] == "#/$defs/Tree"
    assert set(made["$defs"]) == {"Tree"}
    check = jsonschema.Draft202012Validator(made)
    assert check.is_valid({"children": [{"children": []}]})
    assert not check.is_valid({"children": [{"children": [1]}]})


def test_references_into_a_larger_document_stand_alone_afterwards():
    document = {"components": {"schemas": {"Pet": {"properties": {"kind": {"$ref": "#/components/schemas/Kind/Pet"}}}}}}
    document["components"]["schemas"]["Kind"] = {"Pet": {"type": "string"}}
    made = rewritten({"$ref": "#/components/schemas/Pet"}, document)
    assert made == {
        "$ref": "#/$defs/Pet",
        "$defs": {"Pet": {"properties": {"kind": {"$ref": "#/$defs/Pet_2"}}}, "Pet_2": {"type": "string"}},
    }


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "https://example.com/a.json"}, "leads out of the document; only '#/...' is followed"),
        ({"$ref": "#/definitions/Gone"}, "leads nowhere: there is no 'definitions'"),
        (
            {
                "$ref": "#/definitions/A",
                "definitions": {"A": {"$ref": "#/definitions/B"}, "B": {"$ref": "#/definitions/A"}},
            },
            "references go round in a circle: #/definitions/A -> #/definitions/B -> #/definitions/A",
        ),
        ({"properties": {"a": "integer"}}, "a JSON Schema is an object, found 'integer'"),
        ([], "a JSON Schema is an object, found '[]'"),
    ],
)
def test_what_can_not_be_rewritten_is_one_line(schema, words):
    with pytest.raises(InputError) as caught:
        rewritten(schema, where="tool 'a'")
    assert str(caught.value).startswith("tool 'a': ")
    assert words in str(caught.value)


def test_parameters_are_an_object():
    assert parameters({}) == {"type": "object", "properties": {}}
    assert parameters(None) == {"type": "object", "properties": {}}
    with pytest.raises(InputError, match="parameters are an object, found type 'array'"):
        parameters({"type": "array"})


SCALARS = st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "boolean", "null"])})
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(st.text(max_size=4), inner)}),
    ),
    max_leaves=8,
)


@given(SCHEMAS)
def test_a_schema_of_the_present_draft_stays_as_it_is(schema):
    assert rewritten(schema) == schema


@given(
    SCHEMAS,
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one), max_leaves=5),
)
def test_draft_7_and_its_rewriting_accept_the_same_values(schema, value):
    old = {"definitions": {"Inner": schema}, "items": [{"$ref": "#/definitions/Inner"}], "additionalItems": schema}
    new = jsonschema.Draft202012Validator(rewritten(old))
    assert new.is_valid(value) == jsonschema.Draft7Validator(old).is_valid(value)
