"""New weights are checked before any of them is taken."""

from __future__ import annotations

import pytest
import torch

from quintain.inference.weights import take
from quintain.interface.errors import InputError
from tiny import tiny_model


def doubled(model) -> dict[str, torch.Tensor]:
    return {name: 2 * tensor for name, tensor in model.state_dict().items()}


def test_a_state_dict_is_loaded_and_a_function_is_called(model):
    weights = doubled(model)
    take(model, weights)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    called = []
    take(model, lambda: called.append(True))
    take(model, None)
    assert called == [True]


def test_of_tied_tensors_one_is_enough(model):
    weights = doubled(model)
    del weights["lm_head.weight"]
    take(model, weights)
    assert torch.equal(model.lm_head.weight, weights["model.embed_tokens.weight"])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"hidden": 16}, r"'model.embed_tokens.weight' is \(\d+, 16\), not \(\d+, 32\)"),
        ({"layers": 3}, r"the model has no tensor 'model.layers.2.self_attn.q_proj.weight'"),
        ({"layers": 1}, r"weights: 9 of \d+ tensors missing, first 'model.layers.1.self_attn.q_proj.weight'"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused_and_nothing_is_changed(model, other, message):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(InputError, match=f"{message}: a checkpoint of another model"):
        take(model, tiny_model(seed=1, **other).state_dict())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
