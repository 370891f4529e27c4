"""One small model for five families of tasks: pass@1 in each world before and after fine-tuning on all of them.

python benchmarks/families.py --out benchmarks/results/families.json   # runs recipes/families.toml: half an hour
python benchmarks/families.py --run runs/families --out result.json    # reads a run that is done
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from support.finished_run import main

from quintain.commands.commands import run

RECIPE = Path(__file__).parents[1] / "recipes" / "families.toml"


def read(run: Path) -> dict[str, Any]:
    """What a run's report says of each world, and of all."""
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    stages = {stage["name"]: stage for stage in report["stages"]}
    evaluated = {name: stage["evaluation"] for name, stage in stages.items() if stage["evaluation"]}
    return {
        "machine": report["machine"],
        "versions": report["versions"],
        "pass1": {
            name: {"all": found["overall"]["pass1"]} | {world: one["pass1"] for world, one in found["by_world"].items()}
            for name, found in evaluated.items()
        },
        "counts": {
            name: {world: one["counts"] for world, one in found["by_world"].items()}
            for name, found in evaluated.items()
        },
        "seconds": {name: round(stage["seconds"], 1) for name, stage in stages.items()},
        "steps": len(stages["sft"]["metrics"]),
        "loss_tokens": sum(row["loss_weight"] for row in stages["sft"]["metrics"]),
    }


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    title = f"pass@1 after {result['steps']} steps, {result['loss_tokens']:,.0f} tokens with loss"
    table = Table("world", *result["pass1"], title=title)
    for world in next(iter(result["pass1"].values())):
        table.add_row(world, *(_figure(found[world]) for found in result["pass1"].values()))
    Console().print(table)


def _figure(one: dict[str, Any]) -> str:
    return f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"


if __name__ == "__main__":
    main(__doc__, lambda folder: run(RECIPE, folder), read, show)
