"""Attention over the KV pool for a flat batch that mixes decoding rows and prefill chunks.

Decoding is bound by reading keys and values. Rows that share a prefix hold equal copies of it, so it is read from
one of them for all (a *trunk*), and only what follows is read row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from quintain.inference.kv import KVPool
from quintain.inference.prefix import find_trunks

NAME = "quintain_pool"
"""Name under which transformers knows this attention."""

_APART = 64
"""Neighbouring rows whose trunks' lengths differ by more are not read together."""


@dataclass(frozen=True, slots=True)
class Work:
    """Tokens of one row to compute: `sequence[start : start + count]` go to these positions of slot `slot`."""

    slot: int
    start: int
    count: int
    sequence: list[int]

    @property
    def stop(self) -> int:
        """Length of the row afterwards."""
        return self.start + self.count


@dataclass(frozen=True, slots=True)
class Run:
    """Decoding rows `first` to `last` of the flat batch lie in neighbouring slots from `slot` on.

    Positions `begin` to `end` of these slots hold what their trunks do not.
    """

    first: int
    last: int
    slot: int
    begin: int
    end: int

    @property
    def slots(self) -> slice:
        """Their slots."""
        return slice(self.slot, self.slot + self.last - self.first)


@dataclass(slots=True)
class Plan:
    """One forward pass over a flat batch of T tokens: single decoding tokens by slot, then the chunks.

    Attributes:
        pool: the cache.
        works: what is computed, in flat order.
        singles: how many of `works` are decoding rows.
        slots: slot of each decoding row `[singles]`.
        places: position of each decoding row's token `[singles]`.
        trunks: rows (flat indices), the slot to read, and the length of each shared prefix.
        width: columns that scores of trunks take; those of runs follow.
        runs: decoding rows by neighbouring slots.
    """

    pool: KVPool
    works: Sequence[Work]
    singles: int
    slots: Tensor
    places: Tensor
    trunks: list[tuple[Tensor | slice, int, int]] = field(default_factory=list)
    width: int = 0
    runs: list[Run] = field(default_factory=list)
    _masks: dict[tuple[int, int | None], Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, pool: KVPool, works: Sequence[Work], device: torch.device) -> tuple[Plan, list[int]]:
        """The plan, and for each of its works the index in `works` it came from."""
        single = sorted((i for i, work in enumerate(works) if work.count == 1), key=lambda i: works[i].slot)
        order = single + [i for i, work in enumerate(works) if work.count > 1]
        alone = [works[i] for i in single]
        slots = torch.tensor([work.slot for work in alone], dtype=torch.long, device=device)
        places = torch.tensor([work.start for work in alone], dtype=torch.long, device=device)
        plan = cls(pool, [works[i] for i in order], len(single), slots, places)
        plan._share(alone, device)
        return plan, order

    def _share(self, alone: Sequence[Work], device: torch.device) -> None:
        """Finds trunks and runs."""
        begins = [0] * len(alone)
        for trunk in find_trunks([work.sequence for work in alone]):
            length = min(trunk.length, *(alone[index].start for index in trunk.members))
            rows = _rows(sorted(trunk.members), device)
            self.trunks.append((rows, alone[trunk.members[0]].slot, length))
            self.width = max(self.width, length)
            for index in trunk.members:
                begins[index] = length
        for index, work in enumerate(alone):
            last = self.runs[-1] if self.runs else None
            begin, first = begins[index], index
            slot, end = work.slot, work.stop
            if last is not None and work.slot == last.slot + index - last.first and abs(begin - last.begin) <= _APART:
                begin, end, first, slot = min(begin, last.begin), max(end, last.end), last.first, last.slot
                self.runs.pop()
            self.runs.append(Run(first, index + 1, slot, begin, end))

    def decode_mask(self, window: int | None, like: Tensor) -> Tensor:
        """Additive mask `[singles, 1, 1, width + S]`: trunk positions, then each run's own.

        A row sees its trunk up to its length and, behind it, its own tokens; the last `window` of all of these.
        """
        key = (-1, window)
        if key in self._masks:
            return self._masks[key]
        device = like.device
        lengths = (self.places + 1)[:, None]
        begins = torch.zeros_like(lengths)
        for rows, _, length in self.trunks:
            begins[rows] = length
        span = max(run.end - run.begin for run in self.runs)
        offset = torch.cat([torch.full((run.last - run.first, 1), run.begin, device=device) for run in self.runs])
        trunk = torch.arange(self.width, device=device).expand(self.singles, -1)
        own = torch.arange(span, device=device) + offset
        place = torch.cat([trunk, own], dim=1)
        seen = torch.cat([trunk < begins, (own >= begins) & (own < lengths)], dim=1)
        if window is not None:
            seen &= place >= lengths - window
        self._masks[key] = _additive(seen, like)[:, None, None]
        return self._masks[key]

    def chunk_mask(self, index: int, window: int | None, like: Tensor) -> Tensor:
        """Additive mask `[k, L]` of a prefill chunk: causal, within `window`."""
        key = (index, window)
        if key not in self._masks:
            work = self.works[index]
            place = torch.arange(work.stop, device=like.device)
            query = torch.arange(work.start, work.stop, device=like.device)[:, None]
            seen = place <= query
            if window is not None:
                seen &= place > query - window
            self._masks[key] = _additive(seen, like)
        return self._masks[key]


def _rows(members: list[int], device: torch.device) -> Tensor | slice:
    """An index of these rows: a slice where they are neighbours, which costs a view instead of a copy."""
    if members[-1] - members[0] == len(members) - 1:
        return slice(members[0], members[-1] + 1)
    return torch.tensor(members, device=device)


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
    query = query[0] * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    out = query.new_empty(query.shape[1], query.shape[0], value.shape[-1])
    singles = plan.singles
    if singles:
        keys[plan.slots, :, :, plan.places] = key[0, :, :singles].transpose(0, 1)
        values[plan.slots, :, plan.places] = value[0, :, :singles].transpose(0, 1)
        mask = plan.decode_mask(sliding_window, query)
        out[:singles] = _decode(plan, query[:, :singles], keys, values, mask, softcap)
    first = singles
    for index, work in enumerate(plan.works[singles:], start=singles):
        last = first + work.count
        keys[work.slot, :, :, work.start : work.stop] = key[0, :, first:last].transpose(1, 2)
        values[work.slot, :, work.start : work.stop] = value[0, :, first:last]
        mask = plan.chunk_mask(index, sliding_window, query)
        cached = keys[work.slot, :, :, : work.stop], values[work.slot, :, : work.stop]
        out[first:last] = _prefill(query[:, first:last], *cached, mask, softcap)
        first = last
    return out[None], None


def _decode(plan: Plan, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, softcap: float | None) -> Tensor:
    """One token of each row: `query` `[H, M, D]`, `keys` `[S, G, D, C]`, `values` `[S, G, C, D]` to `[M, H, D]`."""
    groups, size, width = keys.shape[1], query.shape[-1], plan.width
    asked = query.transpose(0, 1).reshape(plan.singles, groups, -1, size)  # [M, G, H/G, D]
    by_group = asked.transpose(0, 1)  # [G, M, H/G, D]
    scores = query.new_zeros(*asked.shape[:3], mask.shape[-1])
    for rows, slot, length in plan.trunks:
        found = torch.matmul(by_group[:, rows].flatten(1, 2), keys[slot, :, :, :length])
        scores[rows, :, :, :length] = found.view(groups, -1, asked.shape[2], length).transpose(0, 1)
    for run in plan.runs:
        own = torch.matmul(asked[run.first : run.last], keys[run.slots, :, :, run.begin : run.end])
        scores[run.first : run.last, :, :, width : width + run.end - run.begin] = own
    weights = _weights(scores, mask, softcap)
    out = query.new_empty(*asked.shape[:3], values.shape[-1])
    for run in plan.runs:
        own = weights[run.first : run.last, :, :, width : width + run.end - run.begin]
        out[run.first : run.last] = torch.matmul(own, values[run.slots, :, run.begin : run.end])
    for rows, slot, length in plan.trunks:
        shared = weights[rows, :, :, :length].transpose(0, 1).flatten(1, 2)
        found = torch.matmul(shared, values[slot, :, :length])
        out[rows] += found.view(groups, -1, asked.shape[2], found.shape[-1]).transpose(0, 1)
    return out.flatten(1, 2)


def _prefill(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, softcap: float | None) -> Tensor:
    """A chunk of one row: `query` `[H, k, D]`, `keys` `[G, D, L]`, `values` `[G, L, D]` to `[k, H, D]`."""
    heads, count, size = query.shape
    scores = torch.matmul(query.reshape(len(keys), -1, size), keys)  # [G, H/G * k, L]
    weights = _weights(scores.view(len(keys), -1, count, scores.shape[-1]), mask, softcap)
    return torch.matmul(weights.flatten(1, 2), values).view(heads, count, -1).transpose(0, 1)


def _weights(scores: Tensor, mask: Tensor, softcap: float | None) -> Tensor:
    """Softmax of the masked scores; `scores` is overwritten."""
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    return torch.softmax(scores.add_(mask), dim=-1)
