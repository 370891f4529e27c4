"""`tools.lock`: every change of a tool, declared or only observed, is found and said in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values

from quintain.interface.canonical import digest
from quintain.interface.errors import InputError, InterfaceDrift
from quintain.interface.lock import (
    Difference,
    Lock,
    Probe,
    check_lock,
    compare_specs,
    drift,
    probe_from_json,
    read_lock,
    record,
    write_lock,
)
from quintain.interface.shapes import differences, shape_of_schema, shape_of_value
from quintain.interface.tools import Tool, Toolset, tool

Json = dict[str, Any]

QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
PAPERS = {"hits": [{"id": 1, "abstract": "a", "year": None}, {"id": 2, "abstract": "b", "year": 1999, "doi": "x"}]}
PROBES = [Probe("search", {"query": "茶"})]


def search(parameters: Json = QUERY, description: str = "Finds papers.", result: Json | None = None) -> Tool:
    return Tool("search", description, parameters, result)


def answering(value: Any) -> Any:
    async def execute(name: str, arguments: Json) -> Any:
        assert (name, arguments) == ("search", {"query": "茶"})
        return value

    return execute


async def recorded(folder: Path, tools: Toolset, value: Any = PAPERS) -> Lock:
    write_lock(folder / "tools.lock", [await record(tools, "desk", PROBES, answering(value))])
    (lock,) = read_lock(folder / "tools.lock")
    return lock


async def changes(folder: Path, before: Tool, after: Tool, old: Any = PAPERS, new: Any = PAPERS) -> list[str]:
    lock = await recorded(folder, Toolset([before]), old)
    return [str(one) for one in await check_lock(lock, Toolset([after]), "desk", answering(new))]


async def test_nothing_changed_is_no_difference(tmp_path: Path) -> None:
    assert await changes(tmp_path, search(), search()) == []


async def test_an_undeclared_result_field_that_was_renamed_is_caught_by_the_probe(tmp_path: Path) -> None:
    new = {"hits": [{"id": 1, "summary": "a", "year": 2000}, {"id": 2, "summary": "b", "year": None, "doi": "x"}]}
    assert await changes(tmp_path, search(), search(), new=new) == [
        'search: result field "hits[].abstract" renamed to "hits[].summary"'
    ]


async def test_a_declared_result_field_that_was_renamed_is_said_once(tmp_path: Path) -> None:
    def declared(name: str) -> Tool:
        return search(result={"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})

    found = await changes(tmp_path, declared("abstract"), declared("summary"), {"abstract": "a"}, {"summary": "a"})
    assert found == ['search: result field "abstract" renamed to "summary"']


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ([], "result: type changed from object to array"),
        ({"hits": []},
         'result field "hits": items can no longer be compared (there are none, or nothing is said of them)'),
        ({"hits": PAPERS["hits"], "next": None}, 'result field "next" added (null, required)'),
        ({}, 'result field "hits" removed'),
        ({"hits": "none"}, 'result field "hits": type changed from array to string'),
        ({"hits": PAPERS["hits"][1:]}, 'result field "hits[].year": type changed from integer or null to integer'),
        ({"hits": [{**PAPERS["hits"][0], "id": "1"}, PAPERS["hits"][1]]},
         'result field "hits[].id": type changed from integer to integer or string'),
        ({"hits": [{"abstract": "a", "year": None}, PAPERS["hits"][1]]}, 'result field "hits[].id" may now be missing'),
    ],
)  # fmt: skip
async def test_changes_of_observed_results(tmp_path: Path, new: Any, said: str) -> None:
    assert f"search: {said}" in await changes(tmp_path, search(), search(), new=new)


def with_parameters(required: list[str], **properties: Json) -> Tool:
    return search({"type": "object", "properties": properties, "required": required})


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (search(), search(description="Finds."), ["description changed"]),
        (with_parameters(["query"], query=TEXT), with_parameters(["query"], query=TEXT, limit=NUMBER),
         ['parameter "limit" added (integer)']),
        (with_parameters(["query"], query=TEXT), with_parameters(["query", "limit"], query=TEXT, limit=NUMBER),
         ['parameter "limit" added (integer, required)']),
        (with_parameters(["query"], query=TEXT, limit=NUMBER), with_parameters(["query"], query=TEXT),
         ['parameter "limit" removed']),
        (with_parameters(["query"], query=TEXT), with_parameters(["text"], text=TEXT),
         ['parameter "query" renamed to "text"']),
        (with_parameters(["query"], query=TEXT), with_parameters([], query=TEXT),
         ['parameter "query" is no longer required']),
        (with_parameters([], query=TEXT), with_parameters(["query"], query=TEXT),
         ['parameter "query" is now required']),
        (with_parameters([], query=TEXT), with_parameters([], query=TEXT | {"description": "what"}),
         ['parameter "query": description changed']),
        (with_parameters([], query=TEXT, n=NUMBER | {"default": 3}),
         with_parameters([], query=TEXT, n=NUMBER | {"default": 5}),
         ['parameter "n": default changed from 3 to 5']),
        (with_parameters([], query=TEXT, n=NUMBER), with_parameters([], query=TEXT, n=NUMBER | {"maximum": 9}),
         ['parameter "n": maximum changed from nothing to 9']),
        (with_parameters([], query=TEXT, a=TEXT, b=TEXT), with_parameters([], query=TEXT, c=TEXT, d=TEXT),
         ['parameter "a" removed', 'parameter "b" removed',
          'parameter "c" added (string)', 'parameter "d" added (string)']),
    ],
)  # fmt: skip
async def test_changes_of_a_specification(tmp_path: Path, before: Tool, after: Tool, said: list[str]) -> None:
    assert await changes(tmp_path, before, after) == [f"search: {one}" for one in said]


async def test_tools_added_and_removed_and_another_world(tmp_path: Path) -> None:
    lock = await recorded(tmp_path, Toolset([search(), Tool("open", "", QUERY)]))
    found = await check_lock(lock, Toolset([search(), Tool("sum", "", QUERY)]), "web", answering(PAPERS))
    assert [str(one) for one in found] == [
        "world changed from 'desk' to 'web'",
        "open: tool removed",
        "sum: tool added",
    ]


async def test_a_probe_that_fails_now_is_a_difference_in_one_line(tmp_path: Path) -> None:
    async def broken(name: str, arguments: Json) -> Any:
        raise RuntimeError("index\nmissing")

    lock = await recorded(tmp_path, Toolset([search()]))
    assert await check_lock(lock, Toolset([search()]), "desk", broken) == [
        Difference("search", 'call with {"query": "茶"} fails: RuntimeError: index missing')
    ]


async def test_a_removed_tool_is_not_probed(tmp_path: Path) -> None:
    lock = await recorded(tmp_path, Toolset([search()]))
    found = await check_lock(lock, Toolset([]), "desk", answering("must not matter"))
    assert found == [Difference("search", "tool removed")]


async def test_nested_and_recursive_declared_schemas_are_followed() -> None:
    def nested(leaf: str) -> Json:
        node = {
            "type": "object",
            "properties": {leaf: TEXT, "next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
        }
        return Tool("search", "", QUERY, {"$defs": {"N": node}, "type": "array", "items": {"$ref": "#/$defs/N"}}).spec()

    assert [str(one) for one in compare_specs([nested("old")], [nested("new")])] == [
        'search: result field "[].old" renamed to "[].new"',
    ]


LEAVES = [{"type": "string"}, {"type": "integer", "minimum": 1}, {"enum": ["a", 1]}, {}, {"type": ["string", "null"]}]
SCHEMAS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.builds(lambda item: {"type": "array", "items": item}, inner)
    | st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=2))
    | st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(lambda p: {"type": "object", "properties": p}),
    max_leaves=5,
)  # fmt: skip


@given(one=SCHEMAS, other=SCHEMAS)
def test_specifications_with_different_digests_always_differ_in_words(one: Json, other: Json) -> None:
    before, after = (Toolset([search(result=schema)]) for schema in (one, other))
    assert bool(compare_specs(before.specs(), after.specs())) == (before.digest != after.digest)


@given(value=json_values)
def test_a_value_never_differs_from_itself_and_its_shape_survives_the_file(value: Any) -> None:
    shape = shape_of_value(value)
    again = shape_of_schema(json.loads(json.dumps(shape.to_schema())))
    assert again == shape
    assert list(differences(shape, again, "result field")) == []


async def test_tools_whose_results_could_change_unnoticed_are_listed(tmp_path: Path) -> None:
    class Mixed:
        @tool
        def vague(self) -> dict[str, Any]: ...

        @tool
        def exact(self) -> list[int]: ...

        @tool
        def silent(self): ...

    tools = Toolset([*Toolset.of(Mixed), search()])
    lock = await recorded(tmp_path, tools)
    assert lock.unwatched == ["silent", "vague"]


async def test_the_file_is_readable_and_always_the_same(tmp_path: Path) -> None:
    await recorded(tmp_path, Toolset([search()]))
    text = (tmp_path / "tools.lock").read_text(encoding="utf-8")
    assert "茶" in text
    assert text.endswith("}\n")
    await recorded(tmp_path, Toolset([search()]))
    assert (tmp_path / "tools.lock").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["tools.lock"]


async def test_a_lock_gives_back_what_was_recorded(tmp_path: Path) -> None:
    tools = Toolset([search()])
    lock = await recorded(tmp_path, tools)
    assert (lock.world, lock.toolset, list(lock.tools)) == ("desk", tools.digest, tools.specs())
    assert [one.probe for one in lock.observed] == PROBES
    assert lock.observed[0].shape == shape_of_value(PAPERS)


def damaged(text: str, change: str) -> str:
    content = json.loads(text)
    if change == "newer":
        return json.dumps(content | {"schema": 3})
    if change == "edited":
        content["tools"][0]["description"] = "Finds more."
        return json.dumps(content)
    if change == "extra key":
        rest = {key: value for key, value in content.items() if key != "digest"} | {"note": 1}
        return json.dumps(rest | {"digest": digest(rest)})
    return {
        "list": "[]",
        "broken": text[:-9],
        "deep": "[" * 100_000,
        "huge": text.replace('"schema": 1', '"schema": 1, "x": 1e999'),
    }[change]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("newer", "lock schema 3 is newer than 2; update quintain"),
        ("edited", "edited by hand"),
        ("extra key", "edited by hand"),
        ("huge", "edited by hand"),
        ("list", "no lock file"),
        ("broken", "not valid JSON"),
        ("deep", "not valid JSON"),
    ],
)
async def test_a_bad_lock_file_is_one_line_with_a_remedy(tmp_path: Path, change: str, says: str) -> None:
    await recorded(tmp_path, Toolset([search()]))
    path = tmp_path / "tools.lock"
    path.write_text(damaged(path.read_text(encoding="utf-8"), change), encoding="utf-8")
    with pytest.raises(InputError, match=says) as caught:
        read_lock(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_lock_file_names_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such lock file; write it again with `quintain tools lock`"):
        read_lock(tmp_path / "tools.lock")


@pytest.mark.parametrize(
    ("probe", "says"),
    [
        (Probe("find", {}), "probe 1: no tool named 'find'"),
        (Probe("search", {"query": 1}), "probe 1: search: query: 1 is not of type 'string'"),
        (Probe("search", {"query": "x"}), 'probe 1: search: call with {"query": "x"} fails: AssertionError'),
    ],
)
async def test_a_probe_that_can_not_run_is_refused_when_the_lock_is_written(probe: Probe, says: str) -> None:
    with pytest.raises(InputError) as caught:
        await record(Toolset([search()]), "desk", [probe], answering(1))
    assert says in str(caught.value)


async def test_a_probe_result_that_is_no_json_is_refused() -> None:
    with pytest.raises(InputError, match="not JSON serializable"):
        await record(Toolset([search()]), "desk", PROBES, answering(b"x"))


@pytest.mark.parametrize("record", [1, {}, {"tool": "a"}, {"tool": 1, "arguments": {}}, {"tool": "a", "arguments": []}])
def test_a_probe_is_a_tool_and_its_arguments(record: Any) -> None:
    with pytest.raises(InputError, match="recipe: "):
        probe_from_json(record, "recipe")
    assert probe_from_json({"tool": "a", "arguments": {"b": 1}}, "recipe") == Probe("a", {"b": 1})


def test_drift_prints_the_differences_and_the_command_that_measures_them() -> None:
    error = drift([Difference("search", "tool removed"), Difference("", "world changed")], "desk.toml")
    assert isinstance(error, InterfaceDrift)
    assert str(error) == (
        "the interface differs from the recorded one: search: tool removed; world changed. "
        "To go on with the new tools: `quintain tools lock desk.toml`, then measure the agent again in a new run folder"
    )
