"""Whether learning to act and learning to answer pull a model the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from quintain.interface.example import Example
from quintain.training.attention import supports_trees
from quintain.training.forward import causal_lm, prepare, tree_logprobs
from quintain.training.objective import cross_entropy
from quintain.training.packing import pack


def gradient_cosine(model: Any, examples: Sequence[Example], budget: int) -> float | None:
    """Cosine between the gradients of two parts of the loss: turns that act, and the turn that answers.

    Negative: a step that helps one harms the other. The last turn with loss of an example is taken for its answer.

    Args:
        model: a transformers causal LM; its weights stay as they are.
        examples: whole episodes.
        budget: most tokens computed at once.

    Returns:
        None where no example both acts and answers.
    """
    parts = [_parts(example) for example in examples]
    acting = [act for act, _ in parts if act.loss_tokens]
    answering = [answer for act, answer in parts if act.loss_tokens]
    if not acting:
        return None
    prepare(model)
    one, two = _gradient(model, acting, budget), _gradient(model, answering, budget)
    return float(one @ two / (one.norm() * two.norm()))


def _parts(example: Example) -> tuple[Example, Example]:
    """The example with loss on all turns but the last one, and on that one alone."""
    ends = [place for place, weight in enumerate(example.weights) if weight]
    start = ends[-1] + 1
    while example.weights[start - 1]:
        start -= 1
    act = (*example.weights[:start], *[0.0] * (len(example.ids) - start))
    answer = (*[0.0] * start, *example.weights[start:])
    return replace(example, weights=act), replace(example, weights=answer)


def _gradient(model: Any, examples: Sequence[Example], budget: int) -> Tensor:
    """Gradient of the mean loss over all trainable weights `[P]`."""
    model.zero_grad()
    trees = pack(examples, budget, share=supports_trees(causal_lm(model)))
    total = sum(tree.loss_weight for tree in trees)
    for tree in trees:
        with tree_logprobs(model, tree) as logprobs:
            cross_entropy(logprobs, tree.predictions.to(logprobs.values.device), total).value.backward()  # type: ignore[no-untyped-call]
    found = torch.cat([one.grad.flatten().float() for one in model.parameters() if one.grad is not None])
    model.zero_grad()
    return found
