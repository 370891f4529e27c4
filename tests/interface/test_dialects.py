"""What every dialect promises, whatever it looks like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MARKERS, actions, harmless, plain, tricky

import tiny
from quintain.interface import dialects
from quintain.interface.dialects.base import Dialect
from quintain.interface.errors import InputError
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation, message
from quintain.interface.tools import Tool, Toolset

DEEPSEEK_TOKENS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")
QWEN_TOKENS = (
    *tiny.CHATML_TOKENS,
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "<tool_response>",
    "</tool_response>",
)
V32_TOKENS = (*DEEPSEEK_TOKENS, "<think>", "</think>", "｜DSML｜")

SUBJECTS = {
    "hermes": ("hermes", tiny.CHATML_TOKENS),
    "hermes, markers are tokens": ("hermes", QWEN_TOKENS),
    "hermes-compact": ("hermes-compact", tiny.CHATML_TOKENS),
    "lines": ("lines", tiny.CHATML_TOKENS),
    "deepseek": ("deepseek", DEEPSEEK_TOKENS),
    "deepseek, markers are tokens": ("deepseek", V32_TOKENS),
}

LOOKUP = Tool("look_up", "Finds a price.", {"type": "object", "properties": {"item": {"type": "string"}}})
TOOLS = Toolset([LOOKUP])
ASK = [message("system", "Be brief."), message("user", "Price of 茶?")]


def make(subject: str) -> Dialect:
    name, tokens = SUBJECTS[subject]
    return dialects.get(name, tiny.tiny_codec(tokens))


every = pytest.mark.parametrize("subject", SUBJECTS)


def contents(action: Action) -> Any:
    return action.thought, [(call.tool, call.arguments) for call in action.calls], action.answer


@every
@settings(max_examples=60)
@given(action=actions(st.sampled_from(["look_up", "打开"]), st.sampled_from(["item", "价"]), harmless))
def test_writing_then_parsing_is_the_identity_whatever_the_arguments(subject: str, action: Action) -> None:
    dialect = make(subject)
    ids = dialect.write(action)
    assert ids[-1] == dialect.stop[0]
    assert contents(dialect.parse(ids, cut=False, prefix="c")) == contents(action)


@every
@settings(max_examples=60)
@given(action=actions(tricky.filter(bool), tricky, tricky))
def test_an_action_either_round_trips_or_is_refused(subject: str, action: Action) -> None:
    dialect = make(subject)
    try:
        ids = dialect.write(action)
    except ValueError:
        return
    assert contents(dialect.parse(ids, cut=False, prefix="c")) == contents(action)


@every
@settings(max_examples=100)
@given(text=tricky | st.text(max_size=40), cut=st.booleans())
def test_no_text_crashes_the_parser(subject: str, text: str, cut: bool) -> None:
    dialect = make(subject)
    action = dialect.parse([*dialect.codec.encode(text), dialect.stop[0]], cut=cut, prefix="c")  # type: ignore[attr-defined]
    assert action.error is None or action.text == text.encode("utf-8", "replace").decode()


@every
@settings(max_examples=100)
@given(ids=st.lists(st.integers(0, 450) | st.integers(-(2**70), 2**70), max_size=40), cut=st.booleans())
def test_no_ids_crash_the_parser(subject: str, ids: list[int], cut: bool) -> None:
    assert isinstance(make(subject).parse(ids, cut=cut, prefix="c"), Action)


@every
@settings(max_examples=40)
@given(action=actions(st.just("look_up"), st.just("item"), harmless))
def test_another_tokenization_of_the_same_text_parses_to_the_same_action(subject: str, action: Action) -> None:
    dialect = make(subject)
    codec = dialect.codec  # type: ignore[attr-defined]
    text = codec.decode(dialect.write(action)[:-1])
    one_by_one = [index for character in text for index in codec.encode(character)]
    assert contents(dialect.parse([*one_by_one, dialect.stop[0]], cut=False, prefix="c")) == contents(action)


@every
def test_nobody_forges_a_special_token_from_user_text_observations_tools_or_arguments(subject: str) -> None:
    dialect = make(subject)
    tokens = SUBJECTS[subject][1]
    forged = "".join(tokens)
    evil = Toolset([Tool("look_up", forged, {"type": "object", "properties": {"item": {"description": forged}}})])
    special = range(len(tokens))

    def count(ids: list[int]) -> list[int]:
        return [ids.count(index) for index in special]

    honest = [message("system", "a"), message("user", "b")]
    assert count(dialect.prompt([message("system", forged), message("user", forged)], evil)) == count(
        dialect.prompt(honest, TOOLS)
    )
    assert count(dialect.observe([Observation("c0", "look_up", forged)])) == count(
        dialect.observe([Observation("c0", "look_up", "x")])
    )
    assert count(dialect.say(message("user", forged))) == count(dialect.say(message("user", "x")))
    assert count(dialect.write(Action(calls=(Call("c0", "look_up", {"item": forged}),)))) == count(
        dialect.write(Action(calls=(Call("c0", "look_up", {"item": "x"}),)))
    )


@every
def test_what_was_said_is_found_again_in_the_decoded_tokens(subject: str) -> None:
    dialect = make(subject)
    decode = dialect.codec.decode  # type: ignore[attr-defined]
    shown = decode(dialect.prompt(ASK, TOOLS))
    assert shown.index("Be brief.") < shown.index("look_up") < shown.index("Price of 茶?")
    replies = [Observation("c0", "look_up", "第一"), Observation("c1", "look_up", "second")]
    seen = decode(dialect.observe(replies))
    assert seen.index("第一") < seen.index("second")
    assert "again" in decode(dialect.say(message("user", "again")))


@every
def test_prompt_observation_and_user_message_all_open_the_agents_turn_in_the_same_way(subject: str) -> None:
    dialect = make(subject)
    decode = dialect.codec.decode  # type: ignore[attr-defined]
    opening = "<think>" if subject.startswith("deepseek") else "<|im_start|>assistant\n"
    for ids in (
        dialect.prompt(ASK, TOOLS),
        dialect.observe([Observation(FORMAT_CALL_ID, "", "bad", error="format")]),
        dialect.say(message("user", "again")),
    ):
        assert decode(ids).endswith(opening)


@every
def test_call_ids_are_the_prefix_and_a_running_number(subject: str) -> None:
    dialect = make(subject)
    calls = (Call("a", "look_up", {"item": "tea"}), Call("b", "look_up", {"item": "茶"}))
    found = dialect.parse(dialect.write(Action(calls=calls)), cut=False, prefix="t3.")
    assert [call.id for call in found.calls] == ["t3.0", "t3.1"]


@every
def test_a_turn_without_its_end_token_is_cut_only_if_generation_hit_its_limit(subject: str) -> None:
    dialect = make(subject)
    action = Action(answer="four")
    ids = dialect.write(action)
    assert dialect.parse(ids[:-1], cut=False, prefix="c").answer == "four"
    assert dialect.parse(ids, cut=True, prefix="c").answer == "four"
    error = dialect.parse(ids[:-1], cut=True, prefix="c").error
    assert error is not None
    assert error.kind == "cut"
    assert f"limit of {len(ids) - 1} tokens" in error.message


@every
def test_an_empty_turn_and_tokens_after_the_end_are_typed_errors(subject: str) -> None:
    dialect = make(subject)
    for ids in ([], [dialect.stop[0]], [*dialect.codec.encode(" \n"), dialect.stop[0]]):  # type: ignore[attr-defined]
        error = dialect.parse(ids, cut=False, prefix="c").error
        assert error is not None
        assert error.kind == "empty"
    late = dialect.parse([*dialect.write(Action(answer="four")), 40], cut=False, prefix="c").error
    assert late is not None
    assert late.kind == "prose"


@every
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60, "\ud800", {1: 2}, object(), b"x"])
def test_arguments_that_have_no_safe_json_form_are_refused_on_writing(subject: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"not allowed|can't write"):
        make(subject).write(Action(calls=(Call("c", "look_up", {"item": value}),)))


@every
def test_deep_nesting_and_megabytes_neither_crash_nor_pass(subject: str) -> None:
    dialect = make(subject)
    deep: Any = "x"
    for _ in range(65):
        deep = [deep]
    with pytest.raises(ValueError, match="deeper than 64"):
        dialect.write(Action(calls=(Call("c", "look_up", {"item": deep}),)))
    text = dialect.codec.decode(dialect.write(Action(calls=(Call("c", "look_up", {"item": [1]}),)))[:-1])  # type: ignore[attr-defined]
    for bomb in ("[" * 100_000, "[" * 50_000 + "]" * 50_000, "9" * 50_000, '{"a":' * 20_000):
        if subject == "lines" and bomb[0] == "9":
            continue  # no number any more, so it is a text there
        ids = dialect.codec.encode(text.replace("[1]", bomb))  # type: ignore[attr-defined]
        error = dialect.parse(ids, cut=False, prefix="c").error
        assert error is not None
        assert error.kind in ("json", "unclosed")
    long = "a b" * 350_000 if subject == "hermes" else "a b" * 10_000
    assert dialect.parse(dialect.write(Action(answer=long)), cut=False, prefix="c").answer == long


@every
def test_a_text_that_could_not_be_understood_has_no_canonical_tokens(subject: str) -> None:
    dialect = make(subject)
    broken = dialect.parse([], cut=False, prefix="c")
    with pytest.raises(ValueError, match="could not be understood"):
        dialect.write(broken)


def test_digests_differ_between_dialects_and_depend_on_nothing_else() -> None:
    digests = {subject: make(subject).digest for subject in SUBJECTS}
    assert digests["hermes"] == digests["hermes, markers are tokens"]
    assert len(set(digests.values())) == 4
    assert all(dialects.digest_of(name) == digests[name] for name in dialects.NAMES)


def test_a_missing_special_token_is_named() -> None:
    with pytest.raises(
        InputError, match=r"'deepseek' needs tokens this tokenizer lacks: <｜begin▁of▁sentence｜>, <｜User｜>"
    ):
        dialects.get("deepseek", tiny.tiny_codec((*DEEPSEEK_TOKENS[1:2], "<｜Assistant｜>")))
    with pytest.raises(InputError, match=r"'hermes' needs tokens this tokenizer lacks: <\|im_start\|>"):
        dialects.get("hermes", tiny.tiny_codec(("<|im_end|>",)))


def test_an_unknown_dialect_is_refused_with_the_list_of_known_ones() -> None:
    with pytest.raises(InputError, match="no dialect 'klingon'; dialects: hermes, hermes-compact, lines, deepseek"):
        dialects.get("klingon", tiny.tiny_codec())
    with pytest.raises(InputError, match="no dialect 'deepseek-compact'"):
        dialects.get("deepseek", tiny.tiny_codec(), compact_docs=True)
    assert dialects.get("hermes", tiny.tiny_codec(), compact_docs=True).id == "hermes-compact"


@given(text=plain | st.sampled_from(MARKERS))
def test_the_codec_gives_back_any_text_and_never_a_special_token(text: str) -> None:
    codec = tiny.tiny_codec(QWEN_TOKENS)
    ids = codec.encode(text)
    assert codec.decode(ids) == text
    assert all(index >= len(QWEN_TOKENS) for index in ids)


@every
def test_observations_and_messages_in_a_row_open_one_turn(subject: str) -> None:
    dialect = make(subject)
    seen, asked = [Observation("a", "look_up", "3")], message("user", "And two?")
    both = dialect.codec.decode(dialect.follow([seen, asked]))
    first, second = (dialect.codec.decode(ids) for ids in (dialect.observe(seen), dialect.say(asked)))
    assert both.endswith(second.removeprefix("\n"))
    kept = both.removesuffix(second.removeprefix("\n"))
    assert first.startswith(kept)
    assert "3" in kept
