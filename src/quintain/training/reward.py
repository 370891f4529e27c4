"""Reward of an episode: success first, then cost."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict, Field

from quintain.interface.episode import Episode


class RewardConfig(BaseModel):
    """What a success costs, in units of reward. All costs are 0 by default: what a call is worth is the user's to say.

    Attributes:
        calls: per tool call.
        redundant_calls: per call that repeats an earlier one of the episode, on top of `calls`.
        tokens: per generated token.
        seconds: per wall second.
        price: per unit of the world's price.
        most_cost: bound of the whole cost. Below 1, so that the dearest success still beats every failure;
            0.5 keeps the two as far apart as the successes are among themselves.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: float = Field(default=0.0, ge=0)
    redundant_calls: float = Field(default=0.0, ge=0)
    tokens: float = Field(default=0.0, ge=0)
    seconds: float = Field(default=0.0, ge=0)
    price: float = Field(default=0.0, ge=0)
    most_cost: float = Field(default=0.5, gt=0, lt=1)


def reward(episode: Episode, config: RewardConfig) -> float | None:
    """1 minus the cost for a success, 0 for a failure, None for an episode without a score (an infra error).

    Failures cost nothing: a cheap failure must not look better than a dear one that nearly succeeded, or the
    policy learns to give up. Partial scores of the verdict are not rewarded.
    """
    if not episode.scored:
        return None
    return 1.0 - cost(episode, config) if episode.success else 0.0


def cost(episode: Episode, config: RewardConfig) -> float:
    """Cost in `[0, most_cost)`: `most_cost * (1 - exp(-raw / most_cost))`.

    Small costs count as they are, large ones saturate, and more always costs more: success stays first
    whatever the weights are.
    """
    used = episode.usage
    raw = (
        config.calls * used.tool_calls
        + config.redundant_calls * episode.repeated_calls()
        + config.tokens * used.tokens
        + config.seconds * used.seconds
        + config.price * used.price
    )
    # -expm1 loses nothing for small costs; the bound itself is never reached, rounding included.
    return min(-config.most_cost * math.expm1(-raw / config.most_cost), config.most_cost)
