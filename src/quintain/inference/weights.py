"""New weights for a model in this process, checked before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quintain.interface.tensors import need_same_model

Weights = Mapping[str, Any] | Callable[[], object] | None
"""A state dict, a function that changes the parameters in place, or None where they are changed already."""


def take(model: Any, weights: Weights) -> None:
    """Changes a model's weights.

    Args:
        model: the model.
        weights: what to change them by; of tied tensors one is enough.

    Raises:
        InputError: a state dict of another model; the weights are left as they were.
    """
    if isinstance(weights, Mapping):
        wanted = model.state_dict()
        tied = {wanted[name].data_ptr() for name in weights if name in wanted}
        own = {name: tensor for name, tensor in wanted.items() if name in weights or tensor.data_ptr() not in tied}
        need_same_model("the state dict", weights, own, f"give those of this {type(model).__name__}")
        model.load_state_dict(weights, strict=False)  # of tied tensors some may be left out
    elif weights is not None:
        weights()
