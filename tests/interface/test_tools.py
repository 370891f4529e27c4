"""Tools: schemas from typed functions, arguments and results checked, digests."""

from __future__ import annotations

import datetime
import enum
import re
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from pydantic import BaseModel, Field
from strategies import json_values

from quintain.interface.errors import InputError
from quintain.interface.tools import ResultError, Tool, Toolset, tool


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Address(BaseModel):
    street: str
    number: int = 1


class Till:
    def __init__(self) -> None:
        self.prices = {"tea": 250}

    @tool
    def price(self, item: str, count: int = 1) -> int:
        """Price of an item,
        in cents.

        Args:
            item: exact name of the item.
            count: how many.
        """
        return self.prices[item] * count

    @tool(name="find", read_only=True)
    def find_items(self, title: str, sizes: list[Size], unit: Literal["kg", "g"] = "kg") -> list[str]:
        """Finds items."""
        return [f"{title} {size.name} {unit}" for size in sizes]

    def helper(self) -> None:
        """No tool."""


class BiggerTill(Till):
    @tool
    def send(self, to: Address, when: datetime.date) -> dict[str, Any]:
        """Sends."""
        return {"street": to.street, "when": when}

    @tool
    def price(self, item: str) -> int:
        """Another price."""
        return 1


TOOLS = Toolset.of(Till())


def test_docstring_and_annotations_make_the_specification() -> None:
    assert TOOLS["price"].spec() == {
        "name": "price",
        "description": "Price of an item, in cents.",
        "parameters": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "item": {"type": "string", "description": "exact name of the item."},
                "count": {"type": "integer", "default": 1, "description": "how many."},
            },
            "required": ["item"],
        },
        "result": {"type": "integer"},
    }


def test_methods_come_in_order_of_definition_and_a_subclass_overrides() -> None:
    assert TOOLS.names == ["price", "find"]
    bigger = Toolset.of(BiggerTill())
    assert bigger.names == ["price", "find", "send"]
    assert bigger["price"].description == "Another price."


def test_a_parameter_named_title_keeps_its_schema() -> None:
    assert TOOLS["find"].parameters["properties"]["title"] == {"type": "string"}


def test_signatures_are_short() -> None:
    assert TOOLS["price"].signature() == "price(item: string, count?: integer)"
    assert Tool("a", "", {"properties": {"b": {"enum": ["x", 1]}, "c": {"type": ["string", "null"]}}}).signature() == (
        'a(b?: "x"|1, c?: string|null)'
    )
    nested = Tool(
        "a", "", {"properties": {"b": {"type": "array", "items": {"type": "integer"}}, "c": {}}, "required": ["b"]}
    )
    assert nested.signature() == "a(b: [integer], c?: any)"


def test_a_tool_of_an_instance_runs_on_that_instance() -> None:
    till = Till()
    till.prices = {"茶": 7}
    found = Toolset.of(till)["price"]
    assert found.function is not None
    assert found.function(**found.keywords({"item": "茶", "count": 2})) == 14


def test_json_arguments_become_python_values() -> None:
    tools = Toolset.of(BiggerTill())
    assert tools["find"].keywords({"title": "a", "sizes": ["s"]}) == {"title": "a", "sizes": [Size.SMALL], "unit": "kg"}
    sent = tools["send"].keywords({"to": {"street": "X"}, "when": "2024-02-29"})
    assert sent == {"to": Address(street="X"), "when": datetime.date(2024, 2, 29)}
    with pytest.raises(ValueError, match="when"):
        tools["send"].keywords({"to": {"street": "X"}, "when": "2023-02-29"})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "'item' is a required property"),
        ({"item": 3}, "item: 3 is not of type 'string'"),
        ({"item": "tea", "cuont": 2}, "'cuont' was unexpected"),
        ({"item": "tea", "count": True}, "count: True is not of type 'integer'"),
        ([], "[] is not of type 'object'"),
    ],
)
def test_wrong_arguments_are_explained_with_the_signature(arguments: Any, says: str) -> None:
    error = TOOLS.check("price", arguments)
    assert error is not None
    assert error.kind == "arguments"
    assert says in error.message
    assert error.message.endswith("Expected price(item: string, count?: integer)")


def test_right_arguments_are_no_error() -> None:
    assert TOOLS.check("price", {"item": "茶", "count": 2}) is None


def test_an_unknown_tool_is_answered_with_the_list_of_tools() -> None:
    error = TOOLS.check("buy", {})
    assert error is not None
    assert (error.kind, error.message) == ("unknown_tool", "no tool named 'buy'; tools: price, find")
    empty = Toolset([]).check("buy", {})
    assert empty is not None
    assert empty.message.endswith("tools: none")


@given(arguments=json_values)
def test_no_arguments_crash_the_check(arguments: Any) -> None:
    error = TOOLS.check("price", arguments)
    assert error is None or "\n" not in error.message


def test_results_are_checked_against_the_declared_type() -> None:
    assert TOOLS["price"].to_json(250) == 250
    with pytest.raises(ResultError, match="price returned str; result: Input should be a valid integer"):
        TOOLS["price"].to_json("250")


def test_results_are_checked_against_a_schema_alone() -> None:
    one = Tool("a", "", {}, {"type": "object", "required": ["x"]})
    assert one.to_json({"x": 1}) == {"x": 1}
    with pytest.raises(ResultError, match="a returned a wrong result: 'x' is a required property"):
        one.to_json({})


@pytest.mark.parametrize("value", [b"bytes", float("nan"), {1, 2}, object()])
def test_a_result_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(ResultError, match="which is no JSON"):
        Tool("a", "", {}).to_json(value)


def test_a_result_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ResultError, match="which is no JSON"):
        Tool("a", "", {}).to_json(loop)


def test_rich_python_results_become_json() -> None:
    @tool
    def today() -> dict[str, datetime.date | Address]:
        """Today."""

    assert Toolset.of(today)["today"].to_json({"d": datetime.date(2024, 1, 2), "a": Address(street="X")}) == {
        "d": "2024-01-02",
        "a": {"street": "X", "number": 1},
    }


def test_constraints_of_annotations_reach_the_schema() -> None:
    @tool
    def pick(count: Annotated[int, Field(ge=1, le=3)]) -> None:
        """Picks."""

    tools = Toolset.of(pick)
    assert tools["pick"].parameters["properties"]["count"] == {"type": "integer", "minimum": 1, "maximum": 3}
    assert tools.check("pick", {"count": 4}) is not None


def test_a_parameter_without_annotation_is_refused() -> None:
    with pytest.raises(InputError, match="tool 'bad': parameter 'x' needs a type annotation"):

        @tool
        def bad(x): ...


def test_a_type_without_a_schema_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="tool 'bad': ") as caught:

        @tool
        def bad(x: object.__class__) -> Toolset: ...

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("target", ["#/$defs/Place", "http://127.0.0.1:9/place.json", "place.json"])
def test_a_reference_that_leads_nowhere_is_refused_before_any_call(target: str) -> None:
    schema = {"type": "object", "properties": {"at": {"anyOf": [{"type": "null"}, {"$ref": target}]}}}
    with pytest.raises(InputError, match=re.escape(f"tool 'go': $ref {target!r} leads nowhere in its schema")):
        Tool("go", "", schema)


def test_references_within_a_schema_are_followed_and_values_are_no_references() -> None:
    place = {"type": "object", "properties": {"name": {"type": "string"}, "in": {"$ref": "#/$defs/Place"}}}
    at = {"$ref": "#/$defs/Place", "default": {"$ref": "#/nowhere"}}
    go = Tool("go", "", {"type": "object", "properties": {"at": at}, "$defs": {"Place": place}})
    assert go.check_arguments({"at": {"name": "Ulm", "in": {"name": "Germany"}}}) is None
    assert "at.in.name: 1 is not of type 'string'" in str(go.check_arguments({"at": {"in": {"name": 1}}}))


def test_two_tools_of_one_name_and_broken_schemas_are_refused() -> None:
    with pytest.raises(InputError, match="two tools are named 'a'"):
        Toolset([Tool("a", "", {}), Tool("a", "", {})])
    with pytest.raises(InputError, match="tool 'a': not a JSON Schema: 'text'"):
        Toolset([Tool("a", "", {"type": "text"})])
    with pytest.raises(InputError, match="tool 'a': not a JSON Schema: 3"):
        Toolset([Tool("a", "", {}, {"required": 3})])


def test_the_digest_covers_names_descriptions_and_schemas_but_not_the_order() -> None:
    one, two = Tool("a", "x", {"type": "object"}), Tool("b", "y", {"type": "object"})
    base = Toolset([one, two]).digest
    assert Toolset([two, one]).digest == base
    changed = [
        Tool("c", "x", {"type": "object"}),
        Tool("a", "z", {"type": "object"}),
        Tool("a", "x", {"type": "object", "required": []}),
        Tool("a", "x", {"type": "object"}, {"type": "string"}),
    ]
    assert len({base, *(Toolset([other, two]).digest for other in changed)}) == 5


def test_a_toolset_is_an_ordered_collection() -> None:
    assert [one.name for one in TOOLS] == ["price", "find"]
    assert len(TOOLS) == 2
    assert "find" in TOOLS
    assert "helper" not in TOOLS
    assert (TOOLS["price"].read_only, TOOLS["find"].read_only) == (False, True)
