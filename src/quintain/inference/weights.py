"""New weights for a model in this process, checked before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quintain.interface.errors import InputError

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
        check(model, weights)
        model.load_state_dict(weights, strict=False)  # of tied tensors some may be left out
    elif weights is not None:
        weights()


def check(model: Any, weights: Mapping[str, Any]) -> None:
    """Refuses a state dict that is not of this model.

    Raises:
        InputError: names the first tensor that is unknown, of another shape, or missing.
    """
    wanted = model.state_dict()
    another = f"a checkpoint of another model? This one is a {type(model).__name__}"
    for name, tensor in weights.items():
        if name not in wanted:
            raise InputError(f"weights: the model has no tensor {name!r}: {another}")
        found, right = tuple(tensor.shape), tuple(wanted[name].shape)
        if found != right:
            raise InputError(f"weights: {name!r} is {found}, not {right}: {another}")
    given = {wanted[name].data_ptr() for name in weights}
    missing = [name for name, tensor in wanted.items() if tensor.data_ptr() not in given]
    if missing:
        raise InputError(f"weights: {len(missing)} of {len(wanted)} tensors missing, first {missing[0]!r}: {another}")
