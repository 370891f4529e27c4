"""The quickstart against its targets: pass@1 before and after on unseen entities, and minutes for all of it.

python benchmarks/quickstart.py --out results/quickstart.json            # runs it, about 10 minutes
python benchmarks/quickstart.py --run runs/quickstart --out result.json  # reads a run that is done
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

TARGETS = {"base": ("at most", 0.05), "practised": ("at least", 0.80), "minutes": ("at most", 10.0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=None, help="a finished quickstart run (default: run it now)")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    if options.run is not None:
        result = read(options.run)
    else:
        from quintain.commands.commands import quickstart

        with tempfile.TemporaryDirectory() as scratch:
            quickstart(Path(scratch) / "run", None)
            result = read(Path(scratch) / "run")
    show(result)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


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
        "training": {
            "steps": len(stages["sft"]["metrics"]),
            "loss_tokens": sum(row["loss_weight"] for row in stages["sft"]["metrics"]),
        },
    }


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    print(f"{'':<18}{'reached':>9}  {'95 % interval':<18}{'target':<16}")
    for name, one in result["pass1"].items():
        interval = f"[{one['low']:.3f}, {one['high']:.3f}]"
        bound = " ".join(map(str, TARGETS.get(name, ("none", ""))))
        print(f"{name:<18}{one['value']:>9.3f}  {interval:<18}{bound:<16}")
    print(f"{'minutes':<18}{result['minutes']:>9.2f}  {'':<18}{' '.join(map(str, TARGETS['minutes'])):<16}")


if __name__ == "__main__":
    main()
