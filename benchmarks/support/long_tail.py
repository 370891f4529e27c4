"""A grpo stage whose episodes take log-normal times, and what its metrics say: for benchmarks of waiting.

The time passes in the verdict, which every episode has, whatever a random model writes.
"""

from __future__ import annotations

import asyncio
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from quintain import Episode, Task, Verdict, World
from quintain.pipeline.run import run_recipe
from quintain.pipeline.stages import STAGES
from quintain.recipe import recipe_from_table
from quintain.training.rows import METRICS, read_rows

BENCHMARKS = Path(__file__).parents[1]
GROUPS, GROUP_SIZE, TOKENS = 8, 8, 16
EPISODES = GROUPS * GROUP_SIZE
MEDIAN, SPREAD = 0.2, 1.0
"""Seconds, and the standard deviation of their logarithm: one in twenty takes more than 5.2 times the median."""

RECIPE = f"""
name = "long-tail"

[budget]
turns = 1
tokens = {TOKENS}

[pools.train]
split = "train"
count = 64

[[stages]]
kind = "grpo"
name = "grpo"
pool = "train"
max_tokens = {TOKENS}

[stages.train]
learning_rate = 1e-5
groups = {GROUPS}
group_size = {GROUP_SIZE}
kl = 0.0
refill = 0
guard = {{ off = ["no_kept_group", "zero_variance"] }}
"""


class LongTail(World):
    """Its verdict takes its time; success is a coin, so that groups vary."""

    name = "long-tail"
    median: ClassVar[float] = MEDIAN

    @classmethod
    def generate(cls, split: str, count: int, seed: int, *_: Any, **__: Any) -> list[Task]:
        return [Task(f"{split}-{number}", cls.name, f"Wait {number}.") for number in range(count)]

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        await asyncio.sleep(self.median * self.random.lognormvariate(0.0, SPREAD))
        return Verdict(success=bool(episode.seed % 2))


class Fast(LongTail):
    """The same without the time."""

    name = "fast"
    median = 0.0


@dataclass(frozen=True)
class Run:
    """One run, from its second step on: the first has nothing to overlap with.

    Attributes:
        trainer_idle: share of the time in which the trainer waited for episodes.
        engine_idle: share of the time in which the engines had nothing to compute, mean of the steps.
        rate: episodes a second.
        step_seconds: mean time of a step.
        training_seconds: of it, in the trainer.
        staleness: largest age of a token, in updates.
    """

    trainer_idle: float
    engine_idle: float
    rate: float
    step_seconds: float
    training_seconds: float
    staleness: int


def play(
    folder: Path,
    model: Path,
    steps: int,
    ahead: int,
    *,
    world: type[LongTail] = LongTail,
    concurrency: int = EPISODES,
    cluster: dict[str, int] | None = None,
) -> Run:
    """Runs the recipe in a new folder.

    Args:
        folder: of the run.
        model: a folder.
        steps: optimiser steps, at least 2.
        ahead: steps played before the trainer asks for them.
        world: whose time passes.
        concurrency: episodes under way at once.
        cluster: table of a Ray cluster; None: one process.
    """
    table = tomllib.loads(RECIPE)
    table |= {"concurrency": concurrency, "model": {"base": str(model)}}
    table["world"] = {"world": f"support.long_tail:{world.__name__}"}
    table |= {"cluster": cluster} if cluster else {}
    table["stages"][0]["train"] |= {"steps": steps, "ahead": ahead}
    run_recipe(recipe_from_table(table, "long-tail"), "", BENCHMARKS, folder, STAGES)
    rows = read_rows(folder / "grpo" / METRICS)[1:]
    trained, waited = (sum(row[f"{name}_seconds"] for row in rows) for name in ("training", "rollout"))
    return Run(
        trainer_idle=waited / (waited + trained),
        engine_idle=sum(row["engine_idle"] for row in rows) / len(rows),
        rate=sum(row["episodes"] for row in rows) / (waited + trained),
        step_seconds=(waited + trained) / len(rows),
        training_seconds=trained / len(rows),
        staleness=max(row.get("staleness", 0) for row in rows),
    )


def make_model(folder: Path, hidden: int) -> Path:
    """A random model with the tests' tokenizer."""
    sys.path.append(str(BENCHMARKS.parent / "tests"))
    from tiny import save_tiny

    return Path(save_tiny(folder, hidden=hidden, layers=4))
