from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from quintain.inference.sampler import Ask, draw, uniform
from quintain.interface.generation import Sampling

LOGITS = torch.tensor([[2.0, 1.0, 0.5, 0.0, -1.0, -3.0]])
PROBABILITIES = torch.softmax(LOGITS[0], dim=-1).tolist()


def draws(sampling: Sampling, count: int = 4000, logits: torch.Tensor = LOGITS) -> list[int]:
    return [drawn.token for drawn in draw(logits, [Ask(0, sampling, "s", position) for position in range(count)])]


def expected(*, temperature: float = 1.0, keep: int | None = None) -> list[float]:
    scaled = [math.exp(value / temperature) for value in LOGITS[0].tolist()]
    scaled = [value if keep is None or index < keep else 0.0 for index, value in enumerate(scaled)]
    return [value / sum(scaled) for value in scaled]


@pytest.mark.parametrize(
    ("sampling", "probabilities"),
    [
        (Sampling(), expected()),
        (Sampling(temperature=2.0), expected(temperature=2.0)),
        (Sampling(temperature=0.5), expected(temperature=0.5)),
        (Sampling(top_k=2), expected(keep=2)),
        # cumulative probabilities 0.56, 0.77, 0.89: the third token is the one that reaches 0.8
        (Sampling(top_p=0.8), expected(keep=3)),
        (Sampling(top_k=4, top_p=0.9, temperature=2.0), expected(temperature=2.0, keep=4)),
    ],
)
def test_tokens_are_drawn_with_the_probabilities_asked_for(sampling: Sampling, probabilities: list[float]) -> None:
    counts = np.bincount(draws(sampling), minlength=6)
    kept = np.array(probabilities) > 0
    assert counts[~kept].sum() == 0
    assert chisquare(counts[kept], np.array(probabilities)[kept] * counts.sum()).pvalue > 1e-3


def test_log_probabilities_are_of_the_model_and_of_the_distribution_drawn_from() -> None:
    for drawn in draw(LOGITS, [Ask(0, Sampling(top_k=3, temperature=2.0), "s", place) for place in range(50)]):
        assert drawn.logprob == pytest.approx(math.log(PROBABILITIES[drawn.token]), abs=1e-5)
        cut = expected(temperature=2.0, keep=3)[drawn.token]
        assert drawn.sampled_logprob == pytest.approx(math.log(cut), abs=1e-5)


def test_uncut_draws_at_temperature_one_have_one_log_probability() -> None:
    for drawn in draw(LOGITS, [Ask(0, Sampling(), "s", place) for place in range(20)]):
        assert drawn.sampled_logprob == drawn.logprob


def test_temperature_zero_takes_the_most_probable_token_with_certainty() -> None:
    (drawn,) = draw(LOGITS, [Ask(0, Sampling(temperature=0), "s", 0)])
    assert (drawn.token, drawn.sampled_logprob) == (0, 0.0)
    assert drawn.logprob == pytest.approx(math.log(PROBABILITIES[0]), abs=1e-6)


def test_top_p_keeps_at_least_one_token() -> None:
    assert set(draws(Sampling(top_p=1e-6), 50)) == {0}


def test_top_p_over_a_flat_large_vocabulary_keeps_every_token_it_needs() -> None:
    flat = torch.zeros(1, 2000)
    found = draw(flat, [Ask(0, Sampling(top_p=0.5), "s", place) for place in range(20)])
    assert [drawn.sampled_logprob for drawn in found] == pytest.approx([math.log(1 / 1000)] * 20, abs=2e-3)


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    logits = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]])
    assert set(draws(Sampling(), 500, logits)) == {1, 3}


@pytest.mark.parametrize("vocabulary", [3, 256, 512, 1000])
def test_the_token_drawn_is_where_the_cumulative_distribution_passes_the_uniform_number(vocabulary: int) -> None:
    logits = 3 * torch.randn(2, vocabulary, generator=torch.Generator().manual_seed(4))
    cumulative = np.exp(logits.double().numpy()).cumsum(axis=1)
    asks = [Ask(place % 2, Sampling(seed=5), "s", place) for place in range(300)]
    for ask, drawn in zip(asks, draw(logits, asks), strict=True):
        row = cumulative[ask.row]
        assert drawn.token == np.searchsorted(row, uniform(5, "s", ask.position) * row[-1], side="right")


def test_a_draw_does_not_depend_on_what_else_is_drawn() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(5, 40, generator=generator)
    asks = [
        Ask(row, sampling, f"session {row}", 7)
        for row in range(5)
        for sampling in (Sampling(seed=1), Sampling(seed=2, top_k=9), Sampling(temperature=0.7, top_p=0.6))
    ]
    together = draw(logits, asks)
    for ask, drawn in zip(asks, together, strict=True):
        (alone,) = draw(logits[ask.row : ask.row + 1], [Ask(0, ask.sampling, ask.session, ask.position)])
        assert alone.token == drawn.token
        assert alone.sampled_logprob == pytest.approx(drawn.sampled_logprob, abs=1e-5)


def test_seed_session_and_position_each_change_the_draw_and_nothing_else_does() -> None:
    numbers = {uniform(seed, session, place) for seed in range(5) for session in ("a", "b") for place in range(5)}
    assert len(numbers) == 50
    assert all(0 <= number < 1 for number in numbers)
    assert uniform(3, "一", 4) == uniform(3, "一", 4)
