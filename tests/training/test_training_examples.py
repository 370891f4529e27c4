"""Examples from episodes: what carries loss and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from quintain.interface.episode import Episode, Outcome, Segment, Span, Usage, Verdict
from quintain.interface.errors import FormatError, InputError
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Message, Observation, Text, Turn
from quintain.interface.tools import Toolset
from quintain.training.examples import episode_examples

PROMPT = (900, 901, 902)
END = 2


def called(number: int) -> Turn:
    return Turn(Action(calls=(Call(f"c{number}", "t", {}),)), (Observation(f"c{number}", "t", "seen"),))


def malformed(**more: object) -> Turn:
    action = Action(error=FormatError("json", "not JSON"), text="{", **more)
    return Turn(action, (Observation(FORMAT_CALL_ID, "", "not JSON", error="format"),))


def answered() -> Turn:
    return Turn(Action(answer="42"))


def episode(turns: Sequence[Turn], **more: object) -> Episode:
    defaults = {
        "id": "e1",
        "task_id": "t1",
        "cluster": "c1",
        "world": "w",
        "agent": "a",
        "messages": (Message("user", (Text("?"),)),),
        "outcome": Outcome("answered"),
        "verdict": Verdict(True),
        "usage": Usage(),
    }
    return Episode(turns=tuple(turns), **{**defaults, **more})


def tokens(number: int) -> tuple[int, ...]:
    """Turn `number` generates its own id three times, then the end token."""
    return (100 + number,) * 3 + (END,)


def context(number: int) -> tuple[int, ...]:
    """What is put before turn `number`."""
    return (500 + number,) * 2


def recorded(turns: Sequence[Turn], segments: Sequence[int] | None = None) -> Episode:
    """An episode whose turn `i` lies in segment `segments[i]`, each segment beginning with the prompt."""
    segments = segments or [0] * len(turns)
    ids: list[list[int]] = [list(PROMPT) for _ in range(max(segments) + 1)]
    spans = []
    for number, (turn, segment) in enumerate(zip(turns, segments, strict=True)):
        record = ids[segment]
        if len(record) > len(PROMPT):
            record.extend(context(number))
        spans.append(Span(segment, len(record), len(record) + 4))
        record.extend([*tokens(number), *turn.action.closing])
    ids[-1].extend((777, 778))
    made = tuple(Segment(tuple(one), index - 1) for index, one in enumerate(ids))
    return episode(turns, segments=made, spans=tuple(spans))


def trained(example) -> list[int]:
    return [token for token, weight in zip(example.ids, example.weights, strict=True) if weight]


def test_only_generated_tokens_carry_loss_their_end_token_included():
    (example,) = episode_examples(recorded([called(0), called(1), answered()]), window_turns=16)
    assert trained(example) == [*tokens(0), *tokens(1), *tokens(2)]
    assert set(example.weights) == {0.0, 1.0}
    assert (example.episode, example.cluster, example.group) == ("e1", "c1", "t1")


def test_tokens_after_the_last_one_with_loss_are_dropped():
    (example,) = episode_examples(recorded([called(0), answered()]), window_turns=16)
    assert example.ids == (*PROMPT, *tokens(0), *context(1), *tokens(1))


def test_a_malformed_turn_is_context():
    (example,) = episode_examples(recorded([called(0), malformed(), answered()]), window_turns=16)
    assert trained(example) == [*tokens(0), *tokens(2)]
    assert tokens(1)[0] in example.ids


def test_the_wrong_turns_a_continuation_begins_with_are_context():
    failed = Turn(Action(calls=(Call("c1", "t", {"a": 1}),)), (Observation("c1", "t", "no", error="exception"),))
    (cloned,) = episode_examples(recorded([called(0), failed, answered()]), window_turns=9)
    assert trained(cloned) == [*tokens(0), *tokens(1), *tokens(2)]
    continued = replace(recorded([called(0), failed, answered()]), parent=("e0", 2))
    (example,) = episode_examples(continued, window_turns=9)
    assert trained(example) == [*tokens(0), *tokens(2)]
    assert example.ids == cloned.ids


def test_a_call_of_an_unknown_tool_or_with_wrong_arguments_is_context():
    call = Call("c", "nope", {})
    seen = Observation("c", "nope", "no such tool", error="format", format_kind="unknown_tool")
    (example,) = episode_examples(recorded([Turn(Action(calls=(call,)), (seen,)), answered()]), window_turns=16)
    assert trained(example) == [*tokens(1)]


def test_closing_tokens_the_agent_did_not_generate_carry_no_loss():
    cut = Turn(Action(answer="4", closing=(END, END)))
    (example,) = episode_examples(recorded([cut, answered()]), window_turns=16)
    assert example.ids == (*PROMPT, *tokens(0), END, END, *context(1), *tokens(1))
    assert trained(example) == [*tokens(0), *tokens(1)]


def test_an_episode_of_malformed_turns_yields_nothing():
    assert episode_examples(recorded([malformed(), malformed()]), window_turns=16) == []


def test_each_segment_is_an_example_and_each_turn_is_learnt_once():
    found = episode_examples(recorded([called(0), called(1), called(2), answered()], [0, 0, 1, 1]), window_turns=16)
    assert [trained(example) for example in found] == [[*tokens(0), *tokens(1)], [*tokens(2), *tokens(3)]]


@pytest.mark.parametrize("length", [9, 10, 13, 23, 40])
@pytest.mark.parametrize("window", [8, 5])
def test_windows_of_a_long_episode_teach_every_turn_once_with_half_a_window_of_history(length, window):
    turns = [*(called(number) for number in range(length - 1)), answered()]
    found = episode_examples(recorded(turns), window_turns=window)
    learnt = [token - 100 for example in found for token in trained(example) if token != END]
    assert learnt == [number for number in range(length) for _ in range(3)]
    for index, example in enumerate(found):
        seen = sorted({token - 100 for token in example.ids if 100 <= token < 200})
        mine = sorted({token - 100 for token in trained(example) if token != END})
        assert example.ids[: len(PROMPT)] == PROMPT
        assert seen == list(range(seen[0], seen[-1] + 1))
        assert len(seen) <= window
        assert index == 0 or mine[0] - seen[0] >= window // 2


def test_a_window_is_cut_at_turn_borders():
    turns = [*(called(number) for number in range(5)), answered()]
    found = episode_examples(recorded(turns), window_turns=4)
    assert found[1].ids == (
        *PROMPT,
        *tokens(2),
        *context(3),
        *tokens(3),
        *context(4),
        *tokens(4),
        *context(5),
        *tokens(5),
    )


class Spelled:
    """A dialect in which everything is a few fixed ids."""

    id, version, stop, forgets = "spelled", "1", (END,), False

    def prompt(self, messages, toolset):
        return list(PROMPT)

    def observe(self, observations):
        return [600 + len(observations)]

    def say(self, message):
        return [700 + len(message.text)]

    def write(self, action):
        return [800 + len(action.calls), END]

    def parse(self, ids, *, cut, prefix):
        raise NotImplementedError


def test_an_episode_without_tokens_is_rendered():
    told = episode([called(0), answered(), answered()], user_messages={2: Message("user", (Text("go on"),))})
    (example,) = episode_examples(told, window_turns=16, dialect=Spelled(), toolset=Toolset([]))
    assert example.ids == (*PROMPT, 801, END, 601, 800, END, 705, 800, END)
    assert trained(example) == [801, END, 800, END, 800, END]


def test_an_episode_without_tokens_is_rendered_up_to_its_first_malformed_turn():
    told = episode([called(0), malformed(), answered()])
    (example,) = episode_examples(told, window_turns=16, dialect=Spelled(), toolset=Toolset([]))
    assert example.ids == (*PROMPT, 801, END)


def test_an_episode_without_tokens_needs_a_dialect():
    with pytest.raises(InputError, match="episode e1 has no tokens: give the dialect and toolset"):
        episode_examples(episode([answered()]), window_turns=16)
