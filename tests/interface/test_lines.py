"""The dialect `lines`: arguments as `name: value`, JSON where it is JSON, text otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from quintain.interface import dialects
from quintain.interface.messages import Action, Call


@pytest.fixture
def lines(codec: Any) -> Any:
    return dialects.get("lines", codec)


def read(dialect: Any, text: str) -> Action:
    return dialect.parse([*dialect.codec.encode(text), dialect.stop[0]], cut=False, prefix="")


def test_a_value_stands_behind_its_name_as_in_running_text(lines):
    action = Action(thought="Look.", calls=(Call("0", "open", {"title": "Guam", "page": 2}), Call("1", "list", {})))
    text = lines.codec.decode(lines.write(action))
    assert text == "Look.\n<call>open\ntitle: Guam\npage: 2\n<call>list<|im_end|>"
    assert read(lines, text.removesuffix("<|im_end|>")) == action


def test_an_answer_behind_a_thought_has_a_marker_and_a_space(lines):
    assert lines.codec.decode(lines.write(Action(thought="Found.", answer="712"))) == "Found.\n<answer> 712<|im_end|>"
    assert lines.codec.decode(lines.write(Action(answer="712"))) == "712<|im_end|>"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("Guam", "Guam"),
        ("12", '"12"'),
        ("true", '"true"'),
        ("", '""'),
        (" x", '" x"'),
        ("two\nlines", '"two\\nlines"'),
        ('"quoted"', '"\\"quoted\\""'),
        ("[1", '"[1"'),
        ("2 * 3", "2 * 3"),
        ("a: b", "a: b"),
        (12, "12"),
        (None, "null"),
        ([1, "a"], '[1, "a"]'),
        ("巴黎", "巴黎"),
        ("say <call>", '"say \\u003ccall>"'),
    ],
)
def test_text_that_would_be_read_as_something_else_is_quoted(lines, value, written):
    action = Action(calls=(Call("0", "t", {"a": value}),))
    assert lines.codec.decode(lines.write(action)) == f"<call>t\na: {written}<|im_end|>"


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("<call>", "shape", "no tool name"),
        ("<call>open the door", "shape", "no tool name"),
        ("<call>open\nGuam", "shape", "'Guam' is no `name: value` line"),
        ("<call>open\ntitle:", "shape", "'title:' is no"),
        ("<call>open\ntitle: a\ntitle: b", "shape", "gives 'title' twice"),
        ("<call>open\nids: [1, 2,]", "json", "'ids' of call 1 is not valid JSON"),
        ('<call>open\ntitle: "Gu', "json", "not valid JSON"),
        ("Yes.\n<answer> ", "empty", "nothing follows"),
        ("<answer> 4\n<call>open\ntitle: a", "prose", "an answer and a call"),
    ],
)
def test_what_is_malformed_is_named_with_the_expected_form(lines, text, kind, says):
    action = read(lines, text)
    assert action.error is not None
    assert action.error.kind == kind
    assert says in action.error.message
