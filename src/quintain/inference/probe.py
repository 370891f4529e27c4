"""Does an engine elsewhere compute what the model here computes? A few generated tokens tell."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import torch

from quintain.interface.generation import Generation, Sampling
from quintain.openmp import end_team

TOLERANCE = {torch.float32: 1e-3}
"""Most nats that engine and model may differ by at any token of the probe."""
HALF_TOLERANCE = 0.25
"""The same in half precision, where rounding alone makes a tenth: it finds weights that are wrong, not slightly old."""

_PROMPT = 160
"""Tokens of the prompt: more than a block of a prefix cache, so that a stale cache is seen too."""
_GENERATED = 16


def tolerance(model: Any) -> float:
    """Most nats that an engine may differ from this model by at any token."""
    return TOLERANCE.get(model.dtype, HALF_TOLERANCE)


async def mismatch(generate: Callable[..., Awaitable[Generation]], model: Any, context: int) -> float:
    """Largest difference of log-probabilities, in nats, at tokens an engine draws after a prompt of random ids.

    Args:
        generate: the engine's.
        model: what it is held against.
        context: longest sequence the engine takes.
    """
    vocabulary = int(model.config.get_text_config().vocab_size)
    length = min(_PROMPT, context - _GENERATED)
    prompt = torch.randint(vocabulary, (length,), generator=torch.Generator().manual_seed(0)).tolist()
    sampling = Sampling(max_tokens=_GENERATED)
    made = await generate(prompt, session="probe", group="probe", sampling=sampling)
    expected = await asyncio.to_thread(logprobs, model, prompt, made.ids)
    return max(abs(one - other) for one, other in zip(made.logprobs, expected, strict=True))


@torch.no_grad()
def logprobs(model: Any, prompt: Sequence[int], ids: Sequence[int]) -> list[float]:
    """Log-probabilities of `ids` after `prompt` under a model here."""
    inputs = torch.tensor([[*prompt, *ids]], device=model.device)
    logits = model(inputs, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    found = torch.log_softmax(logits, dim=-1).gather(1, inputs[0, len(prompt) :, None])[:, 0]
    end_team()
    return [float(one) for one in found]
