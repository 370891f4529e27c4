"""The exact text of the hermes dialects, and what they make of malformed turns."""

from __future__ import annotations

from typing import Any

import pytest

import tiny
from quintain.interface import dialects
from quintain.interface.dialects.compare import compare_with_template
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call, Observation, message
from quintain.interface.tools import Tool, Toolset, tool

ASK = [message("system", "Be brief."), message("user", "Price of 茶?")]
NO_TOOLS = Toolset([])


class Desk:
    @tool
    def search(self, query: str, limit: int = 3) -> str:
        """Finds documents. Returns the best three.

        Args:
            query: what to look for.
        """

    @tool
    def open(self, id: str) -> str:
        """Reads one document."""

    @tool
    def calculate(self, expression: str) -> float:
        """Evaluates arithmetic."""


DESK = Toolset.of(Desk)
TWO = Action(
    thought="Two things.", calls=(Call("0", "search", {"query": "茶", "limit": 1}), Call("1", "open", {"id": "d1"}))
)


def text(dialect: Any, ids: list[int]) -> str:
    return str(dialect.codec.decode(ids))


def read(dialect: Any, written: str) -> Action:
    return dialect.parse([*dialect.codec.encode(written), dialect.stop[0]], cut=False, prefix="c")


@pytest.fixture
def full(codec: Any) -> Any:
    return dialects.get("hermes", codec)


@pytest.fixture
def compact(codec: Any) -> Any:
    return dialects.get("hermes", codec, compact_docs=True)


def test_full_prompt(full: Any) -> None:
    one = Toolset([Tool("look_up", "Finds 茶.", {"type": "object"})])
    assert text(full, full.prompt(ASK, one)) == (
        "<|im_start|>system\nBe brief.\n\n# Tools\n\n"
        "You may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        '{"type": "function", "function": {"name": "look_up", "description": "Finds 茶.", '
        '"parameters": {"type": "object"}}}\n</tools>\n\n'
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\nPrice of 茶?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_compact_prompt(compact: Any) -> None:
    assert text(compact, compact.prompt(ASK, DESK)) == (
        "<|im_start|>system\nBe brief.\nTools:\n"
        "search(query: string, limit?: integer) - Finds documents.\n"
        "open(id: string) - Reads one document.\n"
        "calculate(expression: string) - Evaluates arithmetic.\n"
        'To use a tool, write <call>tool {"argument":"value"}. Otherwise write the answer.<|im_end|>\n'
        "<|im_start|>user\nPrice of 茶?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_system_message_appears_only_if_there_is_something_to_say(full: Any, compact: Any) -> None:
    bare = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    hi = [message("user", "hi")]
    for dialect in (full, compact):
        assert text(dialect, dialect.prompt(hi, NO_TOOLS)) == bare
    assert text(full, full.prompt(hi, DESK)).startswith("<|im_start|>system\n# Tools\n")
    assert text(compact, compact.prompt(hi, DESK)).startswith("<|im_start|>system\nTools:\n")


def test_full_turn(full: Any) -> None:
    assert text(full, full.write(TWO)) == (
        "<think>\nTwo things.\n</think>\n\n"
        '<tool_call>\n{"name": "search", "arguments": {"query": "茶", "limit": 1}}\n</tool_call>\n'
        '<tool_call>\n{"name": "open", "arguments": {"id": "d1"}}\n</tool_call><|im_end|>'
    )
    assert text(full, full.write(Action(answer="42"))) == "42<|im_end|>"
    assert text(full, full.write(Action(thought="Sum.", answer="42"))) == "<think>\nSum.\n</think>\n\n42<|im_end|>"


def test_compact_turn(compact: Any) -> None:
    assert text(compact, compact.write(TWO)) == (
        'Two things.\n<call>search {"query":"茶","limit":1}\n<call>open {"id":"d1"}<|im_end|>'
    )
    assert text(compact, compact.write(Action(answer="42"))) == "42<|im_end|>"
    assert text(compact, compact.write(Action(thought="Sum.", answer="42"))) == "Sum.\n<answer>42<|im_end|>"


def test_observations(full: Any, compact: Any) -> None:
    seen = [Observation("0", "search", "a"), Observation("1", "open", "b")]
    assert text(full, full.observe(seen)) == (
        "\n<|im_start|>user\n<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert text(compact, compact.observe(seen)) == (
        "\n<|im_start|>tool\na<|im_end|>\n<|im_start|>tool\nb<|im_end|>\n<|im_start|>assistant\n"
    )


def test_what_the_user_says_later(full: Any, compact: Any) -> None:
    for dialect in (full, compact):
        said = text(dialect, dialect.say(message("user", "more")))
        assert said == "\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n"


def test_the_end_of_text_token_also_ends_a_turn_where_there_is_one(full: Any) -> None:
    assert full.stop == (2, 0)
    assert dialects.get("hermes", tiny.tiny_codec(("<|im_start|>", "<|im_end|>"))).stop == (1,)


def test_a_thought_before_a_call_needs_no_tags(full: Any) -> None:
    call = '<tool_call>{"name": "open", "arguments": {}}</tool_call>'
    assert read(full, f"Let me see.\n{call}").thought == "Let me see."
    assert read(full, f"<think>One.</think>Two.\n{call}").thought == "One.\n\nTwo."


@pytest.mark.parametrize(
    ("written", "kind", "says"),
    [
        ('<tool_call>{"name": "open", "arguments": {"id": "a",}}</tool_call>', "json", "at character 4"),
        ('<tool_call>{"name": "open", "arguments": {"id": NaN}}</tool_call>', "json", "value, at character 37"),
        ('<tool_call>{"name": "NaN", "arguments": {"x": -Infinity}}</tool_call>', "json", "at character 35"),
        ('<tool_call>{"name": "open", "arguments": {"x": 1e999}}</tool_call>', "json", "not finite"),
        ('<tool_call>{"name": "open", "name": "x", "arguments": {}}</tool_call>', "json", "key 'name' occurs twice"),
        ('<tool_call>{"name": "open", "arguments": {}} // go</tool_call>', "json", "Extra data at character 34"),
        ('<tool_call>{"name": "open", "arguments": {"x": "\\ud800"}}</tool_call>', "json", "lone surrogate"),
        ("<tool_call>{'name': 'open'}</tool_call>", "json", "double quotes"),
        ("<tool_call></tool_call>", "json", "character 0"),
        ('<tool_call>{"name": "open", "arguments": {}}', "unclosed", "call 1 has no </tool_call>"),
        ('{"name": "open", "arguments": {}}</tool_call>', "unclosed", "without <tool_call>"),
        ("<think>hm", "unclosed", "<think> has no </think>"),
        ('<tool_call>{"name": "open", "arguments": {}}</tool_call> done', "prose", "'done'"),
        ('<tool_call>{"name": "a", "arguments": {}}</tool_call>,<tool_call>{"name": "b"}</tool_call>', "prose", "','"),
        ('<tool_call>["open"]</tool_call>', "shape", 'no object with "name" and "arguments"'),
        ('<tool_call>{"name": "open"}</tool_call>', "shape", "call 1"),
        ('<tool_call>{"name": 1, "arguments": {}}</tool_call>', "shape", "call 1"),
        ('<tool_call>{"name": "open", "arguments": "{}"}</tool_call>', "shape", "call 1"),
        ('<tool_call>{"name": "open", "arguments": {}, "id": 1}</tool_call>', "shape", "call 1"),
        ("<think>hm</think>\n", "empty", "follows the thought"),
    ],
)  # fmt: skip
def test_malformed_full_turns(full: Any, written: str, kind: str, says: str) -> None:
    action = read(full, written)
    assert action.error is not None
    assert (action.error.kind, action.text) == (kind, written)
    assert says in action.error.message
    assert "\n" not in action.error.message


@pytest.mark.parametrize(
    ("written", "kind", "says"),
    [
        ('<call>open {"id":"a",}', "json", "at character"),
        ('<call>open {"id":Infinity}', "json", "Infinity is no JSON value, at character 6"),
        ('<call>open {"id":1,"id":2}', "json", "key 'id' occurs twice"),
        ('<call>open {"id":"a"', "unclosed", "call 1"),
        ('<call>open {"id":"a', "unclosed", "call 1"),
        ('<call>open {"id":"a"} done', "prose", "Extra data"),
        ('<call>open {"id":"a"}\n<answer>42', "prose", "Extra data"),
        ('<answer>42\n<call>open {"id":"a"}', "prose", "an answer and a call"),
        ("<call>", "shape", "call 1"),
        ("<call>open", "shape", "call 1"),
        ("<call>open()", "shape", "call 1"),
        ('<call>open ["a"]', "shape", "call 1"),
        ('<call>{"name":"open","arguments":{}}', "shape", "call 1"),
        ('<call>open {}\n<call>look up {"id":1}', "shape", "call 2"),
        ("Easy.\n<answer> ", "empty", "nothing follows <answer>"),
    ],
)
def test_malformed_compact_turns(compact: Any, written: str, kind: str, says: str) -> None:
    action = read(compact, written)
    assert action.error is not None
    assert (action.error.kind, action.text) == (kind, written)
    assert says in action.error.message
    assert "\n" not in action.error.message


@pytest.mark.parametrize(
    ("name", "action", "marker"),
    [
        ("hermes", Action(answer="write <tool_call>"), "<tool_call>"),
        ("hermes", Action(answer="</tool_call>"), "</tool_call>"),
        ("hermes", Action(answer="<think>aloud"), "<think>"),
        ("hermes", Action(thought="</think>", answer="4"), "</think>"),
        ("hermes-compact", Action(answer="dial <call>"), "<call>"),
        ("hermes-compact", Action(thought="<answer>", answer="4"), "<answer>"),
        ("hermes-compact", Action(thought="<call>", calls=(Call("0", "open", {}),)), "<call>"),
    ],
)
def test_text_that_would_read_as_markup_is_refused_by_name(codec: Any, name: str, action: Action, marker: str) -> None:
    with pytest.raises(ValueError, match=f"its text holds '{marker}'"):
        dialects.get(name, codec).write(action)


def test_markers_that_do_no_harm_are_written(codec: Any) -> None:
    full, compact = dialects.get("hermes", codec), dialects.get("hermes-compact", codec)
    for dialect, action in (
        (full, Action(thought="not <tool_call>", answer="a <think> b <|im_end|>")),
        (full, Action(calls=(Call("0", "open", {"<tool_call>": "</tool_call>\\<tool_call>"}),))),
        (compact, Action(answer="<think> <tool_call>")),
        (compact, Action(calls=(Call("0", "open", {"<call>": "\\<answer><call>"}),))),
    ):
        found = dialect.parse(dialect.write(action), cut=False, prefix="")
        assert (found.thought, found.answer, found.calls) == (action.thought, action.answer, action.calls)


QWEN_TEMPLATE = """{%- if tools %}
{{- '<|im_start|>system\\n' + messages[0].content + '\\n\\n# Tools\\n\\nYou may call one or more functions to assist \
with the user query.\\n\\nYou are provided with function signatures within <tools></tools> XML tags:\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '\\n</tools>\\n\\nFor each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:\\n<tool_call>\\n{"name": <function-name>, "arguments": <args-json-object>}\
\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages[1:] %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{{- '<|im_start|>assistant\\n' }}"""


def qwen_tokenizer() -> Any:
    from copy import deepcopy

    tokenizer = deepcopy(tiny.tiny_tokenizer((*tiny.CHATML_TOKENS, "<tool_call>", "</tool_call>")))
    tokenizer.chat_template = QWEN_TEMPLATE
    return tokenizer


def test_the_full_prompt_has_the_tokens_of_a_qwen_chat_template() -> None:
    tokenizer = qwen_tokenizer()
    dialect = dialects.get("hermes", dialects.TokenizerCodec(tokenizer))
    assert compare_with_template(dialect, tokenizer, ASK, DESK) is None


def test_a_difference_from_the_chat_template_names_the_first_token() -> None:
    tokenizer = qwen_tokenizer()
    dialect = dialects.get("hermes-compact", dialects.TokenizerCodec(tokenizer))
    found = compare_with_template(dialect, tokenizer, ASK, DESK)
    assert found is not None
    assert found.shared.endswith(" brief.\n")
    assert found.dialect.startswith("Tools:")
    assert found.template.startswith("\n# Tools")
    assert f"at token {found.index}" in str(found)


def test_a_tokenizer_without_a_chat_template_can_not_be_compared_with(codec: Any, full: Any) -> None:
    bare = tiny.tiny_tokenizer(("<|im_start|>", "<|im_end|>"))
    with pytest.raises(InputError, match="no chat template"):
        compare_with_template(full, bare, ASK, DESK)


def test_the_compact_form_takes_less_than_half_of_the_tokens(full: Any, compact: Any) -> None:
    def documentation(dialect: Any) -> int:
        return len(dialect.prompt(ASK, DESK)) - len(dialect.prompt(ASK, NO_TOOLS))

    def frame(dialect: Any) -> int:
        return len(dialect.observe([Observation("0", "search", "x")])) - len(dialect.codec.encode("x"))

    def call(dialect: Any) -> int:
        return len(dialect.write(TWO)) - len(dialect.codec.encode("Two things."))

    for cost in (documentation, frame, call):
        assert 2 * cost(compact) < cost(full)
