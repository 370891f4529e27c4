"""Settings of reinforcement learning, each with a default and the reason for it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from quintain.training.advantage import MIN_SURVIVORS
from quintain.training.config import TrainConfig
from quintain.training.guard import GuardConfig
from quintain.training.reward import RewardConfig


class GRPOConfig(TrainConfig):
    """Group-relative policy optimisation. Defaults suit 7B-14B models; a recipe for another size says so.

    Attributes:
        learning_rate: 3e-7, the middle of the 1e-7..5e-7 at which 7B-14B agents learn without collapsing; it
            rises over `warmup` and then stays, for the run has no end it must anneal towards.
        weight_decay: none; the KL already holds the policy near its start.
        checkpoint_seconds: shorter than in fine-tuning, because a rollback goes back to a checkpoint.
        group_size: episodes of one task. 8 to 16: fewer and most groups are all right or all wrong, more and the
            same episodes teach less than another task would.
        groups: tasks per step; 64 x 16 = 1,024 trajectories, within the 512..2048 that steady a 7B-14B model.
        steps: most optimiser steps.
        seconds: seconds of rollouts and training, validation not counted, after which it stops. None: no bound.
        lora_rank: rank of the adapters; 0 trains all weights. With adapters the KL needs no second model.
        kl: weight of the KL from the start. 0.01..0.05: less and the language drifts, more and little is learnt.
        advantage: `mean` subtracts the group's mean reward; `standardised` also divides by its spread.
        clip_low: lower clip of the ratio, PPO's 0.2.
        clip_high: upper clip, wider (DAPO's 0.28), so that unlikely tokens can rise.
        ratio_cap: importance weights are truncated here, which bounds what one stale token can do.
        off_policy_limit: nats a token; a bad episode the policy has moved away from further than this is left
            out, but for its KL. 0.1 is a hundred times what rounding makes of it.
        ahead: steps whose episodes are played before the trainer asks for them. 0: every token is the current
            policy's. 1 plays on while the trainer works, with tokens at most one update old: it pays where tools are
            slow or the engine has a device of its own; on shared cores the two only take turns.
        max_staleness: updates a token may be older than the policy that learns from it.
        stale: what happens to older tokens: the episode is dropped, they are masked, or they count half as much
            with every further update.
        fresh_share: least share of a batch's groups sampled by the current policy; the rest may be kept groups of
            the last steps. 1 learns from every group once, which is steadiest; 0.5 doubles the batch where
            groups that vary are rare.
        refill: how often a step draws other tasks in place of groups that taught nothing.
        validate_every: steps between validations, if the stage names a pool for them.
        reward: what a success costs.
        guard: what ends or rolls back the run.
    """

    learning_rate: float = Field(default=3e-7, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    checkpoint_seconds: float = Field(default=300.0, ge=0)
    group_size: int = Field(default=16, ge=MIN_SURVIVORS)
    groups: int = Field(default=64, gt=0)
    steps: int = Field(default=200, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    lora_rank: int = Field(default=0, ge=0)
    kl: float = Field(default=0.02, ge=0)
    advantage: Literal["mean", "standardised"] = "mean"
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    clip_high: float = Field(default=0.28, gt=0)
    ratio_cap: float = Field(default=2.0, gt=1)
    off_policy_limit: float = Field(default=0.1, gt=0)
    ahead: int = Field(default=0, ge=0)
    max_staleness: int = Field(default=4, ge=0)
    stale: Literal["drop", "mask", "down_weight"] = "drop"
    fresh_share: float = Field(default=1.0, gt=0, le=1)
    refill: int = Field(default=1, ge=0)
    validate_every: int = Field(default=10, gt=0)
    reward: RewardConfig = RewardConfig()
    guard: GuardConfig = GuardConfig()

    @model_validator(mode="after")
    def _ahead_within_staleness(self) -> GRPOConfig:
        if self.stale != "down_weight" and self.ahead > self.max_staleness:
            both = f"ahead = {self.ahead} > max_staleness = {self.max_staleness}"
            raise ValueError(f"{both}: every token would be too old to learn from")
        return self

    @model_validator(mode="after")
    def _cap_beyond_clip(self) -> GRPOConfig:
        if self.ratio_cap < 1 + self.clip_high:
            raise ValueError(f"ratio_cap = {self.ratio_cap} must be at least 1 + clip_high = {1 + self.clip_high:g}")
        return self
