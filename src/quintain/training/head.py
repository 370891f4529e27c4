"""Log-probabilities at the positions that need them, in chunks: no `[N, V]` logits ever exist at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from quintain.training.tree import Predictions

CHUNK_ELEMENTS = {"cpu": 2**24, "cuda": 2**27}
"""Logits per chunk: 64 MiB in float32, about 340 positions of a 49k vocabulary. A GPU reads the whole head for each
chunk, and needs several hundred positions to be busy meanwhile."""


@dataclass(frozen=True, slots=True)
class Logprobs:
    """What the model says about the predictions.

    Attributes:
        values: log-probability of each target `[M]`, with gradient.
        entropies: entropy of the distribution each target was predicted from `[M]`, without gradient.
        reference: log-probability of each target under the reference policy `[M]`, for objectives with a KL.
    """

    values: Tensor
    entropies: Tensor
    reference: Tensor | None = None


def predict(model: Any, hidden: Tensor, predictions: Predictions) -> Logprobs:
    """Applies the model's head where a prediction is asked for.

    Args:
        model: a transformers causal LM (its head and its logit scaling are used).
        hidden: last hidden states `[N, H]`.
        predictions: sorted by source, so that a source's logits are computed once.
    """
    sources, rows = torch.unique_consecutive(predictions.sources, return_inverse=True)
    head = model.get_output_embeddings()
    finish = logit_transform(model.config.get_text_config())
    values, entropies = _ChunkedLogprobs.apply(
        hidden.index_select(0, sources), head.weight, head.bias, rows, predictions.targets, finish
    )  # type: ignore[no-untyped-call]
    return Logprobs(values, entropies)


def logit_transform(config: Any) -> Callable[[Tensor], Tensor] | None:
    """What some models do to logits after the head: soft caps (Gemma 2), a factor (Cohere) or a divisor (Granite)."""
    cap = getattr(config, "final_logit_softcapping", None)
    factor = getattr(config, "logit_scale", None) or 1.0
    factor = factor / (getattr(config, "logits_scaling", None) or 1.0)
    if cap:
        return lambda logits: torch.tanh(logits / cap) * cap
    if factor != 1.0:
        return lambda logits: logits * factor
    return None


class _ChunkedLogprobs(torch.autograd.Function):
    """Forward keeps only the log-normalisers; backward computes each chunk's logits again."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        rows: Tensor,
        targets: Tensor,
        finish: Callable[[Tensor], Tensor] | None,
    ) -> tuple[Tensor, Tensor]:
        chunks = _chunks(rows, hidden.shape[0], CHUNK_ELEMENTS[hidden.device.type] // weight.shape[0])
        values = torch.empty(rows.shape[0], dtype=torch.float32, device=hidden.device)
        entropies = torch.empty_like(values)
        normalisers = torch.empty(hidden.shape[0], dtype=torch.float32, device=hidden.device)
        for first, last, start, stop in chunks:
            logits = _logits(hidden[first:last], weight, bias, finish)
            local = rows[start:stop] - first
            chosen = logits[local, targets[start:stop]]
            normaliser = torch.logsumexp(logits, dim=-1)
            expected = _expected_logit(logits, normaliser)
            normalisers[first:last] = normaliser
            values[start:stop] = chosen - normaliser[local]
            entropies[start:stop] = (normaliser - expected)[local]
        ctx.save_for_backward(hidden, weight, bias, rows, targets, normalisers)
        ctx.finish, ctx.chunks = finish, chunks
        ctx.mark_non_differentiable(entropies)
        return values, entropies

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, rows, targets, normalisers = ctx.saved_tensors
        needs_hidden, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        hidden_grad = torch.zeros_like(hidden) if needs_hidden else None
        weight_grad = torch.zeros_like(weight, dtype=torch.float32) if needs_weight else None
        bias_grad = torch.zeros_like(bias) if needs_bias else None
        for first, last, start, stop in ctx.chunks:
            slope, upstream = _slope(ctx.finish, hidden[first:last], weight, bias)
            local, grad = rows[start:stop] - first, grads[0][start:stop]
            per_row = torch.zeros(last - first, device=hidden.device).index_add_(0, local, grad)
            step = upstream.sub_(normalisers[first:last, None]).exp_().mul_(-per_row[:, None])
            step.index_put_((local, targets[start:stop]), grad, accumulate=True)
            step = (step if slope is None else step * slope).to(hidden.dtype)
            if hidden_grad is not None:
                torch.mm(step, weight, out=hidden_grad[first:last])
            if weight_grad is not None:
                _add_product(weight_grad, step.t(), hidden[first:last])
            if bias_grad is not None:
                bias_grad += step.sum(0)
        whole = None if weight_grad is None else weight_grad.to(weight.dtype)
        return hidden_grad, whole, bias_grad, None, None, None


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Adds `left @ right` to a sum in float32; a sum over chunks in bfloat16 would lose the small ones."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None, finish: Callable[[Tensor], Tensor] | None) -> Tensor:
    logits = F.linear(hidden, weight, bias).float()
    return logits if finish is None else finish(logits)


def _expected_logit(logits: Tensor, normaliser: Tensor) -> Tensor:
    """Mean logit under the softmax `[S]`, so that entropy = normaliser - mean."""
    return torch.einsum("sv,sv->s", (logits - normaliser[:, None]).exp_(), logits)


def _slope(
    finish: Callable[[Tensor], Tensor] | None, hidden: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor | None, Tensor]:
    """Derivative of the logit transform (None for none) and the finished logits, both `[S, V]`."""
    raw = F.linear(hidden, weight, bias).float()
    if finish is None:
        return None, raw
    with torch.enable_grad():
        raw.requires_grad_()
        finished = finish(raw)
        (slope,) = torch.autograd.grad(finished.sum(), raw)
    return slope, finished.detach()


def _chunks(rows: Tensor, total: int, size: int) -> list[tuple[int, int, int, int]]:
    """Row and prediction ranges `(first row, last row, first prediction, last prediction)` of so many rows."""
    edges = [*range(0, total, max(1, size)), total]
    cuts = torch.searchsorted(rows, torch.tensor(edges, device=rows.device)).tolist()
    return [(edges[i], edges[i + 1], cuts[i], cuts[i + 1]) for i in range(len(edges) - 1)]
