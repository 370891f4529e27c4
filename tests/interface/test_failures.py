"""What counts as failing, repeating, recovering and wrong, on episodes written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluation.evaluation_episodes import answer, call, episode, malformed
from quintain.interface.episode import Outcome
from quintain.interface.failures import (
    declined_honestly,
    failed_calls,
    faulted,
    recovered,
    steps_to_recover,
    wrong_turns,
)


def struck(kind: str, permanent: bool = False, **arguments):
    """A call that an injected fault struck."""
    turn = call(**arguments)
    (seen,) = turn.observations
    return replace(turn, observations=(replace(seen, fault=kind, permanent=permanent),))


def repeats(*turns) -> list[bool]:
    return [one.repeated for one in failed_calls(episode(turns=turns))]


BAD = call(query="x", error="exception")
GOOD = call(query="x")
DECLINED = Outcome("declined")


def test_the_same_call_after_its_own_error_is_a_repeat():
    assert repeats(BAD, BAD, answer()) == [True, False]
    assert repeats(BAD, call(query="y"), BAD, answer()) == [True, False]
    assert repeats(BAD, call(query="y"), answer()) == [False]


def test_the_same_malformed_text_is_a_repeat_and_another_one_is_not():
    assert repeats(malformed("json", "{"), malformed("json", "{"), answer()) == [True, False]
    assert repeats(malformed("json", "{"), malformed("json", "{{"), answer()) == [False, False]


def test_trouble_that_may_pass_may_be_tried_twice_more():
    late = struck("timeout", query="x")
    assert repeats(late, GOOD, answer()) == [False]
    assert repeats(late, late, late, answer()) == [False, False, False]
    assert repeats(late, late, late, late, answer()) == [False, False, True, False]


@pytest.mark.parametrize("kind", ["tool_gone", "permission_denied", "renamed_field"])
def test_trouble_that_stays_is_not_tried_again(kind):
    assert repeats(struck(kind, query="x"), GOOD, answer()) == [True]


def test_a_call_that_got_through_meanwhile_starts_anew():
    assert repeats(BAD, GOOD, BAD, answer()) == [True, False]
    assert repeats(GOOD, GOOD, answer()) == []


def test_a_failure_in_the_last_turn_left_no_choice():
    assert repeats(GOOD, BAD) == []


def test_only_injected_faults_make_an_episode_faulted():
    assert not faulted(episode(turns=[BAD, answer()]))
    assert faulted(episode(turns=[struck("stale"), answer()]))


def test_recovered_is_a_success_or_a_decline_after_a_fault_that_stays():
    gone, late = struck("tool_gone", permanent=True), struck("timeout")
    said = answer("Cannot answer: the tool is gone")
    assert recovered(episode(success=True, turns=[gone, answer()]))
    assert not recovered(episode(success=False, turns=[gone, answer()]))
    assert declined_honestly(episode(success=False, turns=[gone, said], outcome=DECLINED))
    assert not recovered(episode(success=False, turns=[late, said], outcome=DECLINED))
    assert not recovered(episode(success=False, turns=[BAD, said], outcome=DECLINED))
    assert not recovered(episode(success=None, turns=[gone, said]))


@pytest.mark.parametrize("answered", ["Cannot answer:", "Cannot answer: .", "无法回答：。"])
def test_a_decline_without_a_reason_is_not_honest(answered):
    gone = struck("tool_gone", permanent=True)
    assert not recovered(episode(success=False, turns=[gone, answer(answered)], outcome=DECLINED))


def test_a_renamed_field_can_be_read_and_is_no_reason_to_decline():
    renamed = struck("renamed_field", permanent=True)
    assert not recovered(episode(success=False, turns=[renamed, answer("Cannot answer: odd")], outcome=DECLINED))


def test_two_equal_calls_at_once_are_no_repeat_for_neither_has_seen_the_other_fail():
    (one,), (seen,) = BAD.action.calls, BAD.observations
    calls, both = (one, replace(one, id="c2")), (seen, replace(seen, call_id="c2"))
    twice = replace(BAD, action=replace(BAD.action, calls=calls), observations=both)
    assert repeats(twice, answer()) == [False, False]
    assert repeats(twice, BAD, answer()) == [False, True, False]


def test_steps_to_recover_count_the_turns_until_one_gets_through():
    late = struck("timeout", query="x")
    assert steps_to_recover(episode(turns=[GOOD, late, GOOD, answer()])) == 1
    assert steps_to_recover(episode(turns=[late, late, BAD, GOOD, answer()])) == 3
    assert steps_to_recover(episode(turns=[late, answer()])) == 1
    assert steps_to_recover(episode(turns=[late, late])) is None
    assert steps_to_recover(episode(turns=[GOOD, answer()])) is None


def test_wrong_turns_are_the_agents_own_and_never_those_a_fault_struck():
    turns = [malformed(), BAD, BAD, struck("timeout", query="z"), call(query="z"), answer()]
    assert wrong_turns(episode(success=True, turns=turns)) == {0, 1, 2}
    assert wrong_turns(episode(success=False, turns=turns)) == {0, 1, 2, 5}
    gone = struck("tool_gone", True, query="z")
    assert wrong_turns(episode(success=True, turns=[gone, call(query="z"), answer()])) == {1}
    assert wrong_turns(episode(success=True, turns=[gone, call(query="other"), answer()])) == {1}
    assert wrong_turns(episode(success=True, turns=[gone, call("open", title="z"), answer()])) == set()
