"""Attention over the KV pool for a flat batch that mixes decoding rows and prefill chunks.

Decoding is bound by reading keys and values. Rows that share a prefix hold equal copies of it, so it is read from
one of them for all (a *trunk*), and only what follows is read row by row: the two levels of "Hydragen" (Juravsky et al.
2024, arXiv 2402.05099), with one softmax over both.
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


@dataclass(frozen=True, slots=True)
class Trunks:
    """Shared prefixes side by side, so that one product reads them all.

    Attributes:
        rows: decoding rows of each trunk `[K, m]`; one with fewer repeats its first.
        slots: the slot each is read from `[K]`.
        width: length of the longest.
    """

    rows: Tensor
    slots: Tensor
    width: int


@dataclass(slots=True)
class Plan:
    """One forward pass over a flat batch of T tokens: single decoding tokens by slot, then the chunks.

    Attributes:
        pool: the cache.
        works: what is computed, in flat order.
        singles: how many of `works` are decoding rows.
        slots: slot of each decoding row `[singles]`.
        places: position of each decoding row's token `[singles]`.
        begins: length of each decoding row's trunk, 0 without one `[singles]`.
        trunks: their prefixes; scores over them take the first columns, those of runs follow.
        runs: decoding rows by neighbouring slots.
    """

    pool: KVPool
    works: Sequence[Work]
    singles: int
    slots: Tensor
    places: Tensor
    begins: Tensor
    trunks: Trunks | None = None
    runs: list[Run] = field(default_factory=list)
    _masks: dict[tuple[int, int | None], Tensor] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Columns that scores of trunks take."""
        return 0 if self.trunks is None else self.trunks.width

    @classmethod
    def of(cls, pool: KVPool, works: Sequence[Work], device: torch.device) -> tuple[Plan, list[int]]:
        """The plan, and for each of its works the index in `works` it came from."""
        single = sorted((i for i, work in enumerate(works) if work.count == 1), key=lambda i: works[i].slot)
        order = single + [i for i, work in enumerate(works) if work.count > 1]
        alone = [works[i] for i in single]
        slots = torch.tensor([work.slot for work in alone], dtype=torch.long, device=device)
        places = torch.tensor([work.start for work in alone], dtype=torch.long, device=device)
        begins = [0] * len(alone)
        trunks = find_trunks([work.sequence for work in alone])
        lengths = [min(trunk.length, *(alone[index].start for index in trunk.members)) for trunk in trunks]
        for trunk, length in zip(trunks, lengths, strict=True):
            for index in trunk.members:
                begins[index] = length
        plan = cls(pool, [works[i] for i in order], len(single), slots, places, torch.tensor(begins, device=device))
        if trunks:
            most = max(len(trunk.members) for trunk in trunks)
            rows = [[*trunk.members, *[trunk.members[0]] * (most - len(trunk.members))] for trunk in trunks]
            read = [alone[trunk.members[0]].slot for trunk in trunks]
            plan.trunks = Trunks(torch.tensor(rows, device=device), torch.tensor(read, device=device), max(lengths))
        plan.runs = _runs(alone, begins)
        return plan, order

    def decode_mask(self, window: int | None, like: Tensor) -> Tensor:
        """Additive mask `[singles, 1, 1, width + S]`: trunk positions, then each run's own.

        A row sees its trunk up to its length and, behind it, its own tokens; the last `window` of all of these.
        """
        key = (-1, window)
        if key in self._masks:
            return self._masks[key]
        device = like.device
        lengths, begins = (self.places + 1)[:, None], self.begins[:, None]
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


def _runs(alone: Sequence[Work], begins: Sequence[int]) -> list[Run]:
    """Joins decoding rows, sorted by slot, whose slots are neighbours and whose trunks are about equally long."""
    runs: list[Run] = []
    for index, (work, begin) in enumerate(zip(alone, begins, strict=True)):
        run = Run(index, index + 1, work.slot, begin, work.stop)
        last = runs[-1] if runs else None
        if last is not None and work.slot == last.slot + index - last.first and abs(begin - last.begin) <= _APART:
            runs.pop()
            run = Run(last.first, index + 1, last.slot, min(begin, last.begin), max(work.stop, last.end))
        runs.append(run)
    return runs


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
    """Attention as transformers calls it.

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
    query, key, value = query[0].transpose(0, 1), key[0].transpose(0, 1), value[0].transpose(0, 1)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return attend(plan, module.layer_idx, query, key, value, scale, sliding_window, softcap)[None], None


def attend(
    plan: Plan,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float,
    window: int | None = None,
    softcap: float | None = None,
) -> Tensor:
    """Writes keys and values into the pool and attends over it.

    Args:
        plan: the flat batch of T tokens.
        layer: whose cache.
        query: `[T, H, D]`, rotated.
        key: `[T, G, D]`, rotated.
        value: `[T, G, D]`.
        scaling: of the scores.
        window: a token sees this many tokens, itself included.
        softcap: scores are squashed to +- this.

    Returns:
        `[T, H, D]`.
    """
    keys, values = plan.pool.layer(layer, key, value)
    query = query * scaling
    singles = plan.singles
    out = []
    if singles:
        keys[plan.slots, :, plan.places] = key[:singles]
        values[plan.slots, :, plan.places] = value[:singles]
        mask = plan.decode_mask(window, query)
        out.append(_decode(plan, query[:singles], keys, values, mask, softcap))
    first = singles
    for index, work in enumerate(plan.works[singles:], start=singles):
        last = first + work.count
        keys[work.slot, :, work.start : work.stop] = key[first:last].transpose(0, 1)
        values[work.slot, :, work.start : work.stop] = value[first:last].transpose(0, 1)
        mask = plan.chunk_mask(index, window, query)
        cached = keys[work.slot, :, : work.stop], values[work.slot, :, : work.stop]
        out.append(_prefill(query[first:last], *cached, mask, softcap))
        first = last
    return torch.cat(out)


def _decode(plan: Plan, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, softcap: float | None) -> Tensor:
    """One token of each row: `query` `[M, H, D]`, `keys` and `values` `[S, G, C, D]` to `[M, H, D]`."""
    asked = query.view(len(query), keys.shape[1], -1, query.shape[-1])  # [M, G, H/G, D]
    scores = query.new_zeros(*asked.shape[:3], mask.shape[-1])
    width, trunks = plan.width, plan.trunks
    if trunks is not None:
        scores[trunks.rows, :, :, :width] = _on_trunks(asked[trunks.rows], keys[trunks.slots, :, :width].mT)
    for run in plan.runs:
        # oneDNN takes dense operands or their transposes only, so the copy is made in the layout that is cheap to copy.
        own = keys[run.slots, :, run.begin : run.end].contiguous().mT
        scores[run.first : run.last, :, :, width : width + run.end - run.begin] = asked[run.first : run.last] @ own
    weights = _weights(scores, mask, softcap)
    out = query.new_zeros(*asked.shape[:3], values.shape[-1])
    if trunks is not None:
        out[trunks.rows] = _on_trunks(weights[trunks.rows, :, :, :width], values[trunks.slots, :, :width])
    for run in plan.runs:
        own = weights[run.first : run.last, :, :, width : width + run.end - run.begin]
        out[run.first : run.last] += own @ values[run.slots, :, run.begin : run.end]
    return out.flatten(1, 2)


def _on_trunks(left: Tensor, right: Tensor) -> Tensor:
    """Products of all rows of a trunk with what it holds: `[K, m, G, Q, X]` by `[K, G, X, Y]` to `[K, m, G, Q, Y]`."""
    by_head = left.transpose(1, 2)
    found = torch.matmul(by_head.flatten(2, 3), right)
    return found.view(*by_head.shape[:4], -1).transpose(1, 2)


def _prefill(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, softcap: float | None) -> Tensor:
    """A chunk of one row: `query` `[k, H, D]`, `keys` and `values` `[G, L, D]` to `[k, H, D]`."""
    groups, count = len(keys), len(query)
    asked = query.transpose(0, 1).reshape(groups, -1, query.shape[-1])  # [G, H/G * k, D]
    scores = torch.matmul(asked, keys.contiguous().mT)
    weights = _weights(scores.view(groups, -1, count, keys.shape[1]), mask, softcap)
    return torch.matmul(weights.flatten(1, 2), values).view(-1, count, values.shape[-1]).transpose(0, 1)


def _weights(scores: Tensor, mask: Tensor, softcap: float | None) -> Tensor:
    """Softmax of the masked scores; `scores` is overwritten."""
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    return torch.softmax(scores.add_(mask), dim=-1)
