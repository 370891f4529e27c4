"""BFCL v4's 1,240 single-turn tasks before and after training: one greedy turn each, one model after the other.

    make quickstart && python benchmarks/bfcl.py             # 20 to 50 minutes on 2 cores for SmolLM2-135M
    python benchmarks/bfcl.py --trained RUN --stage sft

Measures the base model of a finished run and one of the models it trained, through `recipes/bfcl.toml`; evaluations are
kept below --runs and go on where they stopped. Before that, everything the run holds is scanned for the tasks; a task
that training has seen is in the table and left out of its last row.

The estimate: the prompts have 218,576 tokens, which take 6 minutes at 600 tokens a second. A model that stops after its
calls writes about 45 tokens a task, one that never stops 288: 3 to 17 minutes at the 343 tokens a second that
rollout_engine.json has. So 10 to 25 minutes a model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from support.results import write_result

from quintain.commands.commands import evaluate
from quintain.commands.pools import audit_files
from quintain.evaluation.summary import compare
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.pipeline.comparison import read_evaluation
from quintain.pipeline.lineage import trained_stage

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "bfcl.json"
TRAINED = Path("runs/quickstart")
RECIPE = HERE.parent / "recipes" / "bfcl.toml"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trained", type=Path, default=TRAINED, metavar="RUN", help="a finished run")
    parser.add_argument("--stage", default=None, help="training stage whose model is measured (default: the last)")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="world, dialect, budget and tasks")
    parser.add_argument("--runs", type=Path, default=Path("runs/bfcl"), help="where evaluations are kept")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON file to write")
    options = parser.parse_args(arguments)
    result = measure(options.trained, options.stage, options.recipe, options.runs)
    show(result)
    write_result(options.out, result)


def measure(run: Path, wanted: str | None, recipe: Path, runs: Path) -> dict[str, Any]:
    """Scans the run, evaluates both models, and compares them by category."""
    trained, _, stage = trained_stage(run, wanted)
    scan = audit_files(recipe, [run])
    models = {"before": trained.model.base, "after": str((run / stage / "model").absolute())}
    minutes, episodes = {}, {}
    for name, model in models.items():
        folder = runs / f"{name}-{stage}" if name == "after" else runs / name
        done = evaluate(recipe, model, "eval", 1, folder)
        minutes[name] = round(done["stages"]["eval"]["seconds"] / 60, 1)
        episodes[name] = read_evaluation(folder / "eval").episodes
    return {
        "bfcl-eval": metadata.version("bfcl-eval"),
        "before": models["before"],
        "after": f"{trained.name}/{stage}",
        "minutes": minutes,
        "scan": {"line": scan["lines"][-1], "tasks": scan["tasks"]},
        "rows": rows(episodes["before"], episodes["after"], set(scan["tasks"])),
    }


def rows(before: Sequence[Episode], after: Sequence[Episode], seen: set[str]) -> dict[str, Any]:
    """Both pass@1 and their paired difference by category, for all tasks, and for those training has not seen."""
    categories = dict.fromkeys(one.template for one in sorted(before, key=lambda one: one.template))
    parts = {name: {one.task_id for one in before if one.template == name} for name in categories}
    everything = {one.task_id for one in before}
    parts |= {"all": everything, "all that training has not seen": everything - seen}
    return {
        name: asdict(
            compare([one for one in before if one.task_id in ids], [one for one in after if one.task_id in ids])
        )
        for name, ids in parts.items()
        if ids
    }


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    print(f"before: {result['before']}; after: {result['after']}; minutes: {result['minutes']}")
    print(f"scan of everything the run holds: {result['scan']['line']}")
    print(f"{'':<32}{'tasks':>6}  {'before':<22}{'after':<22}{'difference':<26}{'p':>7}")
    for name, one in result["rows"].items():
        difference = one["difference"]
        cells = [cell(one["before"]), cell(one["after"]), cell(difference["estimate"], "+")]
        print(f"{name:<32}{one['tasks']:>6}  {cells[0]:<22}{cells[1]:<22}{cells[2]:<26}{difference['p_value']:>7.4f}")


def cell(one: dict[str, Any], sign: str = "") -> str:
    return f"{one['value']:{sign}.3f} [{one['low']:{sign}.3f}, {one['high']:{sign}.3f}]"


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
