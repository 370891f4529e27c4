"""Log-probabilities as sampled, from those under the model; the in-process sampler is the reference."""

from __future__ import annotations

import math

import pytest
import torch

from quintain.inference.logprobs import ALL, as_sampled, wanted
from quintain.inference.sampler import Ask, draw
from quintain.interface.generation import Sampling


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0, 1.6])
@pytest.mark.parametrize("top_p", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("top_k", [0, 3, 40, 100])
def test_they_are_those_of_the_distribution_drawn_from(temperature, top_p, top_k):
    logits = 2 * torch.randn(1, 60, generator=torch.Generator().manual_seed(0))
    model = torch.log_softmax(logits, dim=-1)[0]
    for seed in range(10):
        sampling = Sampling(temperature=temperature, top_p=top_p, top_k=top_k, seed=seed)
        (drawn,) = draw(logits, [Ask(0, sampling, "s", 0)])
        count = wanted(sampling, 60)
        shown = model.topk(60 if count == ALL else count).indices.tolist()
        table = {token: float(model[token]) for token in (*shown, drawn.token)}
        assert as_sampled(drawn.token, table, sampling) == pytest.approx(drawn.sampled_logprob, abs=1e-5)


def test_a_small_case_by_hand():
    table = {0: math.log(0.5), 1: math.log(0.3), 2: math.log(0.2)}
    assert as_sampled(1, table, Sampling(top_k=2)) == pytest.approx(math.log(0.3 / 0.8))
    assert as_sampled(1, table, Sampling(top_p=0.6)) == pytest.approx(math.log(0.3 / 0.8))
    assert as_sampled(0, table, Sampling(top_p=0.5)) == pytest.approx(0.0)
    assert as_sampled(0, table, Sampling(temperature=0.5)) == pytest.approx(math.log(0.25 / 0.38))


@pytest.mark.parametrize(
    ("sampling", "count"),
    [
        (Sampling(), 0),
        (Sampling(temperature=0.0, top_p=0.5), 0),
        (Sampling(temperature=0.7, top_k=20), 20),
        (Sampling(temperature=0.7), ALL),
        (Sampling(top_p=0.9), ALL),
        (Sampling(top_k=2000), ALL),
    ],
)
def test_no_more_are_asked_for_than_are_needed(sampling, count):
    assert wanted(sampling, vocabulary=1000) == count
