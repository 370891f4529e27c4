"""Monitors by hand."""

from __future__ import annotations

import pytest
from rl_episodes import answers, calls, episode, malformed

from quintain.interface.episode import Outcome
from quintain.training.advantage import form_groups
from quintain.training.monitors import behaviour_monitors, group_monitors, repetition, tool_failure_spread
from quintain.training.reward import RewardConfig, reward


def groups(*episodes) -> list:
    return form_groups(episodes, lambda one: reward(one, RewardConfig()))


def task(name: str, *successes: bool | None, **more) -> list:
    return [episode(answers(), success=one, task=name, number=n, **more) for n, one in enumerate(successes)]


def test_monitors_of_groups_by_hand():
    """Rewards 1000 and 1111 and one lone survivor: deviations sqrt(3)/4, 0 and 0."""
    mixed, same, lone = task("a", True, False, False, False), task("b", *[True] * 4), task("c", False, None)
    row = group_monitors(groups(*mixed, *same, *lone))
    assert (row["groups"], row["kept_groups"], row["short_groups"]) == (3, 1, 1)
    assert (row["episodes"], row["infra"]) == (9, 1)
    assert row["success"] == row["reward"] == pytest.approx(5 / 9)
    assert row["reward_spread"] == pytest.approx((3**0.5 / 4) / 3)
    assert row["zero_variance"] == pytest.approx(2 / 3)
    assert row["pass_at_k"] == pytest.approx(2 / 3)


def test_a_step_without_a_scored_episode_still_has_its_counts():
    row = group_monitors(groups(*task("a", None, None)))
    assert row == {"groups": 1, "kept_groups": 0, "short_groups": 1, "episodes": 0, "infra": 2}
    assert behaviour_monitors([], len) == {}


def test_success_is_watched_per_template():
    row = group_monitors(groups(*task("a", True, False, template="sum"), *task("b", True, True, template="lookup")))
    assert (row["success/sum"], row["success/lookup"]) == (0.5, 1.0)


def test_spread_that_goes_with_tool_failures_alone_is_told_apart_from_the_policys():
    broken = [episode(calls("a", error="timeout"), answers(), success=False, number=n) for n in range(2)]
    fine = [episode(calls("a"), answers(), success=True, number=n) for n in range(2, 4)]
    assert tool_failure_spread(groups(*broken, *fine)) == pytest.approx(1.0)
    assert tool_failure_spread(groups(*task("a", True, False, True, False))) == pytest.approx(0.0)
    assert tool_failure_spread(groups(*task("a", True, True))) is None


def test_half_of_the_spread_by_hand():
    """Where tools failed: rewards 1, 0, 0; elsewhere: 1, 1, 1."""
    broken = [episode(calls("a", fault="5xx"), answers(), success=n == 0, number=n) for n in range(3)]
    fine = [episode(calls("a"), answers(), success=True, number=n) for n in range(3, 6)]
    # mean 2/3; whole = 4 (1/3)^2 + 2 (2/3)^2 = 4/3; parts have means 1/3 and 1: between = 3 (1/3)^2 x 2 = 2/3
    assert tool_failure_spread(groups(*broken, *fine)) == pytest.approx((2 / 3) / (4 / 3))


def test_an_exception_of_a_tool_is_the_agents_doing():
    wrong = [episode(calls("a", error="exception"), answers(), success=False, number=n) for n in range(2)]
    right = [episode(calls("a"), answers(), success=True, number=n) for n in range(2, 4)]
    assert tool_failure_spread(groups(*wrong, *right)) == pytest.approx(0.0)


def test_monitors_of_behaviour_by_hand():
    one = episode(calls("search", thought="two words", ids=(5, 6, 7)), calls("search"), answers(thought="so"))
    two = episode(malformed("json"), answers(finish="length"))
    row = behaviour_monitors([one, two], lambda text: len(text.split()))
    assert row["turns"] == 2.5
    assert row["calls"] == 1.0
    assert row["generated_tokens"] == (3 + 3 + 2 + 2 + 2) / 2
    assert row["thinking_tokens"] == 3 / 5
    assert row["thinking_share"] == 3 / 12
    assert row["repeated_calls"] == 1 / 2
    assert row["invalid_calls"] == 1 / 3
    assert row["tool_use"] == 1 / 2
    assert row["truncation"] == 1 / 2


def test_running_into_a_budget_is_truncation_and_writing_malformed_turns_is_not():
    out_of_turns = episode(answers(), outcome=Outcome("limit", "turns"))
    out_of_patience = episode(answers(), outcome=Outcome("limit", "format_errors"))
    assert behaviour_monitors([out_of_turns], len)["truncation"] == 1
    assert behaviour_monitors([out_of_patience], len)["truncation"] == 0


def test_repetition_counts_four_grams_that_stood_in_the_same_turn_before():
    """1 2 3 4 1 2 3 4: five 4-grams, the last equals the first. Across turns nothing repeats."""
    assert repetition([episode(answers(ids=(1, 2, 3, 4, 1, 2, 3, 4)))]) == 1 / 5
    assert repetition([episode(calls("a", ids=(1, 2, 3, 4)), answers(ids=(1, 2, 3, 4)))]) == 0
    assert repetition([episode(answers(ids=(1, 2)))]) is None
