"""A dialect's chat template gives the tokens the dialect writes, for whole conversations with tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2.exceptions import TemplateError
from strategies import actions, harmless
from test_dialects import SUBJECTS, every, make

import tiny
from quintain.interface.dialects import NAMES
from quintain.interface.dialects.history import History
from quintain.interface.dialects.lines import reads_as_itself
from quintain.interface.dialects.template import chat_template
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call, Message, Observation, Turn, message
from quintain.interface.tools import Tool, Toolset

SCHEMAS = [
    {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "integer"}},
            "type": {"enum": ["a", 1, None, "法"]},
            "either": {"type": ["string", "null"]},
            "any": {},
            "list": {"type": "array"},
        },
        "required": ["any"],
    },
    {"type": "object"},
]
DESCRIPTIONS = [
    "Finds a price.",
    "One. Two.",
    "查价格。再说。",
    "v1.5 of it. End",
    "",
    "No stop",
    "Line.\nNext",
    "A.  B. C",
]


def rendered(subject: str, messages: list[dict[str, Any]], toolset: Toolset) -> list[int]:
    name, tokens = SUBJECTS[subject]
    tokenizer = tiny.tiny_tokenizer(tokens)
    tools = [{"type": "function", "function": {**tool.spec()}} for tool in toolset]
    ids: list[int] = tokenizer.apply_chat_template(
        messages,
        tools=tools or None,
        chat_template=chat_template(name),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=False,
    )
    return ids


def said(one: Message) -> dict[str, Any]:
    return {"role": one.role, "content": one.text}


def acted(action: Action) -> dict[str, Any]:
    if action.answer is not None:
        thought = {"reasoning_content": action.thought} if action.thought else {}
        return {"role": "assistant", "content": action.answer, **thought}
    calls = [
        {"id": one.id, "type": "function", "function": {"name": one.tool, "arguments": one.arguments}}
        for one in action.calls
    ]
    return {"role": "assistant", "content": action.thought or None, "tool_calls": calls}


def toolsets() -> st.SearchStrategy[Toolset]:
    one = st.tuples(st.sampled_from(DESCRIPTIONS), st.sampled_from(SCHEMAS))
    return st.lists(one, max_size=3).map(lambda found: Toolset(Tool(f"t{n}", *spec) for n, spec in enumerate(found)))


@every
@settings(max_examples=60)
@given(
    system=st.lists(harmless, max_size=2),
    toolset=toolsets(),
    turns=st.lists(
        actions(st.sampled_from(["look_up", "打开"]), st.sampled_from(["item", "价"]), harmless), max_size=3
    ),
    seen=harmless,
)
def test_a_conversation_has_the_tokens_of_the_dialect_forgotten_thoughts_left_out(
    subject: str, system: list[str], toolset: Toolset, turns: list[Action], seen: str
) -> None:
    dialect = make(subject)
    opening = [*(message("system", text) for text in system), message("user", "Price of 茶?")]
    messages, told = [said(one) for one in opening], {}
    done = [Turn(one, tuple(Observation(call.id, call.tool, seen) for call in one.calls)) for one in turns]
    for number, action in enumerate(turns, start=1):
        messages.append(acted(action))
        if action.answer is not None:
            told[number] = message("user", seen)
            messages.append({"role": "user", "content": seen})
            continue
        messages += [{"role": "tool", "tool_call_id": one.id, "content": seen} for one in action.calls]
    history = History(dialect, opening, toolset, done, told)
    ids = history.ids(history.memory())
    spelled = " ".join(json.dumps(one, ensure_ascii=False) for one in messages)
    if any(token in spelled for token in SUBJECTS[subject][1]):
        return  # a template can't keep the spelling of a special token apart from the token
    assert rendered(subject, messages, toolset) == ids


@settings(max_examples=300)
@given(
    st.from_regex(r"-?[0-9.eE+\-]{1,20}", fullmatch=True)
    | st.sampled_from(["true", "null", "NaN", "-Infinity", "{", '"', "a b", " a", "a\nb", "", "²", "٣", "<call>"])
)
@example("9007199254740991")
@example("9007199254740992")
@example("-0")
@example("1e999")
@example("01")
@example("1.")
@example("9" * 5000)
def test_lines_quotes_the_texts_that_json_would_read(text: str) -> None:
    action = Action(calls=(Call("0", "look_up", {"item": text}),))
    messages = [{"role": "user", "content": "?"}, acted(action)]
    written = tiny.tiny_tokenizer().apply_chat_template(messages, chat_template=chat_template("lines"), tokenize=False)
    value = written.split("item: ", 1)[1].removesuffix("<|im_end|>\n")
    assert (value == text) == reads_as_itself(text)


@pytest.mark.parametrize("name", NAMES)
def test_every_dialect_has_a_template(name: str) -> None:
    assert "add_generation_prompt" in chat_template(name)


def test_an_unknown_dialect_names_those_there_are() -> None:
    with pytest.raises(InputError, match="hermes-compact"):
        chat_template("klingon")


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_a_message_are_joined(name: str) -> None:
    parts = [{"type": "text", "text": "Price "}, {"type": "text", "text": "of tea?"}]
    made = [
        tiny.tiny_tokenizer().apply_chat_template(
            [{"role": "user", "content": content}], chat_template=chat_template(name), tokenize=False
        )
        for content in (parts, "Price of tea?")
    ]
    assert made[0] == made[1]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_that_are_text_are_refused_instead_of_quoted_twice(name: str) -> None:
    call = {"function": {"name": "look_up", "arguments": '{"item": "tea"}'}}
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    with pytest.raises(TemplateError, match="must be an object"):
        tiny.tiny_tokenizer().apply_chat_template(messages, chat_template=chat_template(name), tokenize=False)
