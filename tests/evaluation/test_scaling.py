"""Growth with tokens: known laws are found again, the largest point is held out, too little is refused."""

from __future__ import annotations

import math

import pytest

from quintain.evaluation.scaling import fit_scaling
from quintain.interface.errors import InputError

AMOUNTS = [0, 1e5, 2e5, 4e5, 8e5, 1.6e6, 3.2e6]


def test_scores_that_grow_with_the_logarithm_are_predicted_by_it():
    scores = [0.2 + 0.05 * math.log(1 + tokens / 2e5) for tokens in AMOUNTS]
    logarithm = fit_scaling(AMOUNTS, scores)[0]
    assert logarithm.name == "logarithm"
    assert logarithm.predicted == pytest.approx(scores[-1], abs=0.005)
    assert abs(logarithm.error) < 0.005
    assert logarithm.low <= logarithm.high


def test_scores_that_level_off_by_a_power_are_predicted_by_it():
    scores = [0.7 - 0.4 * (1 + tokens / 1e5) ** -0.8 for tokens in AMOUNTS]
    power = fit_scaling(AMOUNTS, scores)[1]
    assert power.name == "power"
    assert power.predicted == pytest.approx(scores[-1], abs=0.005)


def test_the_largest_amount_has_no_say_in_the_fit():
    scores = [0.2 + 0.05 * math.log(1 + tokens / 2e5) for tokens in AMOUNTS]
    one, other = fit_scaling(AMOUNTS, scores)[0], fit_scaling(AMOUNTS, [*scores[:-1], 0.9])[0]
    assert other.predicted == one.predicted
    assert other.error == pytest.approx(one.predicted - 0.9)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_fewer_than_five_amounts_are_refused_however_many_seeds_there_are(count):
    amounts = [tokens for tokens in AMOUNTS[:count] for _ in range(3)]
    with pytest.raises(InputError, match=rf"needs 5 different amounts of tokens, found {count}$"):
        fit_scaling(amounts, [0.5] * len(amounts))
