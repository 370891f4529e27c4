"""How long the trainer waits for episodes that take long-tailed times, playing one step ahead and not, in turn.

Episodes wait for log-normal times, median 0.2 s, one in twenty beyond 1 s (`support/long_tail.py`). The model is
random, and wide enough that training a step takes about as long as waiting for its slowest episode: where the trainer
has little to do, playing ahead hides little.

python benchmarks/ahead.py --out ahead.json       # about 5 minutes
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table
from support.long_tail import EPISODES, MEDIAN, SPREAD, Run, make_model, play
from support.results import write_result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=1024, help="width of the model: more makes training longer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    found: dict[str, list[Run]] = {"synchronous": [], "one step ahead": []}
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(Path(folder) / "model", options.hidden)
        for number in range(options.rounds):
            for ahead, runs in enumerate(found.values()):
                runs.append(play(Path(folder) / f"{number}-{ahead}", model, options.steps, ahead))
    idle = {name: median(one.trainer_idle for one in runs) for name, runs in found.items()}
    rates = {name: median(one.rate for one in runs) for name, runs in found.items()}
    result = {
        "cores": os.cpu_count(),
        "steps": options.steps,
        "hidden": options.hidden,
        "episodes_per_step": EPISODES,
        "latency": {"median_seconds": MEDIAN, "log_sd": SPREAD},
        "runs": {name: [asdict(one) for one in runs] for name, runs in found.items()},
        "trainer_idle": idle,
        "episodes_per_second": rates,
    }
    table = Table("", "trainer idle", "episodes / s", title=f"Median of {options.rounds} rounds in turn")
    for name in found:
        table.add_row(name, f"{idle[name]:.0%}", f"{rates[name]:.1f}")
    Console().print(table)
    write_result(options.out, result)


if __name__ == "__main__":
    main()
