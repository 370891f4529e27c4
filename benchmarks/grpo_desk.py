"""GRPO against its control on the desk: several seeds, the same 192 held-out tasks, paired by task over all seeds.

All start from one checkpoint that leaves head-room: the first stages of `recipes/grpo-desk.toml`. A seed is that
recipe's GRPO from there, the same with a cost of 0.1 a call, and for the same time more fine-tuning on the successes of
its own episodes (`grpo-desk-control.toml`).
Tool calls per success count the calls of failed episodes too: what a success costs whoever pays for the calls.

python benchmarks/grpo_desk.py --out result.json            # 60 minutes a seed, in runs/grpo; goes on where it stopped
python benchmarks/grpo_desk.py --read --out result.json     # reads runs that are done
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from support.results import write_result

from quintain.evaluation.behaviour import cost_of
from quintain.evaluation.intervals import Difference, paired_difference
from quintain.interface.episode import Episode
from quintain.pipeline.comparison import read_evaluation
from quintain.pipeline.run import run_recipe
from quintain.pipeline.stages import STAGES
from quintain.recipe import load_recipe, recipe_from_table

RECIPES = Path(__file__).parents[1] / "recipes"
FIRST = ("demos", "sft", "before")
ARMS = {"GRPO": "grpo/after", "GRPO with a cost": "cost/after", "control": "control/after"}
COST = {"calls": 0.1}
DRAWS = 4_000
"""Resamples of an interval of a ratio."""
TARGETS = {
    "pass@1, GRPO - before": "at least +0.15, interval above 0",
    "pass@1, GRPO - control": "interval above 0",
    "pass@1, GRPO with a cost - before": "at least 0",
    "calls per success, GRPO / before": "at most 1",
    "calls per success, GRPO with a cost / before": "at most 0.85",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/grpo"), help="folder of the runs, one per seed and arm")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--read", action="store_true", help="run nothing, read what is there")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    if not options.read:
        start = run_start(options.runs / "start")
        for seed in options.seeds:
            run_seed(options.runs / f"seed-{seed}", seed, start)
    result = read(options.runs, options.seeds)
    show(result)
    write_result(options.out, result)


def run_start(folder: Path) -> Path:
    """The checkpoint all seeds start from, measured."""
    table = recipe_table("grpo-desk")
    table["stages"] = [stage for stage in table["stages"] if stage["name"] in FIRST]
    return run(table, folder) / "sft" / "model"


def run_seed(folder: Path, seed: int, start: Path) -> None:
    """The arms of a seed, one after the other; what is finished is skipped."""
    for arm, name in (("grpo", "grpo-desk"), ("cost", "grpo-desk"), ("control", "grpo-desk-control")):
        table = recipe_table(name) | {"seed": seed}
        table["model"]["base"] = str(start.resolve())
        table["stages"] = [from_base(stage) for stage in table["stages"] if stage["name"] not in FIRST]
        if arm == "cost":
            table["stages"][0]["train"]["reward"] = COST
        run(table, folder / arm)


def recipe_table(name: str) -> dict[str, Any]:
    """A recipe to be changed."""
    return load_recipe(RECIPES / f"{name}.toml").model_dump(mode="json", exclude_none=True)


def from_base(stage: dict[str, Any]) -> dict[str, Any]:
    """A stage that used the SFT's model uses the base model, which is the same."""
    return {key: value for key, value in stage.items() if value != "sft"}


def run(table: dict[str, Any], folder: Path) -> Path:
    """Runs what a table says; returns the run's folder."""
    folder = folder.absolute()
    run_recipe(recipe_from_table(table, str(folder)), "", RECIPES, folder, STAGES)
    return folder


def read(runs: Path, seeds: Sequence[int]) -> dict[str, Any]:
    """What the runs say, by seed and pooled over the seeds that have an arm."""
    before = played(runs / "start" / "before")
    found = {seed: arms(runs / f"seed-{seed}") for seed in seeds}
    pooled = {arm: [one[arm] for one in found.values() if arm in one] for arm in ARMS}
    differences, ratios = {}, {}
    for arm in (one for one in ARMS if one != "control"):
        if pooled[arm]:
            differences[f"pass@1, {arm} - before"] = asdict(difference([before], pooled[arm]))
            ratios[f"calls per success, {arm} / before"] = ratio([before], pooled[arm])
        for seed, one in found.items():
            if arm in one:
                differences[f"pass@1, {arm} - before, seed {seed}"] = asdict(difference([before], [one[arm]]))
    both = [one for one in found.values() if {"GRPO", "control"} <= one.keys()]
    if both:
        control, grpo = [one["control"] for one in both], [one["GRPO"] for one in both]
        differences["pass@1, GRPO - control"] = asdict(difference(control, grpo))
    return {
        "cores": os.cpu_count(),
        "before": row([before]),
        "seeds": {seed: {arm: row([episodes]) for arm, episodes in one.items()} for seed, one in found.items()},
        "pooled": {arm: row(episodes) for arm, episodes in pooled.items() if episodes},
        "training": {seed: training(runs / f"seed-{seed}") for seed in seeds},
        "differences": differences,
        "ratios": ratios,
    }


def arms(folder: Path) -> dict[str, list[Episode]]:
    """Evaluations of a seed, as far as they are there."""
    return {arm: played(folder / path) for arm, path in ARMS.items() if (folder / path).exists()}


def played(path: Path) -> list[Episode]:
    """Scored episodes of an evaluation."""
    return [episode for episode in read_evaluation(path).episodes if episode.scored]


def row(evaluations: Sequence[list[Episode]]) -> dict[str, float]:
    """Means over the given evaluations."""
    costs = [cost_of(episodes) for episodes in evaluations]
    succeeded = [cost_of([one for one in episodes if one.success]) for episodes in evaluations]
    return {
        "pass1": fmean(fmean(float(one.success) for one in episodes) for episodes in evaluations),
        "episodes": sum(map(len, evaluations)),
        "calls_per_success": calls_per_success(evaluations),
        "calls": fmean(one.mean_calls or 0.0 for one in costs),
        "calls_of_a_success": fmean(one.mean_calls or 0.0 for one in succeeded),
    }


def calls_per_success(evaluations: Sequence[list[Episode]]) -> float:
    """Tool calls of all episodes over successes."""
    episodes = [one for evaluation in evaluations for one in evaluation]
    return sum(one.usage.tool_calls for one in episodes) / sum(one.success for one in episodes)


def ratio(before: Sequence[list[Episode]], after: Sequence[list[Episode]]) -> dict[str, float]:
    """Of the calls per success, with a percentile interval over clusters drawn with replacement."""
    totals = [totals_by_cluster(before), totals_by_cluster(after)]
    sums = np.array([[one[cluster] for cluster in sorted(totals[0])] for one in totals])  # [2, clusters, 2]
    clusters = sums.shape[1]
    drawn = np.random.default_rng(0).multinomial(clusters, np.full(clusters, 1 / clusters), size=DRAWS)
    calls, successes = np.moveaxis(np.einsum("dc,sck->skd", drawn, sums), 1, 0)
    low, high = np.quantile((calls / successes)[1] / (calls / successes)[0], (0.025, 0.975))
    return {"value": calls_per_success(after) / calls_per_success(before), "low": float(low), "high": float(high)}


def totals_by_cluster(evaluations: Sequence[list[Episode]]) -> dict[str, tuple[int, int]]:
    """Calls and successes of a cluster of tasks."""
    found: dict[str, tuple[int, int]] = {}
    for episode in (one for episodes in evaluations for one in episodes):
        calls, successes = found.get(episode.cluster, (0, 0))
        found[episode.cluster] = calls + episode.usage.tool_calls, successes + bool(episode.success)
    return found


def difference(before: Sequence[list[Episode]], after: Sequence[list[Episode]]) -> Difference:
    """Paired by task: a task's value is its share of successes over the seeds; clusters as the tasks say."""
    first, second = by_task(before), by_task(after)
    clusters = {one.task_id: one.cluster for episodes in before for one in episodes}
    common = sorted(first.keys() & second.keys())
    return paired_difference(
        [first[task] for task in common], [second[task] for task in common], [clusters[task] for task in common]
    )


def by_task(evaluations: Sequence[list[Episode]]) -> dict[str, float]:
    """Share of successes by task."""
    found: dict[str, list[float]] = {}
    for episode in (one for episodes in evaluations for one in episodes):
        found.setdefault(episode.task_id, []).append(float(episode.success))
    return {task: fmean(values) for task, values in found.items()}


def training(folder: Path) -> dict[str, dict[str, float]]:
    """Steps and seconds of the arms that are there."""
    stages = {"GRPO": ["grpo/grpo"], "GRPO with a cost": ["cost/grpo"], "control": ["control/own", "control/control"]}
    found = {}
    for arm, names in stages.items():
        if (folder / ARMS[arm]).exists():
            manifests = [json.loads((folder / name / "manifest.json").read_text()) for name in names]
            found[arm] = {
                "steps": manifests[-1]["result"]["steps"],
                "seconds": sum(one["result"].get("training_seconds", one["seconds"]) for one in manifests),
            }
    return found


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    table = Table("seed", "arm", "pass@1", "calls per success", "calls of a success")
    rows = [("", {"before": result["before"]}), *result["seeds"].items(), ("all", result["pooled"])]
    for seed, found in rows:
        for arm, one in found.items():
            numbers = (one["pass1"], one["calls_per_success"], one["calls_of_a_success"])
            table.add_row(str(seed), arm, *(f"{number:.3f}" for number in numbers))
    console = Console()
    console.print(table)
    for name, one in result["differences"].items():
        value = one["estimate"]
        interval = f"[{value['low']:+.3f}, {value['high']:+.3f}]"
        console.print(
            f"{name}: {value['value']:+.3f} {interval} (target: {TARGETS.get(name, 'none')})", highlight=False
        )
    for name, one in result["ratios"].items():
        interval = f"[{one['low']:.3f}, {one['high']:.3f}]"
        console.print(f"{name}: {one['value']:.3f} {interval} (target: {TARGETS[name]})", highlight=False)


if __name__ == "__main__":
    main()
