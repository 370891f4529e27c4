"""Clipping and decay, against values computed by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from quintain.training.optim import adamw, clip_gradients


def with_gradients(*values: list[float]) -> list[nn.Parameter]:
    parameters = [nn.Parameter(torch.zeros(len(one))) for one in values]
    for parameter, value in zip(parameters, values, strict=True):
        parameter.grad = torch.tensor(value)
    return parameters


def test_gradients_longer_than_the_limit_keep_their_direction_and_get_its_length():
    first, second = with_gradients([3.0, 0.0], [4.0])  # together of length 5
    assert float(clip_gradients([first, second, nn.Parameter(torch.zeros(1))], 1.0)) == pytest.approx(5.0)
    torch.testing.assert_close(first.grad, torch.tensor([0.6, 0.0]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(second.grad, torch.tensor([0.8]), atol=1e-5, rtol=1e-5)


def test_gradients_within_the_limit_stay_as_they_are():
    (only,) = with_gradients([0.3, 0.4])
    assert float(clip_gradients([only], 1.0)) == pytest.approx(0.5)
    torch.testing.assert_close(only.grad, torch.tensor([0.3, 0.4]))


def test_vectors_are_never_decayed_and_matrices_by_the_stated_share():
    matrix, vector = nn.Parameter(torch.ones(1, 1)), nn.Parameter(torch.ones(1))
    matrix.grad, vector.grad = torch.zeros(1, 1), torch.zeros(1)
    adamw([matrix, vector], learning_rate=0.1, decay=0.5).step()
    assert float(matrix.detach()) == pytest.approx(0.95)
    assert float(vector.detach()) == 1.0
