"""Format repair: what was meant, by what was written; it fits the schema, or there is no repair."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.evaluation_episodes import answer, call, episode, malformed
from quintain import tool
from quintain.interface.messages import Action, Call, Observation, Turn
from quintain.interface.tools import Toolset
from quintain.synthesis.repair import before_too_many_calls, fit, malformed_turns, read_calls


@tool
def search(query: str, limit: int = 5) -> str:
    """Searches."""
    return ""


@tool
def open_page(title: str, exact: bool = False, lines: list[int] | None = None) -> str:
    """Opens."""
    return ""


@tool
def scale(factor: float, labels: list[str]) -> str:
    """Scales."""
    return ""


TOOLS = Toolset.of(search, open_page, scale)
CHAD = ("search", {"query": "Chad"})


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "search", "arguments": {"query": "Chad",}}</tool_call>',
        '<tool_call>{"name": "search", "arguments": {"query": "Chad"',
        "<tool_call>{'name': 'search', 'arguments': {'query': 'Chad'}}</tool_call>",
        '{"tool": "search", "parameters": {"query": "Chad"}}',
        '{"name": "search", "arguments": "{\\"query\\": \\"Chad\\"}"}',
        '{"type": "function", "function": {"name": "search", "arguments": {"query": "Chad"}}}',
        '{"search": {"query": "Chad"}}',
        'Let me look. {"name": "search", "arguments": {"query": "Chad"}} That should help.',
        '<call>search {"query":"Chad"} and then I answer',
        '<call>search {"query":"Chad',
        'search(query="Chad")',
        "I call search('Chad').",
        "<call>search\nquery: Chad\nand that is all",
        "<call>search\nquery: Chad\n",
    ],
)
def test_a_malformed_call_is_read_as_it_was_meant(text):
    assert list(read_calls(text, TOOLS)) == [CHAD]


@pytest.mark.parametrize("text", ["", "The answer is 12.", "{", "search", '{"name": "search"}', "[1, 2]", "delete(5)"])
def test_where_no_call_was_meant_none_is_made_up(text):
    assert [one for one in read_calls(text, TOOLS) if fit(*one, TOOLS)] == []


@pytest.mark.parametrize(
    ("written", "fitted"),
    [
        (("Search", {"query": "Chad"}), CHAD),
        (("serch", {"query": "Chad"}), CHAD),
        (("openPage", {"title": "Chad"}), ("open_page", {"title": "Chad"})),
        (("search", {"querry": "Chad"}), CHAD),
        (("search", {"q": "Chad"}), CHAD),
        (("search", {"query": "Chad", "verbose": True}), CHAD),
        (("search", {"query": 12}), ("search", {"query": "12"})),
        (("search", {"query": "Chad", "limit": "7"}), ("search", {"query": "Chad", "limit": 7})),
        (("search", {"query": "Chad", "limit": 7.0}), ("search", {"query": "Chad", "limit": 7})),
        (("open_page", {"title": "Chad", "exact": "True"}), ("open_page", {"title": "Chad", "exact": True})),
        (("scale", {"factor": "1,000.5", "labels": "a"}), ("scale", {"factor": 1000.5, "labels": ["a"]})),
    ],
)
def test_names_and_types_become_those_of_the_schema(written, fitted):
    assert fit(*written, TOOLS) == fitted


@pytest.mark.parametrize(
    "written",
    [
        ("delete", {"query": "Chad"}),
        ("search", {}),
        ("search", {"a": "Chad", "b": "Togo"}),
        ("search", {"query": "Chad", "limit": "many"}),
        ("search", {"query": ["Chad"]}),
    ],
)
def test_what_can_not_be_told_is_not_repaired(written):
    assert fit(*written, TOOLS) is None


def badly(tool_name: str, **arguments) -> Turn:
    turn = call(tool_name, **arguments)
    return replace(turn, observations=(replace(turn.observations[0], error="format"),))


@pytest.mark.parametrize(
    "text",
    [
        "{" * 2000,
        "[" * 2000,
        'search {"query": ' + "[" * 2000,
        "search(" + "-" * 2000 + "1)",
        "search({[1]: 2})",
        "search(limit=" + "9" * 5000 + ")",
        '{"name": "search", "arguments": {"query": "\\ud800"}}',
        '{"name": "scale", "arguments": {"factor": NaN, "labels": []}}',
    ],
)
def test_what_no_reader_can_take_is_no_repair(text):
    assert [fit(name, arguments, TOOLS) for name, arguments in read_calls(text, TOOLS)] in ([], [None])


def test_malformed_turns_are_collected_by_kind():
    two = Action(calls=(Call("a", "search", {"query": "x"}), Call("b", "search", {"query": "y"})))
    turns = [
        malformed("json", '{"name": "search", "arguments": {"query": "Chad",}}'),
        badly("serch", query="Chad"),
        badly("search", q="Chad"),
        badly("search", query=12),
        malformed("empty", ""),
        Turn(two, (Observation("a", "search", "1"), Observation("b", "search", "2"))),
        call("search", query="Chad"),
        answer(),
    ]
    found = malformed_turns(episode(turns=turns), TOOLS, most_calls=1)
    assert [(one.turn, one.kind) for one in found] == [
        (0, "json"),
        (1, "unknown_tool"),
        (2, "parameter_names"),
        (3, "types"),
        (4, "empty"),
        (5, "too_many_calls"),
    ]
    meant = [one.repaired and [(call.tool, call.arguments) for call in one.repaired.calls] for one in found]
    assert meant == [[CHAD], [CHAD], [CHAD], [("search", {"query": "12"})], None, [("search", {"query": "x"})]]
    assert [one.kind for one in malformed_turns(episode(turns=turns), TOOLS)][-1] == "empty"
    (point,) = before_too_many_calls([episode(turns=turns), episode("other")], found)
    assert (point.turns, point.kind, point.first) == (5, "too_many_calls", found[5].repaired)


@given(st.text() | st.from_regex(r"<call>\w+ \{[^}]*\}?", fullmatch=True))
def test_whatever_was_written_a_repair_fits_the_schema(text):
    turns = [malformed("json", text), answer()]
    (one,) = malformed_turns(episode(turns=turns), TOOLS)
    for made in one.repaired.calls if one.repaired else ():
        assert TOOLS.check(made.tool, made.arguments) is None
