"""How far the planner's simulation is from real runs: the same GRPO stage simulated and run, with slow verdicts.

    python benchmarks/planner.py --out benchmarks/results/planner.json       # 4 to 5 minutes

Two short runs without latencies, one with all episodes at once and one with few, calibrate the simulation: seconds of
an optimiser step, and of a decoding step as a + b x sequences. It then forecasts runs whose episodes wait for
log-normal times (`support/long_tail.py`), at two concurrencies, with and without playing one step ahead; each is run
for real and its error printed.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from rich.console import Console
from rich.table import Table
from support.long_tail import EPISODES, MEDIAN, SPREAD, TOKENS, Fast, Run, make_model, play
from support.results import write_result

from quintain.commands.simulation import Latency, Shop, simulate

MANY, FEW = EPISODES, EPISODES // 4
LATENCY = Latency(MEDIAN, MEDIAN * math.exp(2.3263 * SPREAD))
SIMULATED = 400
"""Steps, so that the simulation's own noise is small."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=512, help="width of the model: more makes training longer")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_model(folder / "model", options.hidden)
        shop = calibrated(folder, model, max(2, options.steps // 2))
        rows = [
            compared(folder, model, options.steps, replace(shop, ahead=ahead, concurrency=concurrency))
            for concurrency in (MANY, FEW)
            for ahead in (0, 1)
        ]
    errors = [abs(row["error"]) for row in rows]
    result = {
        "cores": os.cpu_count(),
        "hidden": options.hidden,
        "steps": options.steps,
        "episodes_per_step": EPISODES,
        "latency": asdict(LATENCY),
        "calibration": {
            "training_seconds": shop.training,
            "decoding_seconds": {count: shop.decoding(count) for count in (1, FEW, MANY)},
        },
        "runs": rows,
        "error": {"median": median(errors), "largest": max(errors)},
    }
    table = Table("", "step, simulated", "step, real", "error", "trainer idle, simulated", "real")
    for row in rows:
        both = row["simulated"], row["real"]
        table.add_row(
            f"ahead {row['ahead']}, concurrency {row['concurrency']}",
            *(f"{one['step_seconds']:.2f} s" for one in both),
            f"{row['error']:+.0%}",
            *(f"{one['trainer_idle']:.0%}" for one in both),
        )
    Console().print(table)
    write_result(options.out, result)


def calibrated(folder: Path, model: Path, steps: int) -> Shop:
    """The stage as the simulation takes it, from two runs without latencies.

    All at once take `tokens x (a + 64 b)` seconds to play, 16 at a time four times `tokens x (a + 16 b)`; what is read
    before is part of b.
    """
    many, few = (
        play(folder / f"fast-{count}", model, steps, 0, world=Fast, concurrency=count) for count in (MANY, FEW)
    )
    wide, narrow = played(many) / TOKENS, played(few) / (TOKENS * EPISODES / FEW)
    per_sequence = max(0.0, (wide - narrow) / (MANY - FEW))
    fixed = wide - MANY * per_sequence
    return Shop(
        engines=1,
        shared=True,
        concurrency=MANY,
        episodes=EPISODES,
        turns=1,
        tokens=TOKENS,
        prefill=0.0,
        decoding=lambda sequences: fixed + sequences * per_sequence,
        latency=LATENCY,
        training=mean([many.training_seconds, few.training_seconds]),
        ahead=0,
    )


def played(run: Run) -> float:
    """Seconds of a step in which the trainer waited."""
    return run.step_seconds - run.training_seconds


def compared(folder: Path, model: Path, steps: int, shop: Shop) -> dict[str, Any]:
    """One setting, simulated and run."""
    real = play(folder / f"{shop.ahead}-{shop.concurrency}", model, steps, shop.ahead, concurrency=shop.concurrency)
    simulated = simulate(shop, steps=SIMULATED)
    return {
        "ahead": shop.ahead,
        "concurrency": shop.concurrency,
        "simulated": asdict(simulated),
        "real": asdict(real),
        "error": simulated.step_seconds / real.step_seconds - 1,
    }


if __name__ == "__main__":
    main()
