"""Messages, and the strict alternation of action and observation."""

from __future__ import annotations

from typing import Any

import pytest

from quintain.interface.errors import FormatError, InputError
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation, Turn, message

CALLS = (Call("c0", "open", {}), Call("c1", "open", {}))


def seen(*ids: str) -> tuple[Observation, ...]:
    return tuple(Observation(one, "open", "text") for one in ids)


def test_a_message_is_text_or_text_parts() -> None:
    parts = [{"type": "text", "text": "价"}, {"type": "text", "text": "格"}]
    assert message("user", parts).text == "价格"
    assert message("system", "hi").text == "hi"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([{"type": "image_url", "image_url": {"url": "x"}}], "part of type 'image_url' is not supported"),
        (["hi"], "part of type 'str' is not supported"),
        ([{"type": "text", "text": 3}], "version 1 accepts text only"),
        (7, "content must be text or a list of parts, found int"),
    ],
)
def test_anything_else_is_refused_by_name(content: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        message("user", content)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"calls": CALLS, "answer": "x"},
        {"answer": "", "error": FormatError("empty", "")},
        {"calls": CALLS, "error": FormatError("json", "")},
        {"answer": "x", "summary": "y"},
    ],
)
def test_an_action_is_exactly_one_of_calls_answer_and_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="calls, an answer, an error or a summary"):
        Action(**fields)


def test_call_ids_of_one_action_differ() -> None:
    with pytest.raises(ValueError, match="must differ"):
        Action(calls=(CALLS[0], CALLS[0]))


def test_a_turn_holds_exactly_the_observations_of_its_calls_in_order() -> None:
    assert Turn(Action(calls=CALLS), seen("c0", "c1")).observations[1].call_id == "c1"
    for wrong in (seen("c0"), seen("c1", "c0"), seen("c0", "c1", "c2"), ()):
        with pytest.raises(ValueError, match="observations must answer calls"):
            Turn(Action(calls=CALLS), wrong)


def test_an_answer_has_no_observation_and_a_format_error_exactly_one() -> None:
    broken = Action(error=FormatError("json", "bad"))
    assert Turn(Action(answer="4")).observations == ()
    assert Turn(broken, (Observation(FORMAT_CALL_ID, "", "bad", error="format"),)).action.error is not None
    with pytest.raises(ValueError, match="observations must answer"):
        Turn(Action(answer="4"), seen("c0"))
    with pytest.raises(ValueError, match="observations must answer"):
        Turn(broken)


def test_a_turn_is_malformed_if_its_text_or_one_of_its_calls_could_not_be_understood() -> None:
    wrong = Observation("c1", "open", "no tool", error="format", format_kind="unknown_tool")
    assert Turn(Action(calls=CALLS), (*seen("c0"), wrong)).malformed
    assert not Turn(Action(calls=CALLS), seen("c0", "c1")).malformed


@pytest.mark.parametrize(
    ("answer", "declines"),
    [("Cannot answer: no document.", True), ("  无法回答：没有。", True), ("I cannot answer: no", False), ("", False)],
)
def test_declining_is_said_at_the_start_of_an_answer(answer: str, declines: bool) -> None:
    assert Action(answer=answer).declines is declines


def test_calls_never_decline() -> None:
    assert not Action(calls=CALLS).declines
