"""Attention over the KV pool for a flat batch that mixes decoding rows and prefill chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from quintain.inference.kv import KVPool

NAME = "quintain_pool"
"""Name under which transformers knows this attention."""


@dataclass(frozen=True, slots=True)
class Work:
    """Tokens of one row to compute: `ids` go to positions `start`, `start + 1`, ... of slot `slot`."""

    slot: int
    start: int
    ids: Sequence[int]

    @property
    def stop(self) -> int:
        """Length of the row afterwards."""
        return self.start + len(self.ids)


@dataclass(slots=True)
class Run:
    """Decoding rows in neighbouring slots: `flat[first:last]` are slots `slot`, `slot + 1`, ..."""

    first: int
    last: int
    slot: int
    lengths: list[int]


@dataclass(slots=True)
class Plan:
    """One forward pass over a flat batch of T tokens: single decoding tokens by slot, then the chunks.

    Attributes:
        pool: the cache.
        works: what is computed, in flat order.
        singles: how many of `works` are decoding rows.
    """

    pool: KVPool
    works: Sequence[Work]
    singles: int
    runs: list[Run] = field(default_factory=list)
    slots: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    places: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    _masks: dict[tuple[str, int, int | None], Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, pool: KVPool, works: Sequence[Work], device: torch.device) -> tuple[Plan, list[int]]:
        """The plan, and for each of its works the index in `works` it came from."""
        single = sorted((i for i, work in enumerate(works) if len(work.ids) == 1), key=lambda i: works[i].slot)
        order = single + [i for i, work in enumerate(works) if len(work.ids) > 1]
        plan = cls(pool, [works[i] for i in order], len(single))
        alone = plan.works[: plan.singles]
        plan.slots = torch.tensor([work.slot for work in alone], dtype=torch.long, device=device)
        plan.places = torch.tensor([work.start for work in alone], dtype=torch.long, device=device)
        for index, work in enumerate(alone):
            last = plan.runs[-1] if plan.runs else None
            if last is not None and work.slot == last.slot + len(last.lengths):
                last.lengths.append(work.stop)
                last.last = index + 1
            else:
                plan.runs.append(Run(index, index + 1, work.slot, [work.stop]))
        return plan, order

    def run_mask(self, index: int, window: int | None, like: Tensor) -> Tensor:
        """Additive mask `[M, 1, 1, L]` of a run: a row sees its own tokens, the last `window` of them."""
        key = ("run", index, window)
        if key not in self._masks:
            lengths = torch.tensor(self.runs[index].lengths, device=like.device)[:, None]
            place = torch.arange(max(self.runs[index].lengths), device=like.device)
            seen = place < lengths
            if window is not None:
                seen &= place >= lengths - window
            self._masks[key] = _additive(seen, like)[:, None, None]
        return self._masks[key]

    def chunk_mask(self, index: int, window: int | None, like: Tensor) -> Tensor:
        """Additive mask `[k, L]` of a prefill chunk: causal, within `window`."""
        key = ("chunk", index, window)
        if key not in self._masks:
            work = self.works[index]
            place = torch.arange(work.stop, device=like.device)
            query = torch.arange(work.start, work.stop, device=like.device)[:, None]
            seen = place <= query
            if window is not None:
                seen &= place > query - window
            self._masks[key] = _additive(seen, like)
        return self._masks[key]


def _additive(seen: Tensor, like: Tensor) -> Tensor:
    return torch.zeros(seen.shape, dtype=like.dtype, device=like.device).masked_fill_(~seen, float("-inf"))


def pool_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    plan: Plan,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Writes keys and values into the pool and attends over it.

    Args:
        module: the attention layer; its `layer_idx` names the cache.
        query: `[1, H, T, D]`, rotated.
        key: `[1, G, T, D]`, rotated.
        value: `[1, G, T, D]`.
        attention_mask: unused, the plan knows better.
        plan: the flat batch.
        scaling: of the scores; `D ** -0.5` by default.
        sliding_window: a token sees this many tokens, itself included.
        softcap: scores are squashed to +- this (Gemma 2).

    Returns:
        `[1, T, H, D]`, and no weights.
    """
    keys, values = plan.pool.layer(module.layer_idx, key, value)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    query, groups = query[0] * scale, key.shape[1]
    out = query.new_empty(query.shape[1], query.shape[0], value.shape[-1])
    singles = plan.singles
    if singles:
        keys[plan.slots, :, :, plan.places] = key[0, :, :singles].transpose(0, 1)
        values[plan.slots, :, plan.places] = value[0, :, :singles].transpose(0, 1)
    for index, run in enumerate(plan.runs):
        mask = plan.run_mask(index, sliding_window, query)
        rows, length = slice(run.slot, run.slot + len(run.lengths)), mask.shape[-1]
        count, size = run.last - run.first, query.shape[-1]
        asked = query[:, run.first : run.last].transpose(0, 1).reshape(count, groups, -1, size)  # [M, G, H/G, D]
        weights = _weights(torch.matmul(asked, keys[rows, :, :, :length]), mask, softcap)
        out[run.first : run.last] = torch.matmul(weights, values[rows, :, :length]).flatten(1, 2)
    first = singles
    for index, work in enumerate(plan.works[singles:], start=singles):
        last = first + len(work.ids)
        keys[work.slot, :, :, work.start : work.stop] = key[0, :, first:last].transpose(1, 2)
        values[work.slot, :, work.start : work.stop] = value[0, :, first:last]
        mask = plan.chunk_mask(index, sliding_window, query)
        asked = query[:, first:last].reshape(groups, -1, query.shape[-1])  # [G, H/G * k, D]
        scores = torch.matmul(asked, keys[work.slot, :, :, : work.stop])
        weights = _weights(scores.view(groups, -1, len(work.ids), work.stop), mask, softcap).flatten(1, 2)
        seen = torch.matmul(weights, values[work.slot, :, : work.stop])
        out[first:last] = seen.view(-1, len(work.ids), out.shape[-1]).transpose(0, 1)
        first = last
    return out[None], None


def _weights(scores: Tensor, mask: Tensor, softcap: float | None) -> Tensor:
    """Softmax of the masked scores; `scores` is overwritten."""
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    return torch.softmax(scores.add_(mask), dim=-1)
