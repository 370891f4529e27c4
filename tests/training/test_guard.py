"""The guard on synthetic curves: each collapse trips its rule, no healthy run trips any."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from quintain.training.guard import Alarm, Guard, GuardConfig
from quintain.training.rules import RULES

STEPS = 60
BREAKS = 30
"""First step of each synthetic collapse."""


def healthy(step: int, seed: int = 0) -> dict[str, Any]:
    """A run that learns: success rises, thoughts and entropy shrink, everything is noisy."""
    draw = random.Random(f"{seed}/{step}")
    share = step / STEPS

    def around(mean: float, noise: float, low: float = 0.0, high: float = 1.0) -> float:
        return min(high, max(low, draw.gauss(mean, noise)))

    row = {
        "step": step,
        "groups": 8,
        "kept_groups": draw.choice([0, 1, 2, 3, 4, 5]) if step % 4 == 0 else draw.choice([1, 2, 3, 4, 5]),
        "episodes": 64,
        "infra": draw.choice([0, 0, 0, 3]),
        "reward": around(0.4 + 0.4 * share, 0.08),
        "success": around(0.4 + 0.4 * share, 0.08),
        "reward_spread": around(0.25 - 0.1 * share, 0.05, 0.02),
        "zero_variance": around(0.5, 0.15),
        "pass_at_k": around(0.8, 0.08),
        "tool_failure_spread": around(0.05, 0.05),
        "entropy": around(0.45 - 0.25 * share, 0.05, 0.05),
        "gradient_norm": 0.8 * math.exp(draw.gauss(0, 0.5)),
        "thinking_share": around(0.3 - 0.12 * share, 0.03),
        "repeated_calls": around(0.06, 0.03),
        "repetition": around(0.1, 0.04),
        "invalid_calls": around(0.2 * (1 - share), 0.05),
        "tool_use": around(0.9, 0.05),
        "truncation": around(0.15 * (1 - share), 0.05),
        "mismatch": 1e-4,
        "success/lookup": around(0.5 + 0.3 * share, 0.15),
        "success/sum": around(0.3 + 0.5 * share, 0.15),
    }
    return row | ({"validation_success": around(0.4 + 0.3 * share, 0.05)} if step % 5 == 0 else {})


def from_break(step: int, before: float, after: float, steps: int = 5) -> float:
    """A value that moves in a line from one level to another once the collapse begins."""
    return before + (after - before) * min(1.0, max(0.0, (step - BREAKS) / steps))


COLLAPSES: dict[str, Callable[[int], dict[str, float]]] = {
    # language drift: the same call again and again
    "repeated_calls": lambda step: {"repeated_calls": from_break(step, 0.06, 0.8)},
    "repetition": lambda step: {"repetition": from_break(step, 0.1, 0.9)},
    # format collapse: the thinking share shrinks to nothing
    "thinking": lambda step: {"thinking_share": from_break(step, 0.3, 0.0)},
    "invalid_calls": lambda step: {"invalid_calls": from_break(step, 0.1, 0.95)},
    "tool_use": lambda step: {"tool_use": from_break(step, 0.9, 0.02)},
    "truncation": lambda step: {"truncation": from_break(step, 0.1, 0.9)},
    "reward_spread": lambda step: {"reward_spread": from_break(step, 0.25, 0.005)},
    "no_kept_group": lambda step: {"kept_groups": 0, "success": 0.1} if step >= BREAKS else {},
    "validation": lambda step: {"validation_success": 0.0} if step >= BREAKS and step % 5 == 0 else {},
    "gradient": lambda step: {"gradient_norm": 90.0} if step >= BREAKS else {},
    "not_finite": lambda step: {"not_finite": 1} if step >= BREAKS else {},
    "entropy_up": lambda step: {"entropy": from_break(step, 0.4, 4.0)},
}


def run(change: Callable[[int], dict[str, float]], steps: int = STEPS, seed: int = 0) -> tuple[Guard, Alarm | None]:
    guard = Guard(GuardConfig())
    for step in range(1, steps + 1):
        alarm = guard.observe(healthy(step, seed) | change(step))
        if alarm is not None:
            return guard, alarm
    return guard, None


@pytest.mark.parametrize("name", COLLAPSES)
def test_each_collapse_trips_its_own_rule(name):
    _, alarm = run(COLLAPSES[name])
    assert alarm is not None
    assert (alarm.rule, alarm.ruling) == (name, "roll_back")
    assert alarm.since >= BREAKS - 1
    assert f"rule {name}" in alarm.why


def test_every_rule_that_acts_has_a_collapse_that_trips_it():
    assert set(COLLAPSES) == {rule.name for rule in RULES if rule.act}


@given(st.integers(0, 10**6))
def test_no_healthy_run_trips_any_rule(seed):
    assert run(lambda step: {}, seed=seed)[1] is None


@pytest.mark.parametrize("seed", range(10))
def test_a_healthy_run_hardly_ever_warns(seed):
    guard = Guard(GuardConfig())
    warned = 0
    for step in range(1, STEPS + 1):
        guard.observe(healthy(step, seed))
        warned += not guard.healthy
    assert warned <= STEPS // 10


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mismatch", lambda step: {"mismatch": 0.05}),
        ("entropy_down", lambda step: {"entropy": from_break(step, 0.4, 0.005)}),
        ("pass_at_k", lambda step: {"pass_at_k": from_break(step, 0.8, 0.2)}),
        ("tool_failures", lambda step: {"tool_failure_spread": 0.8}),
        ("zero_variance", lambda step: {"zero_variance": from_break(step, 0.5, 1.0)}),
        ("template", lambda step: {"success/sum": from_break(step, 0.6, 0.1)}),
    ],
)
def test_what_may_be_no_collapse_warns_without_ending_the_run(name, change):
    guard, alarm = run(change)
    assert alarm is None
    assert name in guard.warnings


def test_ragens_stop_rules_hold_to_the_letter():
    """Spread below a tenth of the first ten steps' mean for 10 steps; 5 steps without a group; 5 validations < 1 %."""
    acts = {rule.name: rule.act for rule in RULES}
    assert (acts["reward_spread"], acts["no_kept_group"], acts["validation"]) == (10, 5, 5)
    for level, trips in ((0.0249, True), (0.0251, False)):
        guard = Guard(GuardConfig(off=("zero_variance",)))
        rows = [{"step": step, "reward_spread": 0.25 if step <= 10 else level} for step in range(1, 21)]
        alarms = [guard.observe({"episodes": 8, "infra": 0, "success": 0.5, **row}) for row in rows]
        assert all(alarm is None for alarm in alarms[:19])
        assert (alarms[19] is not None) == trips


def test_a_bad_start_is_no_collapse():
    """A model that has never been trained cuts off, malforms and repeats everything from the first step on."""
    bad = {"truncation": 1.0, "invalid_calls": 0.9, "repeated_calls": 0.6, "repetition": 0.8, "entropy": 6.0}
    guard, alarm = run(lambda step: bad)
    assert alarm is None
    assert not set(bad) & set(guard.warnings)


def test_a_single_spike_warns_and_is_forgotten():
    guard, alarm = run(lambda step: {"gradient_norm": 100.0} if step == BREAKS else {}, BREAKS)
    assert alarm is None
    assert guard.warnings == ("gradient",)
    guard.observe(healthy(BREAKS + 1))
    assert guard.healthy


def test_steps_of_which_a_rule_cannot_speak_do_not_break_its_run():
    """Validation happens every fifth step; the steps between neither help nor harm."""
    _, alarm = run(COLLAPSES["validation"])
    assert alarm is not None
    assert alarm.since == BREAKS


def test_equal_rewards_of_a_policy_that_masters_everything_finish_the_run():
    _, alarm = run(lambda step: {"kept_groups": 0, "success": 1.0, "reward_spread": 0.0} if step >= BREAKS else {})
    assert alarm is not None
    assert alarm.ruling == "finish"


def test_steps_whose_episodes_mostly_broke_blame_the_world_not_the_weights():
    _, alarm = run(lambda step: {"kept_groups": 0, "episodes": 0, "infra": 64} if step >= BREAKS else {})
    assert alarm is not None
    assert alarm.ruling == "no_world"


def test_a_policy_that_never_had_anything_to_learn_from_is_stopped_not_rolled_back():
    _, alarm = run(lambda step: {"kept_groups": 0, "success": 0.0})
    assert alarm is not None
    assert (alarm.ruling, alarm.since) == ("stop", 1)


def test_after_two_rollbacks_the_third_alarm_stops_the_run():
    guard = Guard(GuardConfig())
    rulings = []
    for step in range(1, 200):
        collapsed = step > 20
        alarm = guard.observe(healthy(step) | ({"gradient_norm": 1e3} if collapsed else {}))
        if alarm is not None:
            rulings.append((step, alarm.ruling))
            guard.rolled_back(18)
            if alarm.ruling == "stop":
                break
    assert rulings == [(23, "roll_back"), (26, "roll_back"), (29, "stop")]


def test_a_rollback_forgets_what_came_after_its_checkpoint():
    guard, alarm = run(COLLAPSES["no_kept_group"])
    assert alarm is not None
    guard.rolled_back(BREAKS - 5)
    assert guard.healthy
    for step in range(BREAKS + 5, BREAKS + 9):
        assert guard.observe(healthy(step) | {"kept_groups": 0, "success": 0.1}) is None


def test_rules_can_be_switched_off_by_name_and_a_wrong_name_is_refused():
    guard = Guard(GuardConfig(off=("thinking",)))
    for step in range(1, STEPS + 1):
        assert guard.observe(healthy(step) | COLLAPSES["thinking"](step)) is None
    with pytest.raises(ValidationError, match="no rule 'thinkin'; rules: reward_spread"):
        GuardConfig(off=("thinkin",))
