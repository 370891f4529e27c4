"""Settings of GRPO that would leave nothing to learn from are refused when they are read."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from quintain.training.grpo_config import GRPOConfig


@pytest.mark.parametrize("rule", ["drop", "mask"])
def test_playing_further_ahead_than_tokens_may_be_old_is_refused(rule):
    with pytest.raises(ValidationError, match=r"ahead = 2 > max_staleness = 1"):
        GRPOConfig(ahead=2, max_staleness=1, stale=rule)
    assert GRPOConfig(ahead=1, max_staleness=1, stale=rule).ahead == 1


def test_tokens_that_count_less_may_be_of_any_age():
    assert GRPOConfig(ahead=9, max_staleness=0, stale="down_weight").ahead == 9
