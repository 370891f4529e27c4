"""Evaluations that lie on disk, held against each other: `quintain compare` and `quintain gate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quintain.curation.pools import read_manifest
from quintain.evaluation.behaviour import cost_of
from quintain.evaluation.multiple import holm
from quintain.evaluation.regression import gate
from quintain.evaluation.summary import Comparison, compare
from quintain.harness.journal import read_journal
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.lock import read_lock
from quintain.interface.tasks import Task, load_tasks
from quintain.pipeline.lineage import is_done, split_stage
from quintain.pipeline.run import RECIPE, read_recipe
from quintain.pipeline.workshop import LOCK
from quintain.recipe.pools import manifest_path


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished evaluation.

    Attributes:
        name: as it was asked for.
        episodes: all that were played.
        tasks: its pool, by id; empty for a sealed one, whose tasks a run does not keep.
        size: how many tasks the pool has.
    """

    name: str
    episodes: list[Episode]
    tasks: dict[str, Task]
    size: int


def read_evaluation(path: Path) -> Measured:
    """The evaluation of a run: `RUN` for the last finished one, `RUN/STAGE` for that one.

    Raises:
        InputError: there is no run, or no finished evaluation in it.
    """
    run, wanted = split_stage(path)
    recipe, _ = read_recipe(run)
    stages = [stage for stage in recipe.stages if stage.kind == "eval" and wanted in (None, stage.name)]
    done = [stage for stage in stages if is_done(run, stage.name)]
    if not done:
        raise InputError(f"{path}: no finished evaluation; give a run with an eval stage, or RUN/STAGE")
    episodes, _ = read_journal(run / done[-1].name / "journal")
    path_of_tasks = run / "pools" / f"{done[-1].pool}.jsonl"
    tasks = load_tasks(path_of_tasks) if path_of_tasks.is_file() else []
    size = read_manifest(manifest_path(run, done[-1].pool)).tasks
    return Measured(str(path), episodes, {task.id: task for task in tasks}, size)


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
        lines.append(f"to   {other.name}: {_standing(other, one.after.value)}")
        lines.append(f"     {_difference(one)}; Holm p = {row['p_value_holm']:.4f}")
    return {"from": first.name, "to": rows, "lines": lines}


def gate_runs(run: Path, baseline: Path, margin: float) -> dict[str, Any]:
    """Is the evaluation of `run` worse than that of `baseline` by more than `margin`?

    Raises:
        InputError: an evaluation is missing, they share no scored task, or the margin is no share.
    """
    found = gate(_paired(read_evaluation(baseline), read_evaluation(run)), margin)
    return {**found.to_json(), "lines": found.lines()}


def cost_of_drift(model: Path, now: Measured) -> list[str]:
    """What a change of the tools costs a trained model: its evaluation now against the one its own run recorded.

    The old tools are gone, so what they gave is read from the run that trained the model (`RUN/STAGE/model`): the
    evaluations of that stage, on the same tasks, whose episodes were played with the tools of the model's lock.

    Args:
        model: the model's folder, with its `tools.lock`.
        now: its evaluation with the tools as they are.

    Returns:
        Lines for a person; they say so if nothing was recorded.
    """
    old = _recorded(model, now)
    if not old:
        return [
            f"drift: the run of {model} holds no evaluation of it on these tasks with the old tools, so what the "
            "change costs is not known"
        ]
    last = old[-1]
    return [f"drift: {now.name} against {last.name}, tools as trained: {_difference(_paired(last, now))}"]


def _recorded(model: Path, now: Measured) -> list[Measured]:
    """Finished evaluations of a model in its own run that were played with the tools it was trained on."""
    run, stage = model.parent.parent, model.parent.name
    if not (run / RECIPE).is_file() or not (model / LOCK).is_file():
        return []
    recipe, _ = read_recipe(run)
    toolsets = {one.toolset for one in read_lock(model / LOCK)}
    names = [one.name for one in recipe.stages if one.kind == "eval" and one.model == stage and not one.endpoint]
    done = [name for name in names if is_done(run, name)]
    measured = [read_evaluation(run / name) for name in done]
    scored = {one.task_id for one in now.episodes if one.scored}
    return [
        one
        for one in measured
        if all(episode.digests.toolset in toolsets for episode in one.episodes)
        and any(episode.scored and episode.task_id in scored for episode in one.episodes)
    ]


def _difference(one: Comparison) -> str:
    value = one.difference.estimate
    return (
        f"pass@1 {value.value:+.3f} [{value.low:+.3f}, {value.high:+.3f}], p = {one.difference.p_value:.4f}, "
        f"{one.tasks} common tasks, {one.left_out} left out"
    )


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
