"""How far the planner's simulation is from real runs: the same GRPO stage simulated and run, with slow tools.

    python benchmarks/planner.py --out benchmarks/results/planner.json       # about 6 minutes

Two short runs without latencies, one with all episodes at once and one with few, calibrate the simulation: seconds of
an optimiser step, and of a decoding step as a + b x sequences. It then forecasts runs whose tools take a log-normal
time, at two concurrencies, with and without playing one step ahead; each is run for real and its error printed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

from ahead import MEDIAN, SPREAD, TURNS, Run, Slow, make_model, play
from rich.console import Console
from rich.table import Table

from quintain.commands.simulation import Latency, Shop, simulate

EPISODES, TOKENS = 64, 16
MANY, FEW = 64, 16
LATENCY = Latency(MEDIAN, MEDIAN * math.exp(2.3263 * SPREAD))


class Fast(Slow):
    """A counterpart that answers at once."""

    name = "fast"
    median = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=512, help="width of the model: more makes training longer")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(Path(folder) / "model", options.hidden)
        shop = calibrated(Path(folder), model, options.steps)
        rows = [
            compared(Path(folder), model, options.steps, options.rounds, ahead, concurrency, shop)
            for concurrency in (MANY, FEW)
            for ahead in (0, 1)
        ]
    errors = [abs(row["error"]) for row in rows]
    result = {
        "cores": os.cpu_count(),
        "hidden": options.hidden,
        "steps": options.steps,
        "rounds": options.rounds,
        "episodes_per_step": EPISODES,
        "latency": {**asdict(LATENCY), "turns": TURNS},
        "calibration": {
            "training_seconds": shop.training,
            "decoding_seconds": {count: shop.decoding(count) for count in (1, FEW, MANY)},
        },
        "runs": rows,
        "error": {"median": median(errors), "largest": max(errors)},
    }
    table = Table("", "step, simulated", "step, real", "error", "trainer idle, simulated", "real")
    for row in rows:
        idle = row["simulated"]["trainer_idle"], row["real"]["idle"]
        name = f"ahead {row['ahead']}, concurrency {row['concurrency']}"
        seconds = row["simulated"]["step_seconds"], row["real"]["step_seconds"]
        table.add_row(
            name, *(f"{one:.2f} s" for one in seconds), f"{row['error']:+.0%}", *(f"{one:.0%}" for one in idle)
        )
    Console().print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


def calibrated(folder: Path, model: Path, steps: int) -> Shop:
    """The stage as the simulation takes it, from two runs without latencies.

    All at once take `turns x tokens x (a + 64 b)` seconds to play, 16 at a time four times `(a + 16 b)`; what is read
    before each turn is part of b.
    """
    many = play(folder / "many", model, steps, 0, world="planner:Fast", concurrency=MANY)
    few = play(folder / "few", model, steps, 0, world="planner:Fast", concurrency=FEW)
    each = TURNS * TOKENS
    wide = played(many) / each
    narrow = played(few) / (each * EPISODES / FEW)
    per_sequence = max(0.0, (wide - narrow) / (MANY - FEW))
    fixed = wide - MANY * per_sequence
    return Shop(
        engines=1,
        shared=True,
        concurrency=MANY,
        episodes=EPISODES,
        turns=TURNS,
        tokens=TOKENS,
        prefill=0.0,
        decoding=lambda sequences: fixed + sequences * per_sequence,
        latency=LATENCY,
        training=median([many.training_seconds, few.training_seconds]),
        ahead=0,
    )


def played(run: Run) -> float:
    """Seconds of a step in which the trainer waited."""
    return run.step_seconds - run.training_seconds


def compared(
    folder: Path, model: Path, steps: int, rounds: int, ahead: int, concurrency: int, shop: Shop
) -> dict[str, Any]:
    """One setting, simulated and run."""
    name = f"{ahead}-{concurrency}"
    runs = [
        play(folder / f"{name}-{number}", model, steps, ahead, world="ahead:Slow", concurrency=concurrency)
        for number in range(rounds)
    ]
    real = sorted(runs, key=lambda one: one.step_seconds)[rounds // 2]
    simulated = simulate(replace(shop, ahead=ahead, concurrency=concurrency), steps=40)
    return {
        "ahead": ahead,
        "concurrency": concurrency,
        "simulated": asdict(simulated),
        "real": asdict(real),
        "error": simulated.step_seconds / real.step_seconds - 1,
    }


if __name__ == "__main__":
    main()
