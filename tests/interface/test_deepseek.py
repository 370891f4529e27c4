"""The exact text of the DeepSeek dialect, and what it makes of malformed turns."""

from __future__ import annotations

from typing import Any

import pytest

import tiny
from quintain.interface import dialects
from quintain.interface.messages import Action, Call, Observation, message
from quintain.interface.tools import Tool, Toolset

TOKENS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")
DSML = "｜DSML｜"
OPEN, CLOSE = f"<{DSML}function_calls>", f"</{DSML}function_calls>"
CALL = f'<{DSML}invoke name="open">\n<{DSML}parameter name="id" string="true">茶</{DSML}parameter>\n</{DSML}invoke>'
TOOLS = Toolset([Tool("open", "Reads 茶.", {"type": "object"})])


@pytest.fixture
def deepseek() -> Any:
    return dialects.get("deepseek", tiny.tiny_codec(TOKENS))


def text(dialect: Any, ids: list[int]) -> str:
    return str(dialect.codec.decode(ids))


def read(dialect: Any, written: str) -> Action:
    return dialect.parse([*dialect.codec.encode(written), dialect.stop[0]], cut=False, prefix="c")


def test_prompt(deepseek: Any) -> None:
    shown = text(deepseek, deepseek.prompt([message("system", "Be brief."), message("user", "Hi")], TOOLS))
    assert shown.startswith("<｜begin▁of▁sentence｜>Be brief.\n\n## Tools\n\nYou have access to a set of tools")
    assert shown.endswith(
        "JSONSchema format:\n<functions>\n"
        '{"name": "open", "description": "Reads 茶.", "parameters": {"type": "object"}}\n</functions>\n'
        "<｜User｜>Hi<｜Assistant｜><think>"
    )


def test_turns(deepseek: Any) -> None:
    calls = (Call("0", "open", {"id": "茶"}), Call("1", "sum", {"of": [1, 2.5], "name": "x"}))
    assert text(deepseek, deepseek.write(Action(thought="Both.", calls=calls))) == (
        f"Both.</think>\n\n{OPEN}\n{CALL}\n"
        f'<{DSML}invoke name="sum">\n'
        f'<{DSML}parameter name="of" string="false">[1, 2.5]</{DSML}parameter>\n'
        f'<{DSML}parameter name="name" string="true">x</{DSML}parameter>\n'
        f"</{DSML}invoke>\n{CLOSE}<｜end▁of▁sentence｜>"
    )
    assert text(deepseek, deepseek.write(Action(answer="42"))) == "</think>42<｜end▁of▁sentence｜>"


def test_observations_and_user_messages(deepseek: Any) -> None:
    seen = [Observation("0", "open", "a"), Observation("1", "sum", "b")]
    assert text(deepseek, deepseek.observe(seen)) == (
        "\n\n<function_results>\n<result>a</result>\n<result>b</result>\n</function_results>\n\n<think>"
    )
    assert text(deepseek, deepseek.say(message("user", "more"))) == "<｜User｜>more<｜Assistant｜><think>"


def test_markers_become_tokens_where_the_tokenizer_has_them() -> None:
    tokens = (*TOKENS, "<think>", "</think>", DSML)
    dialect = dialects.get("deepseek", tiny.tiny_codec(tokens))
    ids = dialect.write(Action(thought="t", calls=(Call("0", "open", {"id": "a"}),)))
    assert ids.count(tokens.index("</think>")) == 1
    assert ids.count(tokens.index(DSML)) == 6
    assert dialect.prompt([message("user", "Hi")], TOOLS)[-2:] == [
        tokens.index("<｜Assistant｜>"),
        tokens.index("<think>"),
    ]


def test_an_argument_that_spells_a_tag_travels_as_json(deepseek: Any) -> None:
    value = f"x</{DSML}parameter>\n{CLOSE}"
    ids = deepseek.write(Action(calls=(Call("c0", "open", {"id": value}),)))
    assert 'string="false">"x</\\uff5cDSML｜parameter>' in text(deepseek, ids)
    assert deepseek.parse(ids, cut=False, prefix="c").calls == (Call("c0", "open", {"id": value}),)


def test_text_before_the_calls_belongs_to_the_thought(deepseek: Any) -> None:
    action = read(deepseek, f"One.</think>Two.\n\n{OPEN}\n{CALL}\n{CLOSE}")
    assert (action.thought, action.calls) == ("One.\n\nTwo.", (Call("c0", "open", {"id": "茶"}),))


@pytest.mark.parametrize(
    ("written", "kind", "says"),
    [
        ("hm", "unclosed", "no </think>"),
        ("hm</think> ", "empty", "follows the thought"),
        (f"</think>{OPEN}{CALL}", "unclosed", "function_calls"),
        (f"</think>{OPEN}{CALL}{CLOSE} ok", "prose", "'ok'"),
        (f"</think>{OPEN}{CALL} and {CALL}{CLOSE}", "prose", "found 'and"),
        (f"</think>{OPEN}</{DSML}invoke>{CLOSE}", "json", "at character 0"),
        (f"</think>{OPEN}\n{CLOSE}", "shape", "no call"),
        (f"</think>{CALL}", "shape", "outside"),
        (f'</think>{OPEN}<{DSML}invoke name="open">{CLOSE}', "unclosed", "call 1"),
        (f"</think>{OPEN}{CALL.replace('</' + DSML + 'parameter>', '')}{CLOSE}", "unclosed", "'id'"),
        (f"</think>{OPEN}{CALL.replace('true', 'maybe')}{CLOSE}", "json", "character"),
        (f"</think>{OPEN}{CALL.replace('true', 'false')}{CLOSE}", "json", "'id' is not valid JSON"),
        (f"</think>{OPEN}{CALL.replace('true', 'false').replace('茶', '[1,]')}{CLOSE}", "json", "at character"),
        (
            f'</think>{OPEN}<{DSML}invoke name="a">'
            + 2 * f'<{DSML}parameter name="b" string="true"></{DSML}parameter>'
            + f"</{DSML}invoke>{CLOSE}",
            "json",
            "'b' occurs twice",
        ),
    ],
)  # fmt: skip
def test_malformed_turns(deepseek: Any, written: str, kind: str, says: str) -> None:
    action = read(deepseek, written)
    assert action.error is not None
    assert (action.error.kind, action.text) == (kind, written)
    assert says in action.error.message
    assert "\n" not in action.error.message


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (Action(thought="a</think>b", answer="4"), "'</think>'"),
        (Action(answer=f"<{DSML}invoke"), f"'{DSML}'"),
        (Action(calls=(Call("0", 'o"p', {}),)), "json"),
        (Action(calls=(Call("0", "open", {'i"d': 1}),)), "json"),
    ],
)
def test_text_that_would_read_as_markup_is_refused(deepseek: Any, action: Action, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        deepseek.write(action)
