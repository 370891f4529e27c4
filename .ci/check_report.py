"""Fails unless a shortened quickstart ran the whole line: pre-trained, fine-tuned, practised, measured after each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean


def main(path: Path) -> None:
    """Checks one `report.json`."""
    stages = {stage["name"]: stage for stage in json.loads(path.read_text(encoding="utf-8"))["stages"]}
    for name in ("base", "pretrained", "tuned", "practised"):
        overall = stages[name]["evaluation"]["overall"]
        pass1, counts = overall["pass1"], overall["counts"]
        print(f"{name:<10} pass@1 {pass1['value']:.3f} [{pass1['low']:.3f}, {pass1['high']:.3f}]")
        assert counts["scored"] == counts["planned"] > 0, counts
    for name in ("cpt1", "cpt2", "sft"):
        losses = [row["loss"] for row in stages[name]["metrics"]]
        print(f"{name:<10} loss {losses[0]:.3f} -> {losses[-1]:.3f} in {len(losses)} steps")
    assert stages["grpo"]["metrics"]
    losses = [row["loss"] for row in stages["cpt1"]["metrics"]]
    if len(losses) >= 4:  # on a slow machine there are fewer, and single batches differ by themselves
        first, last = ends(losses)
        assert last < first, (first, last)
    first, last = ends([row["loss"] for row in stages["sft"]["metrics"]])
    assert last < first / 2, (first, last)
    assert path.with_name("report.html").stat().st_size > 100_000


def ends(losses: list[float]) -> tuple[float, float]:
    """Mean loss of the first and of the last fifth of the steps: one step is one batch's luck."""
    fifth = max(1, len(losses) // 5)
    return mean(losses[:fifth]), mean(losses[-fifth:])


main(Path(sys.argv[1]))
