"""The training loop: batches in, a trained model, a metrics file and checkpoints out."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from quintain.interface.errors import InputError, QuintainError
from quintain.interface.example import Example
from quintain.training import checkpoint, ranks
from quintain.training.attention import supports_trees
from quintain.training.balance import idle, spread
from quintain.training.checkpoint import Position
from quintain.training.config import TrainConfig
from quintain.training.forward import causal_lm
from quintain.training.interruption import held_back
from quintain.training.objective import Objective
from quintain.training.optim import rate_share
from quintain.training.packing import Packing, pack
from quintain.training.ranks import WorkerGroup
from quintain.training.rows import METRICS
from quintain.training.sharding import hollow
from quintain.training.worker import Worker

Batches = Callable[[int], Sequence[Example]]
"""The examples of an optimiser step by its number. A pure function, so that a resumed run sees the same data."""

Metrics = dict[str, float]
T = TypeVar("T")


class DivergenceError(QuintainError):
    """Loss or gradient is no number any more: training stops before the step, the last checkpoint stands."""


class Trainer:
    """A model with its optimiser, on one rank or many; one `step` per optimiser batch.

    Args:
        model: a transformers causal LM, with or without adapters.
        objective: the loss.
        config: settings.
        packing: how a batch is split into microbatches.
        reference: whether the objective compares with the model as it is now.

    Attributes:
        workers: one on every rank.
        exclusively: set where others use the model between steps, which keeps it up to date; runs a change of its
            weights at a moment when nobody reads them.
    """

    def __init__(
        self, model: Any, objective: Objective, config: TrainConfig, packing: Packing = pack, *, reference: bool = False
    ) -> None:
        self.model = model
        self.objective = objective
        self.config = config
        self.exclusively: Callable[[Callable[[], object]], object] | None = None
        self._pack = packing
        self._share = supports_trees(causal_lm(model))
        sent = hollow(model) if ranks.joined() else model
        self.workers = WorkerGroup(Worker, (model, config, reference), (sent, config, reference))

    def step(self, examples: Sequence[Example], rate: float) -> Metrics:
        """One optimiser step over a batch.

        Args:
            examples: the optimiser batch.
            rate: share of the peak learning rate.

        Raises:
            DivergenceError: loss or gradient norm is not finite; the weights are left as they were.
            InputError: no token carries loss, or an example is longer than a microbatch.
        """
        began = time.monotonic()
        metrics = self._accumulate(examples)
        norm = self.workers.every(Worker.clip)
        if not (math.isfinite(metrics["loss"]) and math.isfinite(norm)):
            self.workers.every(Worker.drop)
            raise DivergenceError(f"loss is {metrics['loss']}, gradient norm is {norm}")
        self._apply(self.config.learning_rate * rate)
        seconds = time.monotonic() - began
        return metrics | {
            "gradient_norm": norm,
            "learning_rate": self.config.learning_rate * rate,
            "step_seconds": seconds,
            "tokens_per_second": metrics["tokens"] / seconds,
        }

    def save(self, folder: Path, position: Position) -> Path:
        """Writes a checkpoint; returns its path."""
        return self.workers.every(Worker.save, folder, position)

    def restore(self, path: Path) -> Position:
        """Goes on from a checkpoint, written on however many ranks.

        Raises:
            InputError: it is one of another model.
        """
        return self._change(Worker.restore, path)

    def finish(self) -> None:
        """Brings the model up to date and frees what only training needs."""
        self.workers.every(Worker.publish)
        self.workers.end()

    def _apply(self, learning_rate: float) -> None:
        if self.exclusively is None:
            self.workers.every(Worker.apply, learning_rate)
        else:
            self.exclusively(lambda: self._change(Worker.apply, learning_rate))

    def _change(self, work: Callable[..., T], *arguments: Any) -> T:
        """Changes the weights, and brings the model up to date."""
        found = self.workers.every(work, *arguments)
        self.workers.every(Worker.publish)
        return found

    def _accumulate(self, examples: Sequence[Example]) -> Metrics:
        shares = spread(examples, self.config.microbatch_tokens, ranks.size(), self._pack, share=self._share)
        trees = [tree for share in shares for tree in share if tree.loss_weight]
        total = sum(tree.loss_weight for tree in trees)
        if not total:
            raise InputError(f"none of the {len(examples)} examples of this batch has a token with loss")
        metrics: Metrics = self.workers.each(Worker.accumulate, shares, self.objective, total)
        if len(shares) > 1:
            metrics["idle"] = idle(shares)
        return metrics | {
            "examples": len(examples),
            "tokens": sum(len(tree) for tree in trees),
            "example_tokens": sum(tree.example_tokens for tree in trees),
            "loss_weight": total,
            "microbatches": len(trees),
        }


def train(
    model: Any,
    batches: Batches,
    steps: int,
    objective: Objective,
    config: TrainConfig,
    out: Path,
    *,
    seconds: float | None = None,
    title: str = "train",
    packing: Packing = pack,
    observe: Callable[[int, float], None] | None = None,
) -> Position:
    """Trains for `steps` steps, or until `seconds` of training are over; resumes from `out` where it can.

    Writes `out/metrics.jsonl` (one line per step) and `out/checkpoints/`. The learning rate follows the
    progress, which is the larger of the shares of steps and of seconds.

    Args:
        model: a transformers causal LM, with or without adapters; trained in place.
        batches: the examples of each step.
        steps: most optimiser steps.
        objective: the loss.
        config: settings.
        out: folder of the run.
        seconds: most training seconds, those before an interruption included.
        title: what the progress bar says.
        packing: how a batch is split into microbatches.
        observe: called before every step and after the last with the steps done and the share of the run done.

    Raises:
        DivergenceError: loss or gradient is not finite; names the step and the checkpoint that stands.
        KeyboardInterrupt: after a first Ctrl-C once the step is done and saved, after a second one at once.
    """
    trainer = Trainer(model, objective, config, packing)
    folder = out / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    found = checkpoint.latest(folder)
    position = trainer.restore(found) if found else Position()
    log = MetricsLog(out / METRICS, position.step)
    pace = Pace(steps, seconds, position)
    saved_at = pace.elapsed
    with held_back() as interrupted, _progress_bar() as bar:
        task = bar.add_task(title, total=1.0, note="")
        while not pace.over(position.step):
            if observe:
                observe(position.step, pace.progress(position.step))
            metrics = _step_or_explain(trainer, batches, position.step, pace, found)
            position = Position(position.step + 1, pace.elapsed)
            log.write({"step": position.step, "seconds": position.seconds, **metrics})
            bar.update(task, completed=pace.progress(position.step), note=_status(position.step, metrics))
            if interrupted() or pace.elapsed - saved_at >= config.checkpoint_seconds:
                found = trainer.save(folder, position)
                saved_at = pace.elapsed
            if interrupted():
                raise KeyboardInterrupt
    if observe:
        observe(position.step, 1.0)
    trainer.finish()
    return position


class Pace:
    """How far a run is, by steps and by time."""

    def __init__(self, steps: int, seconds: float | None, position: Position) -> None:
        self._steps = steps
        self._seconds = seconds
        self._first = position.step
        self._began = time.monotonic() - position.seconds
        self._resumed = position.seconds

    @property
    def elapsed(self) -> float:
        """Training seconds, those before an interruption included."""
        return time.monotonic() - self._began

    def progress(self, step: int) -> float:
        """Share of the run done after `step` steps, in [0, 1]."""
        by_time = self.elapsed / self._seconds if self._seconds else 0.0
        return min(1.0, max(step / self._steps, by_time))

    def rate_progress(self, step: int) -> float:
        """Progress at the middle of the step that is about to run."""
        by_steps = (step + 0.5) / self._steps
        by_time = (self.elapsed + self._mean(step) / 2) / self._seconds if self._seconds else 0.0
        return min(1.0, max(by_steps, by_time))

    def over(self, step: int) -> bool:
        """Whether all steps are done, or another would end past the time; the first step always runs."""
        out_of_time = self._seconds is not None and self.elapsed + self._mean(step) > self._seconds
        return step >= self._steps or (step > 0 and out_of_time)

    def _mean(self, step: int) -> float:
        done = step - self._first
        return (self.elapsed - self._resumed) / done if done else 0.0


class MetricsLog:
    """`metrics.jsonl`: one JSON object per step. Lines past the step resumed from are dropped on opening."""

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        kept = [line for line in lines[:step] if line.endswith("\n")]
        partial = path.with_suffix(".partial")
        partial.write_text("".join(kept))
        os.replace(partial, path)

    def write(self, row: dict[str, Any]) -> None:
        """Appends one line."""
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _step_or_explain(trainer: Trainer, batches: Batches, step: int, pace: Pace, found: Path | None) -> Metrics:
    try:
        return trainer.step(batches(step), rate_share(pace.rate_progress(step), trainer.config.warmup))
    except DivergenceError as error:
        remedy = f"lower learning_rate (now {trainer.config.learning_rate:g}) or clip (now {trainer.config.clip:g})"
        standing = f"{found.name} stands" if found else "there is no checkpoint yet"
        raise DivergenceError(f"step {step + 1}: {error}; {standing}; {remedy}") from None


def _progress_bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), TextColumn("{task.fields[note]}"))
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _status(step: int, metrics: Metrics) -> str:
    return f"step {step}  loss {metrics['loss']:.3f}  {metrics['tokens_per_second']:.0f} tokens/s"
