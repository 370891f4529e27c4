"""Supervised fine-tuning: behaviour cloning of the agent's own tokens."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, count
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.training import ranks
from quintain.training.checkpoint import atomic_folder
from quintain.training.config import SUMMARY, SFTConfig
from quintain.training.conflict import ConflictLog
from quintain.training.loop import Batches, train
from quintain.training.lora import add_lora, merge
from quintain.training.objective import cross_entropy


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training run left behind.

    Attributes:
        model: the trained model; with LoRA the adapters are merged into its weights.
        folder: its weights and the summary, as `from_pretrained` reads them.
        examples: number of examples.
        steps: optimiser steps.
        planned_steps: steps that the examples, or `tokens`, ask for; time may end a run before.
        seconds: training seconds.
    """

    model: Any
    folder: Path
    examples: int
    steps: int
    planned_steps: int
    seconds: float


def train_examples(
    config: SFTConfig,
    examples: Sequence[Example],
    model: Any,
    out: Path,
    *,
    tokenizer: Any = None,
    chat: Sequence[Example] = (),
) -> Trained:
    """Fine-tunes a model on examples, in place; resumes an interrupted run from `out`.

    Args:
        config: settings.
        examples: what to imitate, chosen by the caller.
        model: a transformers causal LM.
        out: folder of the run: `metrics.jsonl`, `checkpoints/`, `model/`, and `adapter/` with LoRA.
        tokenizer: saved beside the weights.
        chat: learnt once, before the examples or among them.

    Raises:
        InputError: there is no example, or `conflict` is asked for on several processes.
        DivergenceError: the loss is no number any more.
    """
    if not examples:
        raise InputError("nothing to train on: no episode has a well-formed turn")
    if config.conflict and ranks.size() > 1:
        raise InputError(f"conflict = {config.conflict} is measured in one process, and there are {ranks.size()}")
    if config.lora_rank:
        model = add_lora(model, config.lora_rank, config.seed)
    batches, steps = _bounded(shuffled(examples, config.batch_trajectories, config.epochs, config.seed), config.tokens)
    if chat:
        first = _bounded(shuffled(chat, config.batch_trajectories, 1, config.seed), config.chat_tokens)
        batches, steps = in_order(first, (batches, steps), mixed=config.chat == "mixed", seed=config.seed)
    conflict = ConflictLog(out, model, examples, config.conflict, config.microbatch_tokens)
    position = train(
        model, batches, steps, cross_entropy, config, out, seconds=config.seconds, title="SFT", observe=conflict.measure
    )
    if config.lora_rank:
        with atomic_folder(out / "adapter") as scratch:
            model.save_pretrained(scratch)
        model = merge(model)
    trained = Trained(model, out / "model", len(examples) + len(chat), position.step, steps, position.seconds)
    digests = [asdict(one) for one in dict.fromkeys(example.digests for example in (*examples, *chat))]
    summary = {"examples": trained.examples, "steps": trained.steps, "seconds": trained.seconds, "digests": digests}
    with atomic_folder(trained.folder) as scratch:
        trained.model.save_pretrained(scratch)
        if tokenizer is not None:
            tokenizer.save_pretrained(scratch)
        (scratch / SUMMARY).write_text(json.dumps({**summary, "config": config.model_dump()}))
    return trained


def _bounded(run: tuple[Batches, int], tokens: int | None) -> tuple[Batches, int]:
    """A run of batches that ends with this many tokens, however many passes that takes, instead of with its steps."""
    batches, steps = run
    return batches, steps if tokens is None else steps_of(batches, tokens)


def steps_of(batches: Batches, tokens: int) -> int:
    """Steps until the batches hold this many tokens, context included; the last batch goes over it."""
    sizes = (sum(len(example.ids) for example in batches(step)) for step in count())
    return next(step for step, total in enumerate(accumulate(sizes), start=1) if total >= tokens)


def shuffled(examples: Sequence[Example], batch: float, epochs: int, seed: int) -> tuple[Batches, int]:
    """Batches as a function of the step, and the number of steps.

    Every epoch has its own order and is cut into batches of equal size (one more or less), about `batch`.
    """
    per_epoch = max(1, round(len(examples) / batch))

    def batch_of(step: int) -> list[Example]:
        epoch, place = divmod(step, per_epoch)
        order = list(range(len(examples)))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        return [examples[index] for index in order[place::per_epoch]]

    return batch_of, per_epoch * epochs


def in_order(chat: tuple[Batches, int], own: tuple[Batches, int], *, mixed: bool, seed: int) -> tuple[Batches, int]:
    """Batches of chat and of trajectories as one run: the same examples in the same number of steps, in either order.

    Args:
        chat: batches and number of steps.
        own: the same, of trajectories.
        mixed: all examples in one random order; otherwise chat comes first.
        seed: of that order.
    """
    (first, before), (then, after) = chat, own
    if not mixed:
        return (lambda step: first(step) if step < before else then(step - before)), before + after
    planned = [one for step in range(before) for one in first(step)]
    planned += [one for step in range(after) for one in then(step)]
    return shuffled(planned, len(planned) / (before + after), 1, seed)
