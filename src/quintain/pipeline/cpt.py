"""The continual pre-training stage: samples and general text in, a model that has read them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quintain.interface.sample import Sample, read_samples
from quintain.pipeline.workshop import Policy, Workshop
from quintain.progress import progress
from quintain.recipe import CPTStage

SAMPLES = "samples.jsonl"
"""In the folder of a synthesis stage."""


def cpt(workshop: Workshop, stage: CPTStage, folder: Path) -> dict[str, Any]:
    """Continual pre-training; resumes an interrupted run from `folder`."""
    from quintain.training.cpt import run_cpt
    from quintain.training.documents import Reader

    kinds = {one.name: one.kind for one in workshop.recipe.stages}
    policy = workshop.take_policy(stage.start)
    skipped: Counter[str] = Counter()
    toolsets = [one.toolset() for one in workshop.worlds.values()]
    reader = Reader(policy.tokenizer, policy.dialect, toolsets, skipped)
    synthetic = [name for name in stage.data if kinds[name] != "cpt"]
    done = run_cpt(
        stage.train,
        reader.documents(_samples(workshop, synthetic, stage.text, skipped)),
        policy.model,
        folder,
        targets=stage.tokens,
        earlier=[workshop.folder / name for name in stage.data if kinds[name] == "cpt"],
        replay=workshop.folder / stage.replay if stage.replay else None,
        replay_share=stage.replay_share,
        skipped=skipped,
        tokenizer=policy.tokenizer,
        summary={"digests": [asdict(one) for one in workshop.digests().values()]},
    )
    workshop.keep_policy(stage.name, Policy(done.model, policy.tokenizer, policy.dialect))
    short = {name: goal - done.tokens[name] for name, goal in stage.tokens.items() if done.tokens[name] < goal}
    return {
        "steps": done.steps,
        "planned_steps": done.planned_steps,
        "training_seconds": done.seconds,
        "tokens": done.tokens,
        "tokens_short": short,
        **done.report,
        "line": _line(done, short),
    }


def _samples(workshop: Workshop, stages: list[str], text: list[str], skipped: Counter[str]) -> Iterator[Sample]:
    from quintain.synthesis.general import read_text

    with progress("reading documents", total=None) as advance:
        for name in stages:
            for sample in read_samples(workshop.folder / name / SAMPLES):
                advance()
                yield sample
        for reference in text:
            for sample in read_text(reference, workshop.home, skipped):
                advance()
                yield sample


def _line(done: Any, short: dict[str, int]) -> str:
    """What was learnt from; a target that the data could not meet stands behind its source."""
    missing = {name: f" ({tokens:,} short of the target)" for name, tokens in short.items()}
    mix = ", ".join(f"{name} {tokens:,}{missing.get(name, '')}" for name, tokens in done.tokens.items())
    later = sum(one["documents"] for one in done.report["too_long"].values())
    waiting = f"; {later} documents wait for a longer context" if later else ""
    return f"{done.steps} of {done.planned_steps} steps; tokens: {mix}{waiting}"
