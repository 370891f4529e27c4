"""Bounded staleness: what happens to tokens that an older policy sampled."""

from __future__ import annotations

from typing import Literal

from quintain.training.advantage import Group

StaleRule = Literal["drop", "mask", "down_weight"]

HALVINGS = 3
"""Versions past the bound at which down-weighting ends: an eighth of the weight is not worth its computation."""


def token_weight(age: int, bound: int, rule: StaleRule) -> float:
    """Loss weight of a token whose policy is `age` versions old.

    Up to `bound` versions a token counts in full. Beyond it, it counts nothing (`drop` and `mask`), or half as
    much with every further version, and nothing after `HALVINGS` of them (`down_weight`).

    Raises:
        ValueError: the token is from the future.
    """
    if age < 0:
        raise ValueError(f"a token is {-age} versions newer than the policy that learns from it")
    if age <= bound:
        return 1.0
    if rule == "down_weight" and age <= bound + HALVINGS:
        return 0.5 ** (age - bound)
    return 0.0


def turn_weights(ages: list[int], bound: int, rule: StaleRule) -> list[float]:
    """Loss weights of an episode's turns by the ages of their policies.

    `drop` judges the episode by its oldest turn, the other rules every turn for itself: an episode under way
    while the weights change holds tokens of several policies.
    """
    weights = [token_weight(age, bound, rule) for age in ages]
    if rule == "drop" and not all(weights):
        return [0.0] * len(weights)
    return weights


def oldest_usable(bound: int, rule: StaleRule) -> int:
    """The age beyond which nothing is left of an episode: how long groups are kept for reuse."""
    return bound + HALVINGS if rule == "down_weight" else bound


def reusable(fresh: int, share: float) -> int:
    """How many stale groups may join `fresh` ones so that fresh ones are at least `share` of the batch."""
    return int(fresh * (1.0 - share) / share + 1e-9)


def oldest_version(group: Group) -> int:
    """Version of the policy that drew the oldest token of a group."""
    generations = [turn.action.generation for episode in group.episodes for turn in episode.turns]
    return min((one.version for one in generations if one), default=0)
