"""The study `cpt`: which bases it compares, and what it says of them beside their scores.

The published ablation (Su et al. 2025, arXiv 2509.13310) compares a model with and without agentic pre-training. Here a
control learns from as many tokens of general text, every base has several seeds, and scores have intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from quintain.evaluation.estimators import Trials, avg_at_k, pass_at_k, trials_by_task
from quintain.evaluation.intervals import Difference, paired_difference
from quintain.evaluation.scaling import fit_scaling
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.pipeline.run import read_manifest, write_json
from quintain.pipeline.stages import read_metrics, stage_episodes
from quintain.pipeline.workshop import Workshop
from quintain.recipe import Recipe

if TYPE_CHECKING:
    from quintain.studies.study import Cell

LAST = 100
"""Steps at the end of fine-tuning whose mean loss is compared: a single step is one batch's luck. At most a quarter of
all, or a short run's end would be its beginning, too."""

Measured = Sequence[tuple["Cell", dict[str, Any]]]
"""Cells and what was found of each."""

Tokens = Callable[[Mapping[str, Any]], dict[str, int]]


def _from(*sources: str) -> Tokens:
    """All of the recipe's tokens from some of its sources, in their proportions."""

    def tokens(stage: Mapping[str, Any]) -> dict[str, int]:
        total = sum(stage["tokens"].values())
        chosen = {source: stage["tokens"].get(source, 1) for source in sources}
        return {source: round(total * share / sum(chosen.values())) for source, share in chosen.items()}

    return tokens


def _times(factor: float) -> Tokens:
    return lambda stage: {source: round(tokens * factor) for source, tokens in stage["tokens"].items()}


_FAS_HAS: dict[str, Any] = {"cpt.text": []}

BASES: dict[str, dict[str, Any]] = {
    "original": {"cpt": None, "sft.start": "base"},
    "general": {"cpt.data": [], "cpt.tokens": _from("general")},
    "fas_has": _FAS_HAS,
}
"""The model as it is; pre-trained on general text; pre-trained on first-order and higher-order actions."""

_SIX: dict[str, dict[str, Any]] = {
    **BASES,
    "fas": {**_FAS_HAS, "cpt.data": ["fas"], "cpt.tokens": _from("planning", "reasoning")},
    "has": {**_FAS_HAS, "cpt.data": ["has"], "cpt.tokens": _from("has")},
    "shuffled": {**_FAS_HAS, "cpt.data": ["shuffled"], "cpt.tokens": _from("has")},
}

_AMOUNTS: dict[str, dict[str, Any]] = {
    f"fas_has_x{factor:g}".replace(".", "_"): {**_FAS_HAS, "cpt.tokens": _times(factor)} for factor in (0.25, 0.5, 2)
}

CONTROLS: dict[str, list[str]] = {
    "original": [base for base in (*_SIX, *_AMOUNTS) if base != "original"],
    "general": [base for base in _SIX if base not in ("original", "general")],
}
"""What is held against the model as it is, and what against as many tokens of general text."""

WAYS: dict[str, dict[str, Any]] = {
    "mixed": {"sft.train.chat": "mixed"},
    "summarised": {"sft.summarise": True},
}
"""Other ways of fine-tuning than chat first and trajectories after: both mixed; thoughts cut to what they find."""

FULL: dict[str, dict[str, Any]] = {
    **_SIX,
    **{f"{base}-{way}": {**changes, **WAYS[way]} for way in WAYS for base, changes in _SIX.items()},
    **_AMOUNTS,
}
"""Also each part alone, decisions with shuffled ends, each base fine-tuned in each way, and other amounts of tokens."""


def pretraining(recipe: Recipe, cells: Sequence[Cell], home: Path, folder: Path) -> list[str]:
    """Loss of fine-tuning, pass@k, conflict of gradients and growth with tokens; also written to `pretraining.json`.

    Args:
        recipe: of all cells.
        cells: finished ones.
        home: the folder the recipe's paths are relative to.
        folder: of the run.
    """
    workshop = Workshop(recipe, home, folder)
    found = [(cell, _cell(workshop, cell)) for cell in cells]
    losses = {(cell.group, cell.seed): one["losses"] for cell, one in found}
    for cell, one in found:
        one["loss"] = loss_figures(one["losses"], losses[control_of(cell.group), cell.seed])
    fit, trials = _fit(found), _trials(workshop, cells)
    paired = {control: paired_with(control, trials) for control in CONTROLS}
    record = {
        "cells": [{"base": cell.group, "seed": cell.seed, **one} for cell, one in found],
        **{
            f"against_{control}": {
                base: {name: asdict(one) for name, one in both.items()} for base, both in held.items()
            }
            for control, held in paired.items()
        },
        **fit,
    }
    write_json(folder / "pretraining.json", record)
    lines = [line for control, held in paired.items() for line in _paired_lines(held, control)]
    return [*_table(found), "", *lines, "", *fit["lines"]]


def _trials(workshop: Workshop, cells: Sequence[Cell]) -> dict[str, dict[str, Trials]]:
    """Trials of all seeds, by base and task."""
    return {
        base: {one.task: one for one in trials_by_task(_measured(workshop, [c for c in cells if c.group == base]))}
        for base in dict.fromkeys(cell.group for cell in cells)
    }


def paired_with(control: str, trials: Mapping[str, Mapping[str, Trials]]) -> dict[str, dict[str, Difference]]:
    """pass@1 and pass@k of each base against a control that was fine-tuned alike, all seeds together, by task."""
    found = {}
    for base, own in trials.items():
        other = control_of(base, control)
        if base.partition("-")[0] not in CONTROLS[control] or other not in trials:
            continue
        before = [one for task, one in trials[other].items() if task in own]
        after = [own[one.task] for one in before]
        clusters = [one.cluster for one in before]
        most = min(one.n for one in (*before, *after))
        found[base] = {
            "pass@1": paired_difference(avg_at_k(before), avg_at_k(after), clusters),
            f"pass@{most}": paired_difference(pass_at_k(before, most), pass_at_k(after, most), clusters),
        }
    return found


def _measured(workshop: Workshop, cells: Sequence[Cell]) -> list[Episode]:
    stages = [stage for stage in workshop.recipe.stages if stage.kind == "eval"]
    names = [stage.name for cell in cells for stage in stages if stage.name.endswith(f"-{cell.name}")]
    return [episode for name in names for episode in stage_episodes(workshop, name)]


def _paired_lines(paired: Mapping[str, Mapping[str, Difference]], control: str) -> list[str]:
    return [
        f"- {base}, {name} against {control_of(base, control)}: {one.estimate.value:+.3f} "
        f"[{one.estimate.low:+.3f}, {one.estimate.high:+.3f}], p = {one.p_value:.3f}"
        for base, both in paired.items()
        for name, one in both.items()
    ]


def control_of(group: str, control: str = "original") -> str:
    """The group of a control, by default the model as it is, fine-tuned in the same way.

    >>> control_of("fas_has"), control_of("fas_has-mixed", "general")
    ('original', 'general-mixed')
    """
    _, dash, way = group.partition("-")
    return f"{control}{dash}{way}"


def _cell(workshop: Workshop, cell: Cell) -> dict[str, Any]:
    from quintain.training.conflict import read_conflict

    stages: dict[str, Any] = {
        stage.kind: stage for stage in workshop.recipe.stages if stage.name.endswith(f"-{cell.name}")
    }
    start = stages["sft"].start  # cells that pre-train alike share the model
    pretrained = None if start == "base" else read_manifest(workshop.folder / start)
    trials = trials_by_task(stage_episodes(workshop, stages["eval"].name))
    most = min(one.n for one in trials)
    return {
        "cpt_tokens": sum(pretrained["result"]["tokens"].values()) if pretrained else 0,
        "losses": [row["loss"] for row in read_metrics(workshop.folder / stages["sft"].name)],
        "pass1": mean(avg_at_k(trials)),
        "k": most,
        "pass_at_k": mean(pass_at_k(trials, most)),
        "gradient_cosine": read_conflict(workshop.folder / stages["sft"].name),
    }


def loss_figures(losses: Sequence[float], control: Sequence[float]) -> dict[str, float | int | None]:
    """Final, least and last mean loss, and the first step whose trailing mean is as low as the control's last mean.

    Args:
        losses: of every step `[S]`.
        control: of every step of the model without pre-training `[S']`.
    """
    window = max(1, min(LAST, len(control) // 4))
    aim = mean(control[-window:])
    reached = (step for step in range(1, len(losses) + 1) if mean(losses[max(0, step - window) : step]) <= aim)
    return {
        "final": losses[-1],
        "least": min(losses),
        "last_mean": mean(losses[-window:]),
        "steps_to_control": next(reached, None),
    }


def _fit(found: Measured) -> dict[str, Any]:
    """Score against tokens, of the original and every amount of first-order and higher-order actions.

    Seeds of one amount read whole documents, so a few tokens more or less: they share the mean, and are one amount.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for cell, one in found:
        if cell.group == "original" or (cell.group.startswith("fas_has") and "-" not in cell.group):
            groups.setdefault(cell.group, []).append(one)
    points = [(mean(one["cpt_tokens"] for one in same), one["pass1"]) for same in groups.values() for one in same]
    try:
        laws = fit_scaling([x for x, _ in points], [y for _, y in points])
    except InputError as error:
        return {"laws": [], "lines": [f"No fit: {error}."]}
    lines = [
        f"{law.name}: predicts {law.predicted:.3f} [{law.low:.3f}, {law.high:.3f}] for the largest amount of tokens, "
        f"off by {law.error:+.3f}"
        for law in laws
    ]
    return {"laws": [law.to_json() for law in laws], "lines": lines}


def _table(found: Measured) -> list[str]:
    """One row for each base, means over its seeds."""
    lines = [
        "| base | tokens | final loss | least | last steps | steps to original's | pass@k | cosine over fine-tuning |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for base in dict.fromkeys(cell.group for cell, _ in found):
        rows = [one for cell, one in found if cell.group == base]
        losses = [f"{mean(one['loss'][key] for one in rows):.3f}" for key in ("final", "least", "last_mean")]
        steps = ", ".join(str(one["loss"]["steps_to_control"] or "never") for one in rows)
        score = f"{mean(one['pass_at_k'] for one in rows):.3f} (k = {min(one['k'] for one in rows)})"
        moments = zip(*(one["gradient_cosine"] for one in rows), strict=False)  # a seed still to come has none
        cosines = " → ".join(_mean([one["cosine"] for one in moment]) for moment in moments)
        tokens = f"{mean(one['cpt_tokens'] for one in rows):,.0f}"
        lines.append(f"| {' | '.join([base, tokens, *losses, steps, score, cosines])} |")
    return lines


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{mean(known):+.3f}" if known else "-"
