"""One forward pass over a prefix tree: hidden states in, log-probabilities of its predictions out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from quintain.training.attention import Layout, supports_trees, tree_attention
from quintain.training.head import Logprobs, predict
from quintain.training.tree import PrefixTree


def causal_lm(model: Any) -> Any:
    """The transformers model inside an adapter wrapper, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def prepare(model: Any) -> None:
    """Makes a model fit to be trained on trees, once.

    Dropout is 0: shared tokens are computed once, so they could not be dropped differently per example. The
    padding id's input embedding gets its gradient: trees hold no padding, and where a model pads with its end
    token (SmolLM2, many chat models) the token is real text that the model must learn to read.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, nn.Embedding):
            module.padding_idx = None
    model.train()


class TreeForward(nn.Module):
    """Hidden states and head in one forward pass: what FSDP gathers weights around.

    Args:
        model: a transformers causal LM, with or without adapters.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, tree: PrefixTree) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the tree's predictions and entropies where they were made `[M]`."""
        causal = causal_lm(self.model)
        hidden = _tree_hidden(causal, tree) if supports_trees(causal) else _separate_hidden(causal, tree)
        found = predict(causal, hidden, tree.predictions.to(hidden.device))
        return found.values, found.entropies


@contextmanager
def tree_logprobs(model: Any, tree: PrefixTree) -> Iterator[Logprobs]:
    """Log-probabilities of the tree's predictions `[M]`; run the backward pass inside the block.

    Args:
        model: a transformers causal LM, with or without adapters, or a `TreeForward` of one.
        tree: what to compute.
    """
    forward = model if isinstance(model, TreeForward) else TreeForward(model)
    causal = causal_lm(forward.model)
    with tree_attention(causal) if supports_trees(causal) else nullcontext():
        yield Logprobs(*forward(tree))


def _tree_hidden(causal: Any, tree: PrefixTree) -> Tensor:
    """Hidden states `[N, H]`, every token computed once."""
    hidden: Tensor = causal.get_decoder()(
        input_ids=tree.ids[None].to(causal.device),
        position_ids=tree.positions[None].to(causal.device),
        use_cache=False,
        layout=Layout.of(tree, causal.device),
    ).last_hidden_state
    return hidden[0]


def _separate_hidden(causal: Any, tree: PrefixTree) -> Tensor:
    """Hidden states `[N, H]` by running every root-to-leaf path as a sequence of its own, padded on the right.

    For models in which tokens meet outside of attention; a token shared by several paths is read from one.
    """
    paths = [tree.path(int(leaf)) for leaf in tree.leaves()]
    ids = nn.utils.rnn.pad_sequence([tree.ids[path] for path in paths], batch_first=True)
    mask = nn.utils.rnn.pad_sequence([torch.ones_like(path) for path in paths], batch_first=True)
    hidden: Tensor = causal.get_decoder()(
        input_ids=ids.to(causal.device), attention_mask=mask.to(causal.device), use_cache=False
    ).last_hidden_state
    where = torch.empty(len(tree), dtype=torch.long)
    for row, path in enumerate(paths):
        where[path] = row * ids.shape[1] + torch.arange(len(path))
    return hidden.flatten(0, 1).index_select(0, where.to(hidden.device))
