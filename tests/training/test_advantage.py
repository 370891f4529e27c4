"""Groups: who is in them, which are kept, and what each episode did better than its group."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rl_episodes import answers, calls, episode, malformed

from quintain.interface.errors import InputError
from quintain.training.advantage import form_groups, mean_only, standardised
from quintain.training.experience import group_examples
from quintain.training.reward import RewardConfig, reward
from quintain.training.staleness import oldest_usable, reusable, token_weight, turn_weights


def groups(*successes: bool | None, task: str = "t") -> list:
    episodes = [episode(answers(), success=one, task=task, number=n) for n, one in enumerate(successes)]
    return form_groups(episodes, lambda one: reward(one, RewardConfig()))


def test_mean_only_advantages_by_hand():
    assert mean_only([1.0, 0.0, 0.0, 0.0]) == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_standardised_advantages_by_hand():
    """Mean 0.25, variance 3/16, so the deviation is sqrt(3) / 4."""
    assert standardised([1.0, 0.0, 0.0, 0.0]) == pytest.approx([3**0.5, -(3**-0.5), -(3**-0.5), -(3**-0.5)])


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=16))
def test_advantages_of_a_group_sum_to_zero_and_standardised_ones_have_unit_spread(rewards):
    assume(max(rewards) - min(rewards) > 0.01)
    assert sum(mean_only(rewards)) == pytest.approx(0, abs=1e-9)
    found = standardised(rewards)
    assert sum(found) == pytest.approx(0, abs=1e-6)
    assert sum(value * value for value in found) / len(found) == pytest.approx(1, rel=1e-6)


def test_a_group_of_equal_rewards_is_dropped():
    for successes in ((True,) * 4, (False,) * 4):
        (group,) = groups(*successes)
        assert not group.varies
        assert not group.kept


def test_infra_errors_leave_the_group_and_are_counted():
    (group,) = groups(True, None, False, False, None, False)
    assert (len(group.episodes), group.infra, group.kept) == (4, 2, True)
    assert group.advantages("mean") == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_a_group_with_fewer_than_four_survivors_says_how_many_it_lacks():
    (group,) = groups(True, None, False, None)
    assert (group.short, group.kept) == (2, False)
    (nobody,) = groups(None, None)
    assert (nobody.short, nobody.spread, nobody.varies) == (4, 0.0, False)


def test_tasks_keep_their_order():
    assert [one.task_id for one in [*groups(True, task="b"), *groups(True, task="a")]] == ["b", "a"]


def test_every_generated_token_is_an_action_malformed_ones_too_and_nothing_else():
    members = [episode(malformed(), calls("a"), answers(), number=0)]
    members += [episode(answers(), success=False, number=n) for n in range(1, 4)]
    (group,) = form_groups(members, lambda one: reward(one, RewardConfig()))
    first, *rest = group_examples(group, 0, kind="mean", bound=0, rule="drop")
    assert first.ids == (1, 2, 3, 3, 4, 5, 6, 7, 4, 8, 9)
    assert first.weights == (0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1)
    assert first.advantages == (0, 0, 0.75, 0.75, 0, 0.75, 0.75, 0.75, 0, 0.75, 0.75)
    assert first.behaviour_logprobs == pytest.approx((0, 0, -0.1, -0.2, 0, -0.1, -0.2, -0.3, 0, -0.1, -0.2))
    assert [one.advantages[2] for one in rest] == [-0.25] * 3


def test_episodes_played_under_a_grammar_are_not_learnt_from():
    """Their tokens were drawn from what the grammar left of the policy, and the mask is not kept."""
    free, *others = (episode(answers(), success=bool(n), number=n) for n in range(4))
    (turn,) = free.turns
    made = replace(turn.action.generation, extras={"constrained": True})
    confined = replace(free, turns=(replace(turn, action=replace(turn.action, generation=made)),))
    (group,) = form_groups([confined, *others], lambda one: reward(one, RewardConfig()))
    with pytest.raises(InputError, match="episode 't#0' was played under a grammar"):
        group_examples(group, 0, kind="mean", bound=0, rule="drop")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("drop", []), ("mask", [0, 0, 0, 0, 0, 0, 1, 1]), ("down_weight", [0, 0, 0.5, 0.5, 0.5, 0, 1, 1])],
)
def test_what_becomes_of_an_episode_whose_first_turn_is_two_versions_old(rule, expected):
    """The policy is at version 3 and one version of staleness is allowed: turn 1 is too old, turn 2 is not."""
    old = episode(calls("a", version=1), answers(version=2), number=0)
    members = [old, *(episode(answers(version=3), success=False, number=n) for n in range(1, 4))]
    (group,) = form_groups(members, lambda one: reward(one, RewardConfig()))
    found = [one for one in group_examples(group, 3, kind="mean", bound=1, rule=rule) if one.episode == old.id]
    assert [list(one.weights) for one in found] == ([expected] if expected else [])


def test_weights_by_age():
    assert [token_weight(age, 1, "down_weight") for age in range(6)] == [1, 1, 0.5, 0.25, 0.125, 0]
    assert [token_weight(age, 1, "mask") for age in range(3)] == [1, 1, 0]
    assert turn_weights([2, 0], 1, "drop") == [0, 0]
    assert turn_weights([1, 0], 1, "drop") == [1, 1]
    with pytest.raises(ValueError, match="2 versions newer"):
        token_weight(-2, 1, "mask")


@given(st.integers(0, 5), st.sampled_from(["drop", "mask", "down_weight"]))
def test_groups_are_kept_for_exactly_as_long_as_something_of_them_counts(bound, rule):
    last = oldest_usable(bound, rule)
    assert token_weight(last, bound, rule) > 0
    assert token_weight(last + 1, bound, rule) == 0


@given(st.integers(0, 64), st.floats(0.05, 1))
def test_fresh_groups_keep_their_share_of_a_batch(fresh, share):
    stale = reusable(fresh, share)
    assert fresh >= share * (fresh + stale) - 1e-6
    assert fresh < share * (fresh + stale + 1) + 1e-6


def test_half_fresh_means_as_many_stale_as_fresh_groups():
    assert (reusable(3, 0.5), reusable(3, 1.0), reusable(0, 0.5), reusable(1, 0.25)) == (3, 0, 0, 3)
