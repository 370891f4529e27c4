"""The quickstart against its targets: pass@1 after every stage on unseen entities, and minutes for all of it.

python benchmarks/quickstart.py --out results/quickstart.json            # runs it, at most 20 minutes
python benchmarks/quickstart.py --run runs/quickstart --out result.json  # reads a run that is done
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.finished_run import main

from quintain.commands.commands import quickstart

TARGETS = {"base": ("at most", 0.05), "practised": ("at least", 0.80), "minutes": ("at most", 20.0)}


def read(run: Path) -> dict[str, Any]:
    """What a run's report says of its stages."""
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    stages = {stage["name"]: stage for stage in report["stages"]}
    return {
        "machine": report["machine"],
        "versions": report["versions"],
        "pass1": {
            name: {**stage["evaluation"]["overall"]["pass1"], "cost": stage["evaluation"]["cost"]}
            for name, stage in stages.items()
            if stage["evaluation"]
        },
        "seconds": {name: round(stage["seconds"], 1) for name, stage in stages.items()},
        "minutes": round(sum(stage["seconds"] for stage in stages.values()) / 60, 2),
        "training": {name: _training(stages[name]["metrics"]) for name in ("cpt1", "cpt2", "sft")},
    }


def _training(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Steps of a stage, the tokens its loss was taken of, and that loss at both ends."""
    return {
        "steps": len(rows),
        "loss_tokens": sum(row["loss_weight"] for row in rows),
        "first_loss": rows[0]["loss"],
        "last_loss": rows[-1]["loss"],
    }


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    print(f"{'':<18}{'reached':>9}  {'95 % interval':<18}{'target':<16}")
    for name, one in result["pass1"].items():
        interval = f"[{one['low']:.3f}, {one['high']:.3f}]"
        bound = " ".join(map(str, TARGETS.get(name, ("none", ""))))
        print(f"{name:<18}{one['value']:>9.3f}  {interval:<18}{bound:<16}")
    for name, one in result["training"].items():
        losses = f"loss {one['first_loss']:.3f} -> {one['last_loss']:.3f}"
        print(f"{name:<18}{one['steps']} steps, {one['loss_tokens']:,.0f} tokens with loss, {losses}")
    print(f"{'minutes':<18}{result['minutes']:>9.2f}  {'':<18}{' '.join(map(str, TARGETS['minutes'])):<16}")


if __name__ == "__main__":
    main(__doc__, lambda folder: quickstart(folder, None), read, show)
