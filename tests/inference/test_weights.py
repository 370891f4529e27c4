"""New weights are checked before any of them is taken."""

from __future__ import annotations

import pytest
import torch

from quintain.inference.weights import take
from quintain.interface.errors import InputError
from quintain.pipeline.fleets import put_weights, weights_of
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
        ({"hidden": 16}, r"lm_head.weight is \[\d+, 16\] there and \[\d+, 32\] here"),
        ({"layers": 3}, r"model.layers.2.input_layernorm.weight is \[32\] there and missing here"),
        ({"layers": 1}, r"model.layers.1.input_layernorm.weight is missing there and \[32\] here"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused_and_nothing_is_changed(model, other, message):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    refused = f"^the state dict is a checkpoint of another model: {message}; give those of this Llama"
    with pytest.raises(InputError, match=refused):
        take(model, tiny_model(seed=1, **other).state_dict())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_what_a_trainer_sends_to_a_worker_is_put_into_the_same_model_only(model):
    trained, other = tiny_model(seed=1), tiny_model(layers=3)
    put_weights(model, weights_of(trained))
    assert all(torch.equal(tensor, trained.state_dict()[name]) for name, tensor in model.state_dict().items())
    before = weights_of(other)
    with pytest.raises(
        InputError, match=r"^what the trainer sent is a checkpoint of another model: model.layers.2.\S+ is "
    ):
        put_weights(other, weights_of(trained))
    assert weights_of(other) == before
