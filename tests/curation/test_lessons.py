"""Lessons: windows keep every turn once, and each mode says which turns carry loss."""

from __future__ import annotations

import orjson
import pytest
from curation_episodes import answered, called, episode, malformed
from hypothesis import given
from hypothesis import strategies as st

from quintain.curation.lessons import lessons_of
from quintain.interface.episode import Segment, Span
from quintain.interface.lesson import lesson_from_json, windows
from quintain.interface.messages import Action, Call, Observation, Turn


@given(st.integers(1, 200), st.integers(2, 16))
def test_windows_learn_every_turn_once_with_half_a_window_of_history(turns, longest):
    found = list(windows(turns, longest))
    assert [turn for one in found for turn in range(one.learnt_from, one.last)] == list(range(turns))
    assert all(one.last - one.first <= longest for one in found)
    assert all(one.learnt_from - one.first >= longest // 2 for one in found[1:])


def test_an_episode_of_20_turns_is_cut_into_two_windows_of_16():
    long = episode(turns=[*(called(page=number) for number in range(19)), answered()])
    assert [(one.first, one.last, one.learnt) for one in lessons_of(long, "s", "agent", 16)] == [
        (0, 16, tuple(range(16))),
        (8, 20, (16, 17, 18, 19)),
    ]


FAILED = episode(
    turns=[
        called(),
        malformed(),
        called(page=1, error="exception"),
        called(page=2, error="timeout", fault="timeout"),
        answered(),
    ],
    success=False,
    segments=(Segment(tuple(range(50))),),
    spans=tuple(Span(0, 10 * turn, 10 * turn + 5) for turn in range(5)),
)
"""Right, malformed, refused, hit by an injected fault, and a wrong answer."""


@pytest.mark.parametrize(
    ("mask", "learnt"),
    [
        ("agent", (0, 2, 3, 4)),
        ("wrong_turns", (0, 3)),
        ("verdict_prefix", (0, 2, 3, 4)),
        ("verdict_suffix", (0, 2, 3, 4)),
    ],
)
def test_each_mode_says_which_turns_carry_loss_and_none_a_malformed_one(mask, learnt):
    (lesson,) = lessons_of(FAILED, "s", mask, 16)
    assert lesson.learnt == learnt


def test_only_a_failure_gets_a_prefix():
    (failed,) = lessons_of(FAILED, "s", "verdict_prefix", 16)
    (solved,) = lessons_of(episode(), "s", "verdict_prefix", 16)
    assert "does not solve the task" in failed.condition
    assert solved.condition == ""


def test_the_suffix_stands_after_the_last_window_and_says_the_verdict():
    long = [*(called(page=number) for number in range(19)), answered()]
    first, last = lessons_of(episode(turns=long), "s", "verdict_suffix", 16)
    assert (first.judgement, last.judgement) == ("", "My decision is Correct.")
    assert lessons_of(FAILED, "s", "verdict_suffix", 16)[0].judgement == "My decision is Incorrect."


def test_what_is_asked_speaks_the_tasks_language():
    (lesson,) = lessons_of(episode(language="zh"), "s", "verdict_suffix", 16)
    assert lesson.question == "你的回答正确吗？"


def test_without_an_answer_there_is_nothing_to_judge():
    assert lessons_of(episode(turns=[called()], success=False), "s", "verdict_suffix", 16) == []


def test_windows_never_cross_the_border_between_two_contexts():
    spans = (Span(0, 3, 5), Span(0, 7, 9), Span(1, 3, 5))
    split = episode(
        turns=[called(), called(page=1), answered()],
        segments=(Segment(tuple(range(9))), Segment(tuple(range(5)), 0, "discard")),
        spans=spans,
    )
    assert [(one.first, one.last) for one in lessons_of(split, "s", "agent", 16)] == [(0, 2), (2, 3)]


def test_an_episode_without_tokens_is_learnt_up_to_the_turn_no_dialect_can_write():
    (lesson,) = lessons_of(episode(turns=[called(), malformed(), answered()]), "s", "agent", 16)
    assert (lesson.first, lesson.last, lesson.learnt) == (0, 1, (0,))


def test_an_episode_whose_every_turn_is_wrong_teaches_nothing():
    assert lessons_of(episode(turns=[answered()], success=False), "s", "wrong_turns", 16) == []


@pytest.mark.parametrize("mask", ["agent", "wrong_turns", "verdict_prefix"])
def test_a_turn_of_more_calls_than_are_allowed_is_malformed_too(mask):
    calls = tuple(Call(name, "search", {"query": name}) for name in "ab")
    two = Turn(Action(calls=calls), tuple(Observation(name, "search", "found") for name in "ab"))
    one = episode(turns=[called(), two, answered()])
    assert lessons_of(one, "s", mask, 16)[0].learnt == (0, 1, 2)
    assert lessons_of(one, "s", mask, 16, most_calls=1)[0].learnt == (0, 2)


def test_a_lesson_reads_back_as_it_was_written():
    (lesson,) = lessons_of(FAILED, "s", "verdict_suffix", 16)
    assert lesson_from_json(orjson.loads(orjson.dumps(lesson))) == lesson
