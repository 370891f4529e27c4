"""Reward: success first, then cost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rl_episodes import answers, calls, episode

from quintain.interface.episode import Usage
from quintain.training.reward import RewardConfig, cost, reward

WEIGHTS = st.floats(0, 1e6)
USAGES = st.builds(
    Usage,
    tool_calls=st.integers(0, 10**6),
    tokens=st.integers(0, 10**7),
    seconds=st.floats(0, 1e6),
    price=st.floats(0, 1e6),
)
CONFIGS = st.builds(
    RewardConfig,
    calls=WEIGHTS,
    redundant_calls=WEIGHTS,
    tokens=WEIGHTS,
    seconds=WEIGHTS,
    price=WEIGHTS,
    most_cost=st.floats(0.01, 0.99),
)


@given(USAGES, USAGES, CONFIGS)
def test_any_success_beats_any_failure_whatever_the_weights(dear, cheap, config):
    wins = reward(episode(answers(), usage=dear), config)
    fails = reward(episode(answers(), success=False, usage=cheap), config)
    assert wins > fails


@given(USAGES, st.integers(1, 10), st.floats(1e-4, 0.1))
def test_one_more_call_never_pays(usage, more, weight):
    config = RewardConfig(calls=weight)
    before = reward(episode(answers(), usage=usage), config)
    usage.tool_calls += more
    assert reward(episode(answers(), usage=usage), config) <= before


def test_the_cost_by_hand():
    """3 calls, one of them a repeat: raw cost 3 x 0.02 + 1 x 0.05 = 0.11, and 0.5 (1 - e^-0.22) = 0.09874."""
    one = episode(calls("search"), calls("search"), calls("open"), answers())
    config = RewardConfig(calls=0.02, redundant_calls=0.05)
    assert cost(one, config) == pytest.approx(0.5 * (1 - math.exp(-0.22)))
    assert reward(one, config) == pytest.approx(1 - 0.0987407, abs=1e-6)


def test_tokens_seconds_and_price_cost_by_their_unit():
    usage = Usage(tokens=100, seconds=2.0, price=0.5)
    config = RewardConfig(tokens=1e-4, seconds=0.005, price=0.02)
    assert cost(episode(answers(), usage=usage), config) == pytest.approx(0.5 * (1 - math.exp(-0.03 / 0.5)))


def test_without_weights_a_success_is_worth_one_and_a_failure_nothing():
    assert reward(episode(calls("a"), answers()), RewardConfig()) == 1.0
    assert reward(episode(calls("a"), answers(), success=False), RewardConfig(calls=0.1)) == 0.0


def test_an_infra_error_has_no_reward():
    assert reward(episode(answers(), success=None), RewardConfig()) is None


def test_a_call_is_redundant_only_if_tool_and_arguments_repeat():
    assert episode(calls("a", "b"), calls("a"), calls("a"), calls("c")).repeated_calls() == 2


def test_a_cost_that_could_outweigh_success_is_refused():
    with pytest.raises(ValidationError, match="most_cost"):
        RewardConfig(most_cost=1.0)
