"""The cosine between the gradients of acting and answering, against plain gradients."""

from __future__ import annotations

import json

import pytest
import torch
from training_models import example, tiny

from quintain.training.conflict import ConflictLog, gradient_cosine, read_conflict


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


def moments(folder, times, steps, first=0):
    folder.mkdir(exist_ok=True)
    log = ConflictLog(folder, tiny(), [example([5, 6, 7, 8, 9], [0, 1, 0, 0, 1])], times, 100)
    for step in range(first, steps + 1):
        log.measure(step, step / steps)
    return [one["step"] for one in read_conflict(folder)]


def test_moments_are_spread_over_the_run_with_both_ends(tmp_path):
    assert moments(tmp_path / "a", 4, 9) == [0, 3, 6, 9]
    assert moments(tmp_path / "b", 3, 5) == [0, 3, 5]
    assert moments(tmp_path / "c", 1, 5) == [0]
    assert moments(tmp_path / "d", 2, 1) == [0, 1]


def test_a_resumed_run_keeps_what_was_measured_and_measures_again_what_it_learns_again(tmp_path):
    moments(tmp_path, 4, 9)
    kept = read_conflict(tmp_path)
    (tmp_path / "conflict.json").write_text(json.dumps([*kept[:2], {"step": 6, "cosine": 9.0}]))
    assert moments(tmp_path, 4, 9, first=5) == [0, 3, 6, 9]
    assert read_conflict(tmp_path) == kept
