"""Recovery rate, repeats and steps to recover, by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from evaluation_episodes import answer, call, episode

from quintain.evaluation.recovery import LONGEST, recovery_of
from quintain.evaluation.summary import summarise
from quintain.interface.episode import Outcome


def struck(kind: str, permanent: bool = False, **arguments):
    turn = call(**arguments)
    (seen,) = turn.observations
    return replace(turn, observations=(replace(seen, fault=kind, permanent=permanent),))


LATE, GONE = struck("timeout", query="x"), struck("tool_gone", True, query="x")
DECLINE = answer("Cannot answer: it is gone")

EPISODES = [
    episode("a", True, turns=[LATE, call(query="x"), answer()]),
    episode("b", False, turns=[GONE, GONE, GONE, answer()]),
    episode("c", False, turns=[GONE, DECLINE], outcome=Outcome("declined")),
    episode("d", True, turns=[LATE, LATE, call(query="x"), answer()]),
    episode("e", True),
    episode("f", False),
]


def test_recovery_is_success_or_honest_decline_among_the_struck():
    found = recovery_of(EPISODES).struck
    assert found.episodes == 4
    assert found.recovery.value == 3 / 4
    assert found.success.value == 2 / 4
    assert found.declined.value == 1 / 4
    assert recovery_of(EPISODES).spared.value == 1 / 2


def test_repeats_are_a_share_of_failed_calls_that_had_a_turn_after_them():
    # a and d retry what may pass, b repeats both calls before its last two turns, c has one and does not repeat it
    assert recovery_of(EPISODES).struck.repeat.value == pytest.approx((0 + 2 / 3 + 0 + 0) / 4)


def test_steps_are_turns_among_the_recovered():
    assert recovery_of(EPISODES).struck.steps.value == pytest.approx((1 + 1 + 2) / 3)
    long = episode("l", True, turns=[LATE] * 40 + [answer()])
    assert recovery_of([long]).struck.steps.value == LONGEST


def test_kinds_stand_apart_and_only_those_that_struck():
    by_kind = recovery_of(EPISODES).by_kind
    assert {kind: (one.episodes, one.recovery.value) for kind, one in by_kind.items()} == {
        "timeout": (2, 1.0),
        "tool_gone": (2, 0.5),
    }


def test_intervals_resample_clusters_and_are_never_empty():
    same = [replace(one, cluster="one") for one in EPISODES]
    assert recovery_of(same).struck.recovery.clusters == 1
    for one in (recovery_of(EPISODES), recovery_of(same)):
        assert one.struck.recovery.low < one.struck.recovery.value < one.struck.recovery.high


def test_without_faults_or_failures_nothing_is_rated():
    found = recovery_of([episode("a"), episode("b", False)])
    assert (found.struck.recovery, found.repeat, dict(found.by_kind)) == (None, None, {})


def test_every_evaluation_has_it():
    record = json.loads(json.dumps(summarise(EPISODES, planned=6).to_json()))
    assert record["recovery"]["struck"]["episodes"] == 4
    assert list(record["recovery"]["by_kind"]) == ["timeout", "tool_gone"]
