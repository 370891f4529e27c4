"""Rollouts on a local Ray cluster: one worker against two, and how long the trainer waits, a step ahead and not.

Throughput: 64 episodes of 4 calls whose tools take 200 ms each, on a tiny random model, so that the tools and not the
processor are the bottleneck; both fleets are started first and play in turn. Idle: a grpo stage on two workers whose
episodes take log-normal times (median 0.4 s, one in twenty beyond 2 s), synchronous and one step ahead, in turn.

python benchmarks/cluster.py --out cluster.json       # about 5 minutes
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from quintain import Episode, Task, Verdict, World
from quintain.cluster.fleet import Fleet
from quintain.cluster.placement import Placement
from quintain.harness.journal import Journal
from quintain.pipeline.run import run_recipe
from quintain.pipeline.stages import STAGES
from quintain.recipe import recipe_from_table

TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(Path(__file__).parent), str(TESTS), str(TESTS / "cluster")]

EPISODES, CALLS, SECONDS, PLACES = 64, 4, 0.2, 8
MEDIAN, SPREAD = 0.4, 1.0
"""Seconds, and the standard deviation of their logarithm: one in twenty is longer than 5.2 times the median."""

RECIPE = """
name = "idle"
concurrency = 64

[model]
base = "{model}"

[cluster]
workers = 2
episodes_per_worker = 32

[world]
world = "cluster:LongTail"

[budget]
turns = 1
tokens = 16

[pools.train]
split = "train"
count = 64

[[stages]]
kind = "grpo"
name = "grpo"
pool = "train"
max_tokens = 16

[stages.train]
learning_rate = 1e-5
groups = 8
group_size = 8
steps = {steps}
kl = 0.0
refill = 0
ahead = {ahead}
guard = {{ off = ["no_kept_group", "zero_variance"] }}
"""


class LongTail(World):
    """Its verdict takes its time; success is a coin, so that groups vary."""

    name = "long-tail"

    @classmethod
    def generate(cls, split: str, count: int, seed: int, *_: Any, **__: Any) -> list[Task]:
        return [Task(f"{split}-{number}", "long-tail", f"Wait {number}.") for number in range(count)]

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        await asyncio.sleep(self.random.lognormvariate(math.log(MEDIAN), SPREAD))
        return Verdict(success=bool(episode.seed % 2))


@dataclass(frozen=True)
class Idle:
    """Shares of the time from the second step on, and the age of the oldest token."""

    trainer: float
    engines: float
    staleness: int


async def throughput(model: Path, folder: Path, rounds: int) -> dict[int, list[float]]:
    """Episodes a second with one worker and with two, in turn."""
    from counting import MakeKit, counting_interface

    found: dict[int, list[float]] = {1: [], 2: []}
    fleets = {
        workers: Fleet(MakeKit(model), Placement(workers, cpus=0.5, episodes=PLACES), counting_interface())
        for workers in found
    }
    for workers, fleet in fleets.items():
        while len(fleet.pids) < workers:
            await play(fleet, folder / f"warm-{workers}-{time.monotonic_ns()}", 1)
    for number in range(rounds):
        for workers, fleet in fleets.items():
            found[workers].append(EPISODES / await play(fleet, folder / f"{number}-{workers}", EPISODES))
    for fleet in fleets.values():
        fleet.close()
    return found


async def play(fleet: Fleet, folder: Path, count: int) -> float:
    """Seconds that so many episodes take."""
    from counting import Counting

    journal = Journal(folder)
    began = time.monotonic()
    async with fleet.session(journal, 0) as rollout:
        await rollout([Task(f"train-{n}", Counting.name, f"Count to {CALLS}.", {"to": CALLS}) for n in range(count)])
        seconds = time.monotonic() - began
    journal.close()
    return seconds


def idle(folder: Path, model: Path, steps: int, ahead: int) -> Idle:
    """One run of the recipe, read from its metrics."""
    table = tomllib.loads(RECIPE.format(model=model, steps=steps, ahead=ahead))
    run_recipe(recipe_from_table(table, "cluster"), "", Path(__file__).parent, folder, STAGES)
    rows = [json.loads(line) for line in (folder / "grpo" / "metrics.jsonl").read_text().splitlines()][1:]
    waited, trained = (sum(row[f"{name}_seconds"] for row in rows) for name in ("rollout", "training"))
    engines = sum(row["engine_idle"] for row in rows) / len(rows)
    return Idle(waited / (waited + trained), engines, max(row.get("staleness", 0) for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=512, help="width of the model: more makes training longer")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    if find_spec("ray") is None:
        print("cluster.py: nothing is measured without Ray: pip install 'quintain[cluster]'")
        return
    from tiny import save_tiny

    os.environ["COUNTING_SECONDS"] = str(SECONDS)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # what workers import
    found: dict[str, list[Idle]] = {"synchronous": [], "one step ahead": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = asyncio.run(throughput(save_tiny(folder / "tiny"), folder / "throughput", options.rounds))
        model = save_tiny(folder / "wide", hidden=options.hidden, layers=4)
        for number in range(options.rounds):
            for ahead, runs in enumerate(found.values()):
                runs.append(idle(folder / f"idle-{number}-{ahead}", model, options.steps, ahead))
    ratio = median(rates[2]) / median(rates[1])
    result = {
        "cores": os.cpu_count(),
        "episodes": EPISODES,
        "calls": CALLS,
        "tool_seconds": SECONDS,
        "episodes_per_worker": PLACES,
        "episodes_per_second": rates,
        "two_workers_over_one": ratio,
        "trainer_idle": {name: [one.trainer for one in runs] for name, runs in found.items()},
        "engine_idle": {name: [one.engines for one in runs] for name, runs in found.items()},
        "staleness": {name: max(one.staleness for one in runs) for name, runs in found.items()},
    }
    table = Table("", "median of " + str(options.rounds))
    table.add_row("episodes / s, 1 worker", f"{median(rates[1]):.2f}")
    table.add_row("episodes / s, 2 workers", f"{median(rates[2]):.2f} ({ratio:.2f}x)")
    for name, runs in found.items():
        table.add_row(f"trainer idle, {name}", f"{median(one.trainer for one in runs):.0%}")
    Console().print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
