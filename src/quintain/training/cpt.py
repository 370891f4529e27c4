"""Continual pre-training: next-token loss on whole documents, packed so that none sees another.

The two-stage schedule of AgentFounder (Su et al. 2025, "Scaling Agents via Continual Pre-training") is this run
twice: with a short context, then with a long one on what was too long before, with some of the first stage again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError
from quintain.training.checkpoint import atomic_folder
from quintain.training.config import SUMMARY, CPTConfig
from quintain.training.context import fit_context
from quintain.training.corpus import Corpus, build_corpus
from quintain.training.documents import Document
from quintain.training.loop import train
from quintain.training.lora import add_lora, merge
from quintain.training.mixture import Schedule, token_goals, write_schedule
from quintain.training.objective import cross_entropy
from quintain.training.packing import best_fit
from quintain.training.store import Documents

CORPUS, SCHEDULE = "corpus", "schedule"
REPLAY = "replay"
"""Source of the documents of an earlier stage that come again."""

MIX = "mix.json"


@dataclass(frozen=True, slots=True)
class Pretrained:
    """What a run left behind.

    Attributes:
        model: the trained model.
        steps: optimiser steps done.
        planned_steps: steps the token targets ask for.
        seconds: training seconds.
        tokens: tokens scheduled, by source.
        report: of the corpus: documents and tokens by source, what was cut, what is left to a later stage.
    """

    model: Any
    steps: int
    planned_steps: int
    seconds: float
    tokens: dict[str, int]
    report: dict[str, Any]


def run_cpt(
    config: CPTConfig,
    documents: Iterable[Document],
    model: Any,
    out: Path,
    *,
    targets: Mapping[str, int],
    earlier: Iterable[Path] = (),
    replay: Path | None = None,
    replay_share: float = 0.0,
    skipped: Counter[str] | None = None,
    tokenizer: Any = None,
    summary: Mapping[str, Any] | None = None,
) -> Pretrained:
    """Trains a model in place on documents; resumes an interrupted run from `out`.

    Leaves `corpus/` and `schedule/` (the data in the order of training), `metrics.jsonl`, `checkpoints/`, `model/`.

    Args:
        config: settings.
        documents: read once, one at a time.
        model: a transformers causal LM.
        out: folder of the run.
        targets: tokens to learn from, by source; a source without one is read once.
        earlier: folders of runs whose documents were too long for them and belong here.
        replay: folder of a run whose documents come again, as source `replay`.
        replay_share: share of the tokens that are replay.
        skipped: what the reading of `documents` leaves out, by reason; kept in the report.
        tokenizer: saved beside the weights.
        summary: what else the model's folder says of itself.

    Raises:
        InputError: there is nothing to learn from, a target names no source, or the context is too long.
        DivergenceError: the loss is no number any more.
    """
    fit_context(model, config)
    if not (out / CORPUS).is_dir():
        waiting = chain.from_iterable(Corpus(folder / CORPUS).waiting() for folder in earlier)
        build_corpus(chain(documents, waiting), config.context, out / CORPUS, skipped)
    tokens = plan_mix(config, out, targets=targets, replay=replay, replay_share=replay_share)
    schedule = read_schedule(out, replay)
    if config.lora_rank:
        model = add_lora(model, config.lora_rank, config.seed)
    position = train(
        model,
        schedule.batch,
        schedule.steps,
        cross_entropy,
        config,
        out,
        seconds=config.seconds,
        title="CPT",
        packing=best_fit,
    )
    model = merge(model) if config.lora_rank else model
    with atomic_folder(out / "model") as scratch:
        model.save_pretrained(scratch)
        if tokenizer is not None:
            tokenizer.save_pretrained(scratch)
        record = {"steps": position.step, "seconds": position.seconds, "tokens": tokens, "config": config.model_dump()}
        (scratch / SUMMARY).write_text(json.dumps({**record, **(summary or {})}))
    report = Corpus(out / CORPUS).report
    return Pretrained(model, position.step, schedule.steps, position.seconds, tokens, report)


def plan_mix(
    config: CPTConfig, out: Path, *, targets: Mapping[str, int], replay: Path | None, replay_share: float
) -> dict[str, int]:
    """Writes the order of the documents once; returns the tokens taken from each source.

    Raises:
        InputError: no document fits the context, or a target names no source.
    """
    if (out / SCHEDULE).is_dir():
        taken: dict[str, int] = json.loads((out / SCHEDULE / MIX).read_text(encoding="utf-8"))
        return taken
    corpus = Corpus(out / CORPUS)
    if not corpus.sources:
        too_long = sum(one["documents"] for one in corpus.report["too_long"].values())
        raise InputError(
            f"nothing to train on: there are {too_long} documents longer than context = {config.context}, and no other"
        )
    goals = token_goals(corpus.sources, targets, config.most_epochs)
    sources = _sources(corpus, replay)
    if replay is not None and replay_share:
        wanted = round(sum(goals.values()) * replay_share / (1 - replay_share))
        goals |= token_goals({REPLAY: sources[REPLAY]}, {REPLAY: wanted}, config.most_epochs)
    with atomic_folder(out / SCHEDULE) as scratch:
        taken = write_schedule(scratch, sources, goals, config.batch_tokens, config.seed)
        (scratch / MIX).write_text(json.dumps(taken), encoding="utf-8")
    return taken


def read_schedule(out: Path, replay: Path | None) -> Schedule:
    """The documents of a run in the order of training.

    Args:
        out: folder of the run.
        replay: folder of the run it repeats, if any.
    """
    return Schedule(out / SCHEDULE, _sources(Corpus(out / CORPUS), replay))


def _sources(corpus: Corpus, replay: Path | None) -> dict[str, Documents]:
    """Sources of the corpus, then replay: the order the schedule counts them in."""
    own: dict[str, Documents] = dict(corpus.sources)
    if replay is None:
        return own
    return own | {REPLAY: Schedule(replay / SCHEDULE, dict(Corpus(replay / CORPUS).sources))}
