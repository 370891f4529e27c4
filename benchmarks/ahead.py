"""How long the trainer waits for episodes whose tools are slow, playing one step ahead and not, in turn.

A random model of the llama family talks with a counterpart that answers slowly: log-normal latencies, median 0.2 s, one
in twenty beyond 1 s. The model is wide enough that training a step takes about as long as playing it.

python benchmarks/ahead.py --out ahead.json       # 4 to 6 minutes
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from quintain import Episode, Task, Verdict, World
from quintain.interface.messages import Message, message
from quintain.interface.view import View
from quintain.pipeline.run import run_recipe
from quintain.pipeline.stages import STAGES
from quintain.recipe import recipe_from_table

TURNS = 4
MEDIAN, SPREAD = 0.2, 1.0
"""Seconds, and the standard deviation of their logarithm: one turn in twenty takes more than 5.2 times the median."""

RECIPE = """
name = "ahead"
concurrency = {concurrency}

[model]
base = "{model}"

[world]
world = "{world}"

[budget]
turns = {turns}
tokens = 400

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


class Slow(World):
    """A counterpart that takes its time after every turn; success is a coin, so that groups vary."""

    name = "slow"
    median = MEDIAN

    @classmethod
    def generate(cls, split: str, count: int, seed: int, *_: Any, **__: Any) -> list[Task]:
        return [Task(f"{split}-{number}", cls.name, f"Wait {number}.") for number in range(count)]

    def reset(self, task: Task) -> None:
        self.said = 0

    async def user(self, view: View) -> Message | None:
        self.said += 1
        await asyncio.sleep(self.median * self.random.lognormvariate(0.0, SPREAD))
        return message("user", "Go on.") if self.said < TURNS else None

    def verify(self, task: Task, episode: Episode) -> Verdict:
        return Verdict(success=bool(episode.seed % 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=512, help="width of the model: more makes training longer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    found: dict[str, list[Run]] = {"synchronous": [], "one step ahead": []}
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(Path(folder) / "model", options.hidden)
        for number in range(options.rounds):
            for ahead, runs in enumerate(found.values()):
                runs.append(play(Path(folder) / f"{number}-{ahead}", model, options.steps, ahead))
    result = {
        "cores": os.cpu_count(),
        "steps": options.steps,
        "hidden": options.hidden,
        "episodes_per_step": 64,
        "latency": {"median_seconds": MEDIAN, "log_sd": SPREAD, "turns": TURNS},
        "runs": {name: [asdict(one) for one in runs] for name, runs in found.items()},
        "idle": {name: median(one.idle for one in runs) for name, runs in found.items()},
        "episodes_per_second": {name: median(one.rate for one in runs) for name, runs in found.items()},
    }
    table = Table(
        "", "trainer idle", "episodes / s", title=f"Tools of {MEDIAN} s (median), {options.rounds} rounds in turn"
    )
    for name in found:
        table.add_row(name, f"{result['idle'][name]:.0%}", f"{result['episodes_per_second'][name]:.1f}")
    Console().print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        idle: share of the time in which the trainer waited for episodes, from the second step on.
        rate: episodes a second, from the second step on.
        step_seconds: mean time of a step, from the second on.
        training_seconds: of it, in the trainer.
        staleness: largest age of a token, in updates.
    """

    idle: float
    rate: float
    step_seconds: float
    training_seconds: float
    staleness: int


def play(folder: Path, model: Path, steps: int, ahead: int, *, world: str = "ahead:Slow", concurrency: int = 64) -> Run:
    """One run of the recipe, read from its metrics."""
    text = RECIPE.format(model=model, steps=steps, ahead=ahead, turns=TURNS, world=world, concurrency=concurrency)
    run_recipe(recipe_from_table(tomllib.loads(text), "ahead"), "", Path(__file__).parent, folder, STAGES)
    rows = [json.loads(line) for line in (folder / "grpo" / "metrics.jsonl").read_text().splitlines()][1:]
    trained = sum(row["training_seconds"] for row in rows)
    total = sum(row["rollout_seconds"] for row in rows) + trained
    return Run(
        idle=1 - trained / total,
        rate=sum(row["episodes"] for row in rows) / total,
        step_seconds=total / len(rows),
        training_seconds=trained / len(rows),
        staleness=max(row["staleness"] for row in rows),
    )


def make_model(folder: Path, hidden: int) -> Path:
    """A random model with the tests' tokenizer."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from tiny import save_tiny

    return Path(save_tiny(folder, hidden=hidden, layers=4))


if __name__ == "__main__":
    main()
