"""Evaluations that lie on disk, held against each other: `quintain compare` and `quintain gate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quintain.evaluation.behaviour import cost_of
from quintain.evaluation.multiple import holm
from quintain.evaluation.regression import gate
from quintain.evaluation.summary import Comparison, compare
from quintain.harness.journal import read_journal
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task, load_tasks
from quintain.pipeline import read_manifest, read_recipe


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished evaluation.

    Attributes:
        name: as it was asked for.
        episodes: all that were played.
        tasks: its pool, by id.
    """

    name: str
    episodes: list[Episode]
    tasks: dict[str, Task]


def read_evaluation(path: Path) -> Measured:
    """The evaluation of a run: `RUN` for the last finished one, `RUN/STAGE` for that one.

    Raises:
        InputError: there is no run, or no finished evaluation in it.
    """
    run, wanted = (path.parent, path.name) if read_manifest(path) is not None else (path, None)
    recipe, _ = read_recipe(run)
    stages = [stage.name for stage in recipe.stages if stage.kind == "eval" and wanted in (None, stage.name)]
    manifests = [found for name in stages if (found := read_manifest(run / name)) and found["status"] == "done"]
    if not manifests:
        raise InputError(f"{path}: no finished evaluation; give a run with an eval stage, or RUN/STAGE")
    last = manifests[-1]
    episodes, _ = read_journal(run / last["name"] / "journal")
    tasks = load_tasks(run / "pools" / f"{last['stage']['pool']}.jsonl")
    return Measured(str(path), episodes, {task.id: task for task in tasks})


def compare_runs(paths: Sequence[Path]) -> dict[str, Any]:
    """Every evaluation against the first, paired by task; p-values adjusted for their number by Holm's method.

    Raises:
        InputError: fewer than two, an evaluation is missing, or two share no scored task.
    """
    if len(paths) < 2:
        raise InputError("compare needs two evaluations at least: the one to start from, and others")
    first, *others = [read_evaluation(path) for path in paths]
    results = [_paired(first, other) for other in others]
    adjusted = holm([one.difference.p_value for one in results])
    rows = [_row(other.name, one, p) for other, one, p in zip(others, results, adjusted, strict=True)]
    lines = [f"from {first.name}: {_standing(first, results[0].before.value)}"]
    for other, one, row in zip(others, results, rows, strict=True):
        value = one.difference.estimate
        lines.append(f"to   {other.name}: {_standing(other, one.after.value)}")
        lines.append(
            f"     {value.value:+.3f} [{value.low:+.3f}, {value.high:+.3f}], p = {row['p_value']:.4f}, "
            f"Holm {row['p_value_holm']:.4f}, {one.tasks} common tasks, {one.left_out} left out"
        )
    return {"from": first.name, "to": rows, "lines": lines}


def gate_runs(run: Path, baseline: Path, margin: float) -> dict[str, Any]:
    """Is the evaluation of `run` worse than that of `baseline` by more than `margin`?

    Raises:
        InputError: an evaluation is missing, they share no scored task, or the margin is no share.
    """
    found = gate(_paired(read_evaluation(baseline), read_evaluation(run)), margin)
    return {**found.to_json(), "lines": found.lines()}


def _paired(first: Measured, second: Measured) -> Comparison:
    common = first.tasks.keys() & second.tasks.keys()
    changed = sorted(name for name in common if first.tasks[name] != second.tasks[name])
    if changed:
        raise InputError(
            f"task {changed[0]!r} is not the same in {first.name} and {second.name} ({len(changed)} of {len(common)} "
            "differ): one pool is needed to compare"
        )
    return compare(first.episodes, second.episodes)


def _standing(one: Measured, pass1: float) -> str:
    """pass@1 on the common tasks and what an episode cost."""
    cost = cost_of([episode for episode in one.episodes if episode.scored])
    price = f", price {cost.mean_price:.6g}" if cost.mean_price else ""
    return f"pass@1 {pass1:.3f}; an episode: {cost.mean_calls:.1f} calls, {cost.mean_tokens:.0f} tokens{price}"


def _row(name: str, one: Comparison, adjusted: float) -> dict[str, Any]:
    result = one.to_json()
    difference = result.pop("difference")
    return {
        "name": name,
        **result,
        "difference": difference["estimate"],
        "p_value": difference["p_value"],
        "p_value_holm": adjusted,
    }
