"""Strict alternation on every episode of a journal: a violation is rejected with its line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from curation_episodes import answered, called, episode, malformed, records_of, write_records

from quintain.curation.checks import Rejection, checked, unfit
from quintain.interface.episode import Outcome
from quintain.interface.messages import message
from quintain.interface.reading import JOURNAL, read_episodes


def check(tmp_path, records):
    (recorded,) = read_episodes(write_records(tmp_path, records) / JOURNAL)
    return checked(recorded)


@pytest.mark.parametrize(
    "fit",
    [
        episode(),
        episode(turns=[called()]),
        episode(turns=[malformed(), called(), answered()]),
        episode(turns=[answered("a"), answered("b")], user_messages={1: message("user", "go on")}),
    ],
)
def test_what_the_harness_writes_passes_as_it_is(tmp_path, fit):
    found = check(tmp_path, records_of(fit))
    assert found.turns == fit.turns
    assert found.user_messages == fit.user_messages


def test_a_missing_turn_is_rejected_with_the_line_of_the_one_in_its_place(tmp_path):
    records = records_of(episode(turns=[called(), called(page=1), answered()]))
    del records[2]
    assert check(tmp_path, records) == Rejection("alternation", "turn 1 is missing: its place holds turn 2", 3)


def test_a_call_without_its_observation_is_rejected_with_its_line(tmp_path):
    records = records_of(episode(turns=[called(), called(page=1), answered()]))
    records[2]["turn"]["observations"] = []
    found = check(tmp_path, records)
    assert (found.reason, found.line) == ("alternation", 3)
    assert found.detail == "turn 1: observations must answer calls ['c'], found []"


def test_an_action_after_an_answer_is_rejected_with_its_line(tmp_path):
    found = check(tmp_path, records_of(episode(turns=[answered("a"), answered("b")])))
    assert found == Rejection("alternation", "turn 0 is an answer and turn 1 follows without a user message", 3)


def test_a_user_who_interrupts_is_rejected(tmp_path):
    interrupted = episode(turns=[called(), answered()], user_messages={1: message("user", "hurry")})
    found = check(tmp_path, records_of(interrupted))
    assert found.detail == "the user speaks after turn 0, between its observations and the next action"
    assert found.line == 2


def test_an_episode_without_a_task_or_without_a_turn_is_rejected(tmp_path):
    silent = replace(episode(), messages=(message("system", "You are an agent."),))
    assert check(tmp_path / "a", records_of(silent)).detail == "no user message stands before the first turn"
    assert check(tmp_path / "b", records_of(replace(episode(), turns=(), spans=()))).detail == "no turn"


def test_a_damaged_end_is_rejected_with_its_line(tmp_path):
    records = records_of(episode())
    records[-1]["outcome"] = {"kind": "limit", "limit": "", "detail": ""}
    found = check(tmp_path, records)
    assert (found.reason, found.line) == ("damaged", 4)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (episode(success=None), "unscored"),
        (replace(episode(), outcome=Outcome("agent_error", detail="boom")), "agent_error"),
        (episode(turns=[malformed(), malformed()], success=False), "malformed"),
        (episode(turns=[called()] * 5), "loop"),
    ],
)
def test_what_teaches_nothing_is_unfit(one, reason):
    assert unfit(one, max_repeats=3)[0] == reason


def test_as_many_repeats_as_allowed_are_fit():
    assert unfit(episode(turns=[called()] * 4), max_repeats=3) is None
