"""Tree attention for unmodified transformers models.

A tree is one packed sequence; each token attends to its ancestors and itself only. The attention function
is registered with transformers under a name of its own and used inside `tree_attention(...)` alone, so the
same model object keeps generating as before outside. Which tree it is comes as an argument through the model's layers,
not from the surroundings: on a GPU the backward pass, and what it computes again, runs in another thread.

On CPU the queries are cut into blocks of consecutive tokens. Depth-first order makes every key a block
can need either an ancestor of its first token or a token of the block itself, so each block is a small
dense attention and the `[N, N]` mask never exists. On a GPU FlexAttention skips empty blocks itself.
Masks are built from positions, never from packed indices, so sliding windows stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface

from quintain.training.blocks import Block, block_attention, mask_of, spans_of
from quintain.training.tree import PrefixTree

NAME = "quintain_tree"
BLOCK = 96
"""Queries of a block: larger ones waste more on masked pairs, smaller ones cost more calls and copies."""
FLEX_BLOCK = 128
"""Queries and keys of FlexAttention's blocks."""

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
            self._flex[window] = _block_mask(self, window)
        return self._flex[window]


def supports_trees(model: Any) -> bool:
    """Whether attention is the only way tokens of this model reach each other, in a form handled here.

    Recurrent, convolutional and chunked layers need the real sequence, and so do soft-capped scores.
    """
    config = model.config.get_text_config()
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    recurrent = bool(getattr(model, "_is_stateful", False)) or not getattr(model, "_supports_attention_backend", False)
    return layers <= _LAYER_TYPES and not recurrent and not getattr(config, "attn_logit_softcapping", None)


@contextmanager
def tree_attention(model: Any) -> Iterator[None]:
    """Inside, the model attends by the `layout` it is called with; keep the backward pass inside (checkpointing)."""
    config = model.config.get_text_config()
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before


def _visibility(ends: Tensor, positions: Tensor, window: int | None) -> Callable[[Tensor, Tensor], Tensor]:
    """Whether a query index may attend to a key index: the key is an ancestor or itself, and near enough."""

    def visible(query: Tensor, key: Tensor) -> Tensor:
        ancestor = (key <= query) & (query < ends[key])
        return ancestor if window is None else ancestor & (positions[query] - positions[key] < window)

    return visible


def _block_mask(layout: Layout, window: int | None) -> BlockMask:
    """FlexAttention's mask, from the edges of its blocks: `create_block_mask` computes all N^2 pairs first.

    A block of keys is seen from its first token to the last descendant of any of its tokens: descendants follow their
    token directly, so these ranges have no gaps.
    """
    size = len(layout.ends)
    count = -(-size // FLEX_BLOCK)
    first = torch.arange(count) * FLEX_BLOCK
    low = _by_block(layout.positions, count, size).amin(1)
    high = _by_block(layout.positions, count, -1).amax(1)
    ends, shortest = _by_block(layout.ends, count, 0).amax(1), _by_block(layout.ends, count, size).amin(1)
    seen = (first[None, :] <= first[:, None]) & (first[:, None] < ends[None, :])
    whole = (first[None, :] < first[:, None]) & (first[:, None] + FLEX_BLOCK <= shortest[None, :])
    if window is not None:
        seen &= low[:, None] - high[None, :] < window
        whole[:] = False
    visible = _visibility(layout.ends.to(layout.device), layout.positions.to(layout.device), window)
    counts, blocks = _listed(seen & ~whole, layout.device)
    full_counts, full_blocks = _listed(whole, layout.device)
    return BlockMask.from_kv_blocks(
        counts,
        blocks,
        full_counts,
        full_blocks,
        BLOCK_SIZE=FLEX_BLOCK,
        mask_mod=lambda batch, head, query, key: visible(query, key),
        seq_lengths=(size, size),
    )


def _by_block(values: Tensor, count: int, rest: int) -> Tensor:
    """`[N]` to `[blocks, FLEX_BLOCK]`, the last one filled up."""
    return F.pad(values, (0, count * FLEX_BLOCK - len(values)), value=rest).view(count, FLEX_BLOCK)


def _listed(blocks: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """How many blocks of keys each block of queries has, and which, those first `[1, 1, blocks(, blocks)]`."""
    order = torch.argsort(blocks.int(), dim=1, descending=True, stable=True)
    return blocks.sum(1, dtype=torch.int32)[None, None].to(device), order.int()[None, None].to(device)


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
    *,
    layout: Layout,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """transformers' attention function: `[1, heads, N, D]` queries to `[1, N, heads, D]` outputs."""
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
