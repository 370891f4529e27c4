"""Tree attention for unmodified transformers models.

A tree is one packed sequence; each token attends to its ancestors and itself only. The attention function
is registered with transformers under a name of its own and used inside `tree_attention(...)` alone, so the
same model object keeps generating as before outside.

On CPU the queries are cut into blocks of consecutive tokens. Depth-first order makes every key a block
can need either an ancestor of its first token or a token of the block itself, so each block is a small
dense attention and the `[N, N]` mask never exists. On a GPU FlexAttention skips empty blocks itself.
Masks are built from positions, never from packed indices, so sliding windows stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from transformers import AttentionInterface

from quintain.training.blocks import Block, block_attention, mask_of, spans_of
from quintain.training.tree import PrefixTree

NAME = "quintain_tree"
BLOCK = 96
"""Queries of a block: larger ones waste more on masked pairs, smaller ones cost more calls and copies."""

_LAYER_TYPES = {"full_attention", "sliding_attention"}


@dataclass(slots=True)
class Layout:
    """Masks of one tree on one device, built once per kind of layer and used by every layer of that kind."""

    positions: Tensor
    ends: Tensor
    device: torch.device
    _blocks: dict[int | None, list[Block]] = field(default_factory=dict)
    _flex: dict[int | None, BlockMask] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: PrefixTree, device: torch.device) -> Layout:
        """The layout of a tree."""
        return cls(tree.positions, tree.ends, device)

    def blocks(self, window: int | None) -> list[Block]:
        """Dense blocks for a sliding window in tokens (None: full attention)."""
        if window not in self._blocks:
            self._blocks[window] = _cut(self, window)
        return self._blocks[window]

    def flex(self, window: int | None) -> BlockMask:
        """FlexAttention's block mask for a sliding window in tokens (None: full attention)."""
        if window not in self._flex:
            visible = _visibility(self.ends.to(self.device), self.positions.to(self.device), window)
            size = len(self.ends)
            self._flex[window] = create_block_mask(
                lambda batch, head, query, key: visible(query, key), None, None, size, size, device=str(self.device)
            )
        return self._flex[window]


_current: ContextVar[Layout | None] = ContextVar("quintain_tree_layout", default=None)


def supports_trees(model: Any) -> bool:
    """Whether attention is the only way tokens of this model reach each other, in a form handled here.

    Recurrent, convolutional and chunked layers need the real sequence, and so do soft-capped scores.
    """
    config = model.config.get_text_config()
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    recurrent = bool(getattr(model, "_is_stateful", False)) or not getattr(model, "_supports_attention_backend", False)
    return layers <= _LAYER_TYPES and not recurrent and not getattr(config, "attn_logit_softcapping", None)


@contextmanager
def tree_attention(model: Any, layout: Layout) -> Iterator[None]:
    """Inside, the model's attention is that of `layout`; keep the backward pass inside too (checkpointing)."""
    config = model.config.get_text_config()
    before = config._attn_implementation
    token = _current.set(layout)
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before
        _current.reset(token)


def _visibility(ends: Tensor, positions: Tensor, window: int | None) -> Callable[[Tensor, Tensor], Tensor]:
    """Whether a query index may attend to a key index: the key is an ancestor or itself, and near enough."""

    def visible(query: Tensor, key: Tensor) -> Tensor:
        ancestor = (key <= query) & (query < ends[key])
        return ancestor if window is None else ancestor & (positions[query] - positions[key] < window)

    return visible


def _cut(layout: Layout, window: int | None) -> list[Block]:
    visible = _visibility(layout.ends, layout.positions, window)
    blocks = []
    for start in range(0, len(layout.ends), BLOCK):
        stop = min(len(layout.ends), start + BLOCK)
        queries = torch.arange(start, stop)
        candidates = torch.cat([_ancestors(layout, start), queries])
        seen = visible(queries[:, None], candidates[None, :])
        used = seen.any(0)
        blocks.append(Block(start, stop, spans_of(candidates[used]), mask_of(seen[:, used]).to(layout.device)))
    return blocks


def _ancestors(layout: Layout, index: int) -> Tensor:
    """Strict ancestors in order: the tokens before `index` whose descendants reach it `[depth]`."""
    return torch.nonzero(layout.ends[:index] > index).flatten()


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """transformers' attention function: `[1, heads, N, D]` queries to `[1, N, heads, D]` outputs."""
    layout = _current.get()
    if layout is None or query.shape[2] != len(layout.ends):
        raise RuntimeError(f"tree attention called for {query.shape[2]} tokens outside of its `tree_attention` block")
    if query.device.type == "cuda":
        return _flex_attention(query, key, value, layout.flex(sliding_window), scaling, _compiled_flex()), None
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    found = block_attention(query[0], key[0], value[0], layout.blocks(sliding_window), scale)
    return found.transpose(0, 1)[None], None


def _flex_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: BlockMask, scaling: float | None, kernel: Callable[..., Tensor]
) -> Tensor:
    """`[1, N, heads, D]` by FlexAttention, which skips the blocks in which nothing is visible."""
    output = kernel(query, key, value, block_mask=mask, scale=scaling, enable_gqa=True)
    return output.transpose(1, 2).contiguous()


_flex_kernel: Callable[..., Tensor] | None = None


def _compiled_flex() -> Callable[..., Tensor]:
    global _flex_kernel
    if _flex_kernel is None:
        _flex_kernel = torch.compile(flex_attention, dynamic=True)
    return _flex_kernel


AttentionInterface.register(NAME, _attend)
