"""The regression gate, Holm's correction, the bootstrap, the frontier and goal-keeping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from evaluation_episodes import answer, call, episode
from hypothesis import given
from hypothesis import strategies as st

from quintain.evaluation.bootstrap import bootstrap_interval
from quintain.evaluation.depth import goal_keeping
from quintain.evaluation.frontier import Point, frontier
from quintain.evaluation.intervals import mean_interval, paired_difference
from quintain.evaluation.multiple import holm
from quintain.evaluation.regression import POWER, gate
from quintain.evaluation.summary import Comparison, compare
from quintain.interface.errors import InputError


def played(successes: int, tasks: int = 60, trial: int = 0):
    return [episode(f"t{number}", number < successes, trial=trial) for number in range(tasks)]


def test_a_checkpoint_far_below_its_baseline_is_worse():
    found = gate(compare(played(50), played(20)), 0.03)
    assert (found.standing, found.passed) == ("worse", False)


def test_a_checkpoint_above_its_baseline_is_not_worse():
    found = gate(compare(played(20), played(50)), 0.03)
    assert (found.standing, found.passed) == ("not_worse", True)


def test_a_small_loss_on_few_tasks_is_undecided_and_says_what_would_have_been_found():
    found = gate(compare(played(8, 12), played(7, 12)), 0.03)
    assert (found.standing, found.passed) == ("undecided", True)
    assert any("undecided: a loss beyond 0.03 is neither shown nor ruled out" in line for line in found.lines())
    assert any("would be found in 80% of evaluations of this size" in line for line in found.lines())


def test_the_same_answers_twice_still_leave_room_for_a_loss():
    """No difference on 10 tasks: by Clopper-Pearson up to 1 - 0.025 ** (1 / 10) = 31 % of all tasks may differ."""
    found = gate(compare(played(5, 10), played(5, 10, trial=1)), 0.03)
    assert found.standing == "undecided"
    assert found.comparison.difference.estimate.low == pytest.approx(-(1 - 0.025**0.1))


@pytest.mark.parametrize("margin", [-0.01, 1.0, float("nan")])
def test_a_margin_that_is_no_share_is_refused(margin):
    with pytest.raises(InputError, match="margin"):
        gate(compare(played(5), played(5)), margin)


def test_a_loss_of_the_stated_size_is_found_in_about_80_of_100_evaluations():
    """100 tasks, of which 0.169 + 0.05 get worse and 0.05 get better: the true loss is 0.169.

    Its standard error is sqrt(0.269 - 0.169 ** 2) / 10 = 0.049, so by hand the detectable loss is
    0.03 + (1.984 + 0.845) x 0.049 = 0.169, the true one.
    """
    rng = np.random.default_rng(5)
    clusters = [f"c{number}" for number in range(100)]
    gates = []
    for _ in range(100):
        change = rng.choice([-0.5, 0.0, 0.5], p=[0.219, 0.731, 0.05], size=100)
        before, after = (0.5 - change).tolist(), (0.5 + change).tolist()
        value = mean_interval(before, clusters)
        gates.append(gate(Comparison(100, 0, value, value, paired_difference(before, after, clusters)), 0.03))
    assert np.mean([one.detectable for one in gates]) == pytest.approx(0.169, abs=0.01)
    found = np.mean([one.standing == "worse" for one in gates])
    assert found == pytest.approx(POWER, abs=3 * (0.8 * 0.2 / 100) ** 0.5)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])  # 3 x 0.01; 2 x 0.03; then not below 0.06
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_only_raises_never_beyond_bonferroni_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    assert all(p <= a <= min(1.0, len(p_values) * p) for p, a in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    assert [adjusted[index] for index in order] == sorted(adjusted)


def test_bootstrap_and_t_interval_agree_where_clusters_are_many():
    rng = np.random.default_rng(2)
    values = (rng.binomial(4, 0.6, size=200) / 4).tolist()
    clusters = [f"c{number // 2}" for number in range(200)]
    one, other = mean_interval(values, clusters), bootstrap_interval(values, clusters)
    assert (other.value, other.method) == (one.value, "bootstrap")
    assert other.low == pytest.approx(one.low, abs=0.01)
    assert other.high == pytest.approx(one.high, abs=0.01)


def test_bootstrap_of_clusters_without_spread_is_the_exact_interval():
    found = bootstrap_interval([0.0] * 30, [f"c{number}" for number in range(30)])
    assert found.method == "exact"
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 30))


def test_frontier_holds_who_is_beaten_by_nobody():
    points = [Point("dear", 0.8, 9), Point("cheap", 0.5, 2), Point("beaten", 0.5, 3), Point("twin", 0.8, 9)]
    assert [point.name for point in frontier(points)] == ["cheap", "dear", "twin"]


def long_episode(serving: range, success: bool):
    turns = [call(query=str(number)) for number in range(23)] + [answer()]
    names = tuple(f"m{number}" for number in serving)
    made = episode("long", success, turns=turns)
    return replace(made, milestones=names, milestone_turns=tuple(serving))


def test_an_episode_that_serves_its_task_to_the_end_keeps_its_goal():
    found = goal_keeping([long_episode(range(23), True)])
    assert found.profile == (1.0, 1.0, 1.0, 1.0)  # the last of 24 turns gives the right answer
    assert found.kept == 1.0


def test_an_episode_that_wanders_off_after_its_first_half_lost_its_goal():
    found = goal_keeping([long_episode(range(12), False)])
    assert found.profile == (1.0, 1.0, 0.0, 0.0)
    assert (found.kept, found.episodes, found.successes) == (0.0, 1, 0)


def test_short_episodes_say_nothing_of_goal_keeping():
    assert goal_keeping([episode("short")]).kept is None
