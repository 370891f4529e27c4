"""Are tensors those of a model? Told by their names and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from quintain.interface.errors import InputError


class Shaped(Protocol):
    """A tensor, or what is known of one that is on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        ...


def need_same_model(what: str, found: Mapping[str, Shaped], wanted: Mapping[str, Shaped], remedy: str) -> None:
    """Refuses tensors of another model.

    Args:
        what: was found.
        found: its tensors.
        wanted: those of the model here.
        remedy: what to do.

    Raises:
        InputError: names the first tensor that is unknown, of another shape, or missing.
    """
    for name in sorted({*found, *wanted}):
        there, here = (_shape(tensors.get(name)) for tensors in (found, wanted))
        if there != here:
            differ = f"{name} is {there} there and {here} here"
            raise InputError(f"{what} is a checkpoint of another model: {differ}; {remedy}")


def _shape(tensor: Shaped | None) -> str:
    return "missing" if tensor is None else str(list(tensor.shape))
