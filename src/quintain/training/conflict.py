"""Whether learning to act and learning to answer pull a model the same way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from quintain.interface.example import Example
from quintain.interface.files import replacing
from quintain.training.attention import supports_trees
from quintain.training.forward import causal_lm, prepare, tree_logprobs
from quintain.training.objective import cross_entropy
from quintain.training.packing import pack

CONFLICT = "conflict.json"
"""In the folder of a fine-tuning: step and cosine of every measurement."""

EXAMPLES = 16
"""Examples it is measured on: two passes over them cost as much as eight steps of four examples."""


class ConflictLog:
    """The cosine at evenly spread moments of a run, the first before any step and the last after all of them.

    Args:
        folder: of the run; measurements of an interrupted one are kept.
        model: the model in training.
        examples: what it learns from; the first ones are measured on.
        times: number of moments.
        budget: most tokens computed at once, if every example fits.
    """

    def __init__(self, folder: Path, model: Any, examples: Sequence[Example], times: int, budget: int) -> None:
        self._path = folder / CONFLICT
        self._model = model
        self._examples = examples[:EXAMPLES]
        self._times = times
        self._budget = max(budget, *(len(example.ids) for example in self._examples))
        self._found = read_conflict(folder)

    def measure(self, step: int, progress: float) -> None:
        """Measures if it is time to.

        Args:
            step: steps done.
            progress: share of the run done, in [0, 1].
        """
        self._found = [one for one in self._found if one["step"] <= step]
        place = len(self._found)
        if place >= self._times or progress < place / max(1, self._times - 1):
            return
        cosine = gradient_cosine(self._model, self._examples, self._budget)
        self._found.append({"step": step, "cosine": cosine})
        with replacing(self._path) as file:
            file.write(json.dumps(self._found).encode())


def read_conflict(folder: Path) -> list[dict[str, Any]]:
    """What was measured in a run, by step; nothing where it was not asked for."""
    path = folder / CONFLICT
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return found


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
