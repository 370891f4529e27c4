"""The policy that the KL holds on to."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from quintain.training.forward import TreeForward, tree_logprobs
from quintain.training.tree import PrefixTree


class Reference:
    """The model as training starts from it: its adapters off, or else a frozen copy.

    Args:
        forward: of the model with adapters, or of the copy.
    """

    def __init__(self, forward: TreeForward) -> None:
        self._forward = forward

    @torch.no_grad()
    def logprobs(self, tree: PrefixTree) -> Tensor:
        """Log-probabilities of the tree's predictions `[M]`."""
        with self._without_adapters(), tree_logprobs(self._forward, tree) as found:
            return found.values

    def _without_adapters(self) -> AbstractContextManager[Any]:
        model = self._forward.model
        return model.disable_adapter() if hasattr(model, "disable_adapter") else nullcontext()
