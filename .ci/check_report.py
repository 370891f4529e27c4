"""Fails unless a shortened quickstart really measured, trained and measured again."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(path: Path) -> None:
    """Checks one `report.json`."""
    record = json.loads(path.read_text(encoding="utf-8"))
    stages = {stage["name"]: stage for stage in record["stages"]}
    base, tuned = (stages[name]["evaluation"]["overall"] for name in ("base", "tuned"))
    losses = [row["loss"] for row in stages["sft"]["metrics"]]
    print(f"base pass@1 {base['pass1']['value']:.3f}, tuned {tuned['pass1']['value']:.3f}, {len(losses)} steps")
    for overall in (base, tuned):
        assert overall["counts"]["scored"] == overall["counts"]["planned"] > 0, overall["counts"]
    assert losses[-1] < losses[0] / 2, losses
    assert path.with_name("report.html").stat().st_size > 100_000


main(Path(sys.argv[1]))
