"""The cosine between the gradients of acting and answering, against plain gradients."""

from __future__ import annotations

import pytest
import torch
from training_models import example, tiny

from quintain.training.conflict import gradient_cosine


def plain_gradient(model, ids, places) -> torch.Tensor:
    """Of the mean loss of predicting the tokens at some places, by transformers alone."""
    model.zero_grad()
    logprobs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    (-sum(logprobs[place - 1, ids[place]] for place in places) / len(places)).backward()
    return torch.cat([one.grad.flatten() for one in model.parameters()])


def test_it_is_the_cosine_of_the_two_plain_gradients():
    ids = [5, 6, 7, 8, 9, 10, 11, 12]
    found = gradient_cosine(tiny(), [example(ids, [0, 0, 1, 1, 0, 0, 1, 1])], 100)
    act, answer = plain_gradient(tiny(), ids, [2, 3]), plain_gradient(tiny(), ids, [6, 7])
    assert found == pytest.approx(torch.nn.functional.cosine_similarity(act, answer, dim=0).item(), abs=1e-5)


def test_the_same_task_twice_points_the_same_way():
    ids = [5, 6, 7, 5, 6, 7]
    assert gradient_cosine(tiny(), [example(ids, [0, 0, 1, 0, 0, 1])], 100) > 0.3


def test_answers_alone_say_nothing():
    assert gradient_cosine(tiny(), [example([5, 6, 7, 8], [0, 0, 1, 1])], 100) is None


def test_the_weights_stay_as_they_are():
    model = tiny()
    gradient_cosine(model, [example([5, 6, 7, 8, 9], [0, 1, 0, 0, 1])], 100)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), tiny().parameters(), strict=True))
    assert all(one.grad is None for one in model.parameters())
