"""One rank's part in training: its rows of the model, its optimiser, its share of a step's trees."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from quintain.machine import tune
from quintain.training import checkpoint, ranks
from quintain.training.checkpoint import Position
from quintain.training.config import TrainConfig, check_precision
from quintain.training.forward import TreeForward, causal_lm, prepare, tree_logprobs
from quintain.training.objective import Loss, Objective
from quintain.training.optim import adamw, clip_gradients, set_learning_rate
from quintain.training.reference import Reference
from quintain.training.sharding import hollow, pull, push, shard
from quintain.training.tree import PrefixTree


class Worker:
    """Computes gradients and takes steps. In one process it trains the model itself, else a sharded copy.

    Args:
        model: a transformers causal LM, with or without adapters; hollow on ranks other than 0.
        config: settings.
        reference: whether the objective compares with the model as it is now.

    Raises:
        InputError: lower precision without `torchrun`, or a model that can't be sharded.
    """

    def __init__(self, model: Any, config: TrainConfig, reference: bool) -> None:
        tune()
        check_precision(config)
        self._whole = model
        self._config = config
        self._forward = self._placed(model)
        self.model = self._forward.model
        self.optimizer = adamw(self.model.parameters(), config.learning_rate, config.weight_decay)
        self._parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.reference = self._made_reference() if reference else None

    def accumulate(self, trees: Sequence[PrefixTree], objective: Objective, total_weight: float) -> dict[str, float]:
        """Adds up gradients over this rank's trees; returns the losses' metrics, summed over all ranks."""
        sums: dict[str, float] = {}
        for tree in trees:
            for name, value in self._backward(tree, objective, total_weight).metrics.items():
                sums[name] = sums.get(name, 0.0) + value
        return ranks.summed(sums)

    def clip(self) -> float:
        """Clips the gradients of all ranks together; returns their norm before."""
        return float(clip_gradients(self._parameters, self._config.clip))

    def apply(self, learning_rate: float) -> None:
        """Takes the step."""
        set_learning_rate(self.optimizer, learning_rate)
        self.optimizer.step()
        self.drop()

    def drop(self) -> None:
        """Forgets the gradients."""
        self.optimizer.zero_grad()

    def publish(self) -> None:
        """Brings rank 0's whole model up to date."""
        if ranks.joined():
            pull(self.model, self._whole)

    def save(self, folder: Path, position: Position) -> Path:
        """A checkpoint, every rank its rows; see `checkpoint.save`."""
        return checkpoint.save(folder, self.model, self.optimizer, position)

    def restore(self, path: Path) -> Position:
        """Goes on from a checkpoint; see `checkpoint.restore`."""
        return checkpoint.restore(path, self.model, self.optimizer)

    def _backward(self, tree: PrefixTree, objective: Objective, total_weight: float) -> Loss:
        reference = self.reference.logprobs(tree) if self.reference else None
        with tree_logprobs(self._forward, tree) as logprobs:
            predictions = tree.predictions.to(logprobs.values.device)
            loss = objective(replace(logprobs, reference=reference), predictions, total_weight)
            loss.value.backward()  # type: ignore[no-untyped-call]
        return loss

    def _made_reference(self) -> Reference:
        if hasattr(self.model, "disable_adapter"):
            return Reference(self._forward)
        frozen = self._placed(self._whole if ranks.joined() else copy.deepcopy(self._whole))
        frozen.requires_grad_(False)
        return Reference(frozen)

    def _placed(self, model: Any) -> TreeForward:
        """The model, or this rank's rows of it, fit to be trained on trees."""
        own = hollow(model, "cpu") if ranks.joined() else model
        prepare(own)
        if self._config.recompute:
            causal_lm(own).gradient_checkpointing_enable({"use_reentrant": False})
        forward = TreeForward(own)
        if ranks.joined():
            shard(forward, self._config.precision)
            push(model, own)
        return forward
