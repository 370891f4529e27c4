"""Settings of curation, each with a default and the reason for it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Mask = Literal["agent", "wrong_turns", "verdict_prefix", "verdict_suffix"]
"""Which tokens carry loss; `quintain.curation.lessons` says what each does."""


class CurationConfig(BaseModel):
    """What is kept of many episodes, and what is learnt of each.

    Attributes:
        failure_share: share of failed episodes (no success, no honest decline) among those kept. 0.20: an agent that
            never saw a failure repeats a failing call until its budget is gone; nobody has published an optimum, so it
            is a setting to study. Failures beyond it are dropped; where there are fewer, the share is smaller.
        mask: which tokens carry loss. `wrong_turns` keeps what was wrong in view and never imitates it.
        window_turns: longest run of turns in one example, 8 to 16. 16 gives every turn at least 8 turns of history.
        near_duplicate: Jaccard similarity of two episodes from which the later one is dropped. 0.95: different tasks
            of one template of the desk reach 0.91. 1 keeps all but exact copies.
        cluster_cap: most episodes of one cluster (tasks that share content), so that one document can't dominate.
        balance: how far families (world and template) and then languages are evened out. One with `n` episodes, where
            the mean is `m < n`, keeps `m * (n/m)**(1 - balance)`: 0 leaves all, 1 caps at the mean.
        most_calls: calls a turn may hold; one with more is malformed and carries no loss. None: any number.
        max_repeats: most repetitions of calls an episode may hold; one stuck in a loop teaches the loop.
        size: most episodes kept; None: no bound.
        seed: of what is left out where a choice must be made.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    failure_share: float = Field(default=0.2, ge=0, lt=1)
    mask: Mask = "wrong_turns"
    window_turns: int = Field(default=16, ge=2)
    near_duplicate: float = Field(default=0.95, gt=0, le=1)
    cluster_cap: int = Field(default=32, ge=1)
    balance: float = Field(default=0.5, ge=0, le=1)
    most_calls: int | None = Field(default=None, ge=1)
    max_repeats: int = Field(default=3, ge=0)
    size: int | None = Field(default=None, ge=1)
    seed: int = 0
