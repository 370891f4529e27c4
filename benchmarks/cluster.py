"""Rollouts on a local Ray cluster: one worker against two, and how long the trainer waits, a step ahead and not.

Throughput: 64 episodes of 4 calls whose tools take 200 ms each, on a tiny random model, so that the tools and not the
processor are the bottleneck; both fleets are started first and play in turn. Idle: a grpo stage on two workers whose
episodes take log-normal times (`support/long_tail.py`), synchronous and one step ahead, in turn.

python benchmarks/cluster.py --out cluster.json       # about 8 minutes
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table
from support.long_tail import EPISODES, Run, make_model, play
from support.results import write_result

from quintain import Task
from quintain.cluster.fleet import Fleet
from quintain.cluster.placement import Placement
from quintain.harness.journal import Journal

TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(Path(__file__).parent), str(TESTS), str(TESTS / "cluster")]

CALLS, SECONDS, PLACES = 4, 0.2, 8
WORKERS = {"workers": 2, "episodes_per_worker": EPISODES // 2}


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
            await seconds_of(fleet, folder / f"warm-{workers}-{time.monotonic_ns()}", 1)
    for number in range(rounds):
        for workers, fleet in fleets.items():
            found[workers].append(EPISODES / await seconds_of(fleet, folder / f"{number}-{workers}", EPISODES))
    for fleet in fleets.values():
        fleet.close()
    return found


async def seconds_of(fleet: Fleet, folder: Path, count: int) -> float:
    """Seconds that so many episodes take."""
    from counting import Counting

    journal = Journal(folder)
    began = time.monotonic()
    async with fleet.session(journal, 0) as rollout:
        await rollout([Task(f"train-{n}", Counting.name, f"Count to {CALLS}.", {"to": CALLS}) for n in range(count)])
        seconds = time.monotonic() - began
    journal.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=1024, help="width of the model: more makes training longer")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    if find_spec("ray") is None:
        print("cluster.py: nothing is measured without Ray: pip install 'quintain[cluster]'")
        return
    from tiny import save_tiny

    os.environ["COUNTING_SECONDS"] = str(SECONDS)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # what workers import
    found: dict[str, list[Run]] = {"synchronous": [], "one step ahead": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = asyncio.run(throughput(save_tiny(folder / "tiny"), folder / "throughput", options.rounds))
        model = make_model(folder / "wide", options.hidden)
        for number in range(options.rounds):
            for ahead, runs in enumerate(found.values()):
                runs.append(play(folder / f"idle-{number}-{ahead}", model, options.steps, ahead, cluster=WORKERS))
    ratio = median(rates[2]) / median(rates[1])
    result = {
        "cores": os.cpu_count(),
        "hidden": options.hidden,
        "steps": options.steps,
        "episodes": EPISODES,
        "calls": CALLS,
        "tool_seconds": SECONDS,
        "episodes_per_worker": PLACES,
        "episodes_per_second": rates,
        "two_workers_over_one": ratio,
        "trainer_idle": {name: [one.trainer_idle for one in runs] for name, runs in found.items()},
        "engine_idle": {name: [one.engine_idle for one in runs] for name, runs in found.items()},
        "staleness": {name: max(one.staleness for one in runs) for name, runs in found.items()},
    }
    table = Table("", "median of " + str(options.rounds))
    table.add_row("episodes / s, 1 worker", f"{median(rates[1]):.2f}")
    table.add_row("episodes / s, 2 workers", f"{median(rates[2]):.2f} ({ratio:.2f}x)")
    for name, runs in found.items():
        table.add_row(f"trainer idle, {name}", f"{median(one.trainer_idle for one in runs):.0%}")
    Console().print(table)
    write_result(options.out, result)


if __name__ == "__main__":
    main()
