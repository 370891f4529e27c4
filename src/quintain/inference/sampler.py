"""Drawing the next token: temperature, top-k, top-p, and draws that depend on nothing but their own name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from quintain.interface.generation import Sampling

_HEAD = 256
"""Candidates looked at first for top-p: a whole sort of the vocabulary costs 30 times a top-k of this size."""

_BLOCK = 256
"""Probabilities summed in one go: a cumulative sum over the whole vocabulary costs 10 times the sums of its blocks."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One draw.

    Attributes:
        row: row of the logits.
        sampling: how to draw.
        session: whose draw it is.
        position: index of the drawn token in its sequence.
        allowed: the only tokens that may be drawn `[V]` bool; None: all.
    """

    row: int
    sampling: Sampling
    session: str
    position: int
    allowed: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """A drawn token, its log-probability under the model, and under the distribution it was drawn from."""

    token: int
    logprob: float
    sampled_logprob: float


def uniform(seed: int, session: str, position: int) -> float:
    """A number in [0, 1) fixed by its three arguments alone, so that a batch's make-up never changes a draw."""
    return _number(seed, session, position) / 2**64


def draw_seed(seed: int, session: str, position: int) -> int:
    """A seed below 2**63 fixed by its three arguments alone, for engines that draw a whole generation from one."""
    return _number(seed, session, position) >> 1


def _number(seed: int, session: str, position: int) -> int:
    name = f"{seed}\x1f{position}\x1f{session}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest())


def draw(logits: Tensor, asks: Sequence[Ask]) -> list[Draw]:
    """Draws one token for each ask.

    Args:
        logits: `[R, V]` float; a row may be asked for several times.
        asks: the draws.

    Returns:
        One draw per ask, in order.
    """
    logits = logits.float()
    confined = [index for index, ask in enumerate(asks) if ask.allowed is not None]
    if not confined:
        return _draw(logits, asks)
    draws = _draw(*_confine(logits, asks, confined))
    for index in confined:
        row = logits[asks[index].row]
        raw = row[draws[index].token] - row.logsumexp(dim=-1)
        draws[index] = replace(draws[index], logprob=float(raw))
    return draws


def _confine(logits: Tensor, asks: Sequence[Ask], confined: Sequence[int]) -> tuple[Tensor, list[Ask]]:
    """Gives the asks that may not draw every token rows of their own `[R + confined, V]`."""
    own, found = [], list(asks)
    for row, index in enumerate(confined, start=len(logits)):
        allowed = asks[index].allowed
        assert allowed is not None
        own.append(logits[asks[index].row].masked_fill(~allowed.to(logits.device), float("-inf")))
        found[index] = replace(asks[index], row=row)
    return torch.cat([logits, torch.stack(own)]), found


def _draw(logits: Tensor, asks: Sequence[Ask]) -> list[Draw]:
    groups: dict[tuple[float, float, int], list[int]] = {}
    for index, ask in enumerate(asks):
        groups.setdefault((ask.sampling.temperature, ask.sampling.top_p, ask.sampling.top_k), []).append(index)
    draws: list[Draw | None] = [None] * len(asks)
    for (temperature, top_p, top_k), members in groups.items():
        chosen = [asks[index] for index in members]
        for index, drawn in zip(members, _draw_alike(logits, chosen, temperature, top_p, top_k), strict=True):
            draws[index] = drawn
    return [drawn for drawn in draws if drawn is not None]


def _draw_alike(logits: Tensor, asks: Sequence[Ask], temperature: float, top_p: float, top_k: int) -> list[Draw]:
    """Draws that share their sampling parameters; `logits` is `[R, V]`."""
    rows, where = torch.unique(torch.tensor([ask.row for ask in asks]), return_inverse=True)
    where = where.to(logits.device)
    table = logits if len(rows) == len(logits) else logits[rows.to(logits.device)]
    if temperature == 0:
        best, token = table.max(dim=-1)
        raw = best - table.logsumexp(dim=-1)
        return [
            Draw(index, model, 0.0) for index, model in zip(token[where].tolist(), raw[where].tolist(), strict=True)
        ]
    scaled = table if temperature == 1 else table / temperature
    kept, ids = _cut(scaled, top_p, top_k)
    # Normalised at the chosen tokens alone: a pass over the vocabulary costs as much as a layer of a small model.
    peak = kept.amax(dim=-1, keepdim=True)
    weights = (kept - peak).exp_()
    mass = peak[:, 0] + weights.sum(dim=-1).log()
    numbers = [uniform(ask.sampling.seed, ask.session, ask.position) for ask in asks]
    place = _invert(weights, where, torch.tensor(numbers, dtype=torch.float64, device=kept.device))
    sampled = kept[where, place] - mass[where]
    token = place if ids is None else ids[where, place]
    raw = sampled if kept is table else table[where, token] - table.logsumexp(dim=-1)[where]
    found = zip(token.tolist(), raw.tolist(), sampled.tolist(), strict=True)
    return [Draw(index, model, drawn) for index, model, drawn in found]


def _invert(weights: Tensor, rows: Tensor, numbers: Tensor) -> Tensor:
    """Where the cumulative sum of a row passes a share of its total: first the block, then the place within it.

    Args:
        weights: `[R, K]`, not negative.
        rows: row of each draw `[A]`.
        numbers: shares in [0, 1) `[A]`, double.
    """
    size = min(_BLOCK, weights.shape[1])
    whole = weights.shape[1] // size * size
    sums = weights[:, :whole].view(len(weights), -1, size).sum(dim=-1)
    sums = torch.cat([sums, weights[:, whole:].sum(dim=-1, keepdim=True)], dim=1)
    ends = sums.double().cumsum(dim=-1)[rows]
    points = numbers * ends[:, -1]
    block = _passed(ends, points)
    before = (ends - sums[rows]).gather(1, block[:, None])[:, 0]
    columns = block[:, None] * size + torch.arange(size, device=block.device)
    inside = weights[rows[:, None], columns.clamp(max=weights.shape[1] - 1)]
    inside = inside.masked_fill_(columns >= weights.shape[1], 0.0)
    return block * size + _passed(inside.double().cumsum(dim=-1), points - before)


def _passed(ends: Tensor, points: Tensor) -> Tensor:
    """First index whose cumulative sum is above the point; never one of weight 0, whatever was rounded."""
    below_total = torch.nextafter(ends[:, -1], torch.zeros_like(points))
    points = torch.minimum(points.clamp(min=0), below_total)
    return torch.searchsorted(ends, points[:, None], right=True).clamp(max=ends.shape[1] - 1)[:, 0]


def _cut(scores: Tensor, top_p: float, top_k: int) -> tuple[Tensor, Tensor | None]:
    """Keeps the `top_k` most probable tokens, then the smallest set whose probability reaches `top_p`.

    Args:
        scores: `[R, V]`, log-probs up to a constant of each row.
        top_p: at least the most probable token is kept.
        top_k: 0 keeps all.

    Returns:
        Scores `[R, K]` (-inf where cut), and the token ids they belong to (None: all, in order).
    """
    vocabulary = scores.shape[-1]
    if top_p >= 1 and not 0 < top_k < vocabulary:
        return scores, None
    width = min(top_k or vocabulary, vocabulary)
    if top_p >= 1:
        return scores.topk(width, dim=-1)
    logprobs = torch.log_softmax(scores, dim=-1)
    kept, ids = logprobs.topk(_width(logprobs, top_p, width, top_k), dim=-1)
    if 0 < top_k < vocabulary:
        kept = torch.log_softmax(kept, dim=-1)
    before = kept.exp().cumsum(dim=-1) - kept.exp()
    return kept.masked_fill(before >= top_p, float("-inf")), ids


def _width(logprobs: Tensor, top_p: float, width: int, top_k: int) -> int:
    """How many of the most probable tokens must be looked at so that none that top-p keeps is missed."""
    if 0 < top_k <= _HEAD or width <= _HEAD:
        return width
    head = logprobs.topk(_HEAD, dim=-1).values.exp().sum(dim=-1)
    return _HEAD if top_k == 0 and bool((head >= top_p).all()) else width
