"""Attention of a tree on a CPU: dense blocks of queries, their probabilities computed again in the backward pass.

Only inputs and output are saved for it, which grow with the tokens, not with their square, as in FlashAttention (Dao et
al. 2022, arXiv 2205.14135). The products go through `torch.bmm`, which uses the fastest library there is; PyTorch's own
fused attention for CPUs took twice as long for SmolLM2 on trees of 1100 tokens (Zen 5 with oneDNN).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive queries and the keys that at least one of them may see.

    Attributes:
        start: first query.
        stop: end of the queries.
        spans: `(first, end)` of the keys, in order.
        mask: added to the scores of the last keys, -inf where hidden `[queries, some keys]`; before them all see all.
    """

    start: int
    stop: int
    spans: tuple[tuple[int, int], ...]
    mask: Tensor

    def gather(self, tensor: Tensor) -> Tensor:
        """What belongs to the keys: `[G, N, D]` to `[G, keys, D]`."""
        return torch.cat([tensor[:, first:end] for first, end in self.spans], dim=1)

    def scatter_add(self, target: Tensor, part: Tensor) -> None:
        """Adds `[G, keys, D]` to the keys' places in `[G, N, D]`."""
        at = 0
        for first, end in self.spans:
            target[:, first:end] += part[:, at : at + end - first]
            at += end - first

    def weights(self, asked: Tensor, keys: Tensor) -> Tensor:
        """Softmax in single precision `[G, H/G * queries, keys]`."""
        scores = torch.bmm(asked, keys.mT).float()
        queries, masked = self.mask.shape
        scores.view(len(keys), -1, queries, keys.shape[1])[..., keys.shape[1] - masked :].add_(self.mask)
        return torch.softmax(scores, dim=-1)


def mask_of(seen: Tensor) -> Tensor:
    """The `mask` of a block from who sees whom `[queries, keys]`."""
    hidden = ~seen[:, int(seen.all(0).int().cumprod(0).sum()) :]
    return torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))


def spans_of(indices: Tensor) -> tuple[tuple[int, int], ...]:
    """Ascending indices as ranges."""
    breaks = torch.nonzero(indices.diff() != 1).flatten() + 1
    return tuple((int(part[0]), int(part[-1]) + 1) for part in torch.tensor_split(indices, breaks))


def block_attention(query: Tensor, key: Tensor, value: Tensor, blocks: Sequence[Block], scaling: float) -> Tensor:
    """Softmax attention.

    Args:
        query: `[H, N, D]`.
        key: `[G, N, D]`; each serves H / G neighbouring query heads.
        value: `[G, N, D]`.
        blocks: cover all queries, in order.
        scaling: of the scores.

    Returns:
        `[H, N, D]`.
    """
    out: Tensor = _BlockAttention.apply(query, key, value, blocks, scaling)  # type: ignore[no-untyped-call]
    return out


class _BlockAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, blocks: Sequence[Block], scaling: float) -> Tensor:
        out = torch.empty_like(query)
        for block in blocks:
            weights = block.weights(_by_group(query, block, key) * scaling, block.gather(key))
            found = torch.bmm(weights.to(value.dtype), block.gather(value))
            out[:, block.start : block.stop] = found.view(len(query), -1, found.shape[-1])
        ctx.save_for_backward(query, key, value, out)
        ctx.blocks, ctx.scaling = blocks, scaling
        return out

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        query, key, value, out = ctx.saved_tensors
        to_query, to_key, to_value = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value)
        for block in ctx.blocks:
            asked, keys = _by_group(query, block, key) * ctx.scaling, block.gather(key)
            weights = block.weights(asked, keys)
            above = _by_group(slope, block, key)
            block.scatter_add(to_value, torch.bmm(weights.to(value.dtype).mT, above))
            through = torch.bmm(above, block.gather(value).mT).float()
            mean = (above * _by_group(out, block, key)).sum(dim=-1, keepdim=True, dtype=torch.float32)
            to_scores = through.sub_(mean).mul_(weights).to(query.dtype)
            found = torch.bmm(to_scores, keys) * ctx.scaling
            to_query[:, block.start : block.stop] = found.view(len(query), -1, found.shape[-1])
            block.scatter_add(to_key, torch.bmm(to_scores.mT, asked))
        return to_query, to_key, to_value, None, None


def _by_group(tensor: Tensor, block: Block, key: Tensor) -> Tensor:
    """A block's queries, those of the heads that share a key one after another: `[H, N, D]` to `[G, H/G * n, D]`."""
    return tensor[:, block.start : block.stop].reshape(len(key), -1, tensor.shape[-1])
