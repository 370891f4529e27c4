"""GRPO of a tool-using agent here and in TRL's `GRPOTrainer`: trajectories per second, and peak memory of training.

    python benchmarks/grpo_vs_trl.py --peer-python TRL_VENV/bin/python --out grpo_vs_trl.json

The same model, tools, tasks, prompts (token for token), parser, verifier, group size and budget on both sides, in one
run, alternating, every measurement in a process of its own; medians over the rounds. A round is one whole GRPO step
on tasks that no other round uses: play the groups, judge, train. fp32, AdamW, one update per batch, no KL,
temperature 1 with nothing cut; a malformed turn ends the episode.

Not the same, because it is what is compared: TRL plays a batch turn by turn with `generate` and prefills all of it
again at each turn, and trains on every trajectory, padded; Quintain plays episodes as they come, computes shared
tokens once, leaves out groups without any spread, which have no gradient, and sets allocator and matrix products of
its process (quintain.machine; `--tune-peer` gives TRL the same). TRL runs as installed, but without gradient
checkpointing, which would slow it down (the memory part shows it with and without). A tool's error reads
`{'error': ...}` there and as a typed line here, and Quintain writes its journal.

`--model` takes a folder with a model that can use the desk's tools; any run of recipes/grpo-desk.toml leaves one in
RUN/sft/model. Without it the benchmark first runs that recipe up to its fine-tuning (about 4 minutes).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from support.results import write_result

from quintain.commands.commands import recipes_folder
from quintain.interface.messages import message
from quintain.interface.tasks import Task, save_tasks
from quintain.pipeline.workshop import Workshop
from quintain.recipe import GRPOStage, Recipe, load_recipe, recipe_from_table

Job = dict[str, Any]
Row = dict[str, Any]

PEER = Path(__file__).parent / "peers" / "trl_grpo.py"
INSTALL = "python -m venv TRL_VENV && TRL_VENV/bin/pip install torch 'trl>=1.16' -e '.[desk]'"
RECIPE = recipes_folder() / "grpo-desk.toml"
TARGETS = {"speed": 6.0, "stretch": 10.0}
COUNTS = ("prompt", "generated", "observation", "turns", "calls")


def quintain_speed(job: Job) -> Row:
    """One step of the GRPO stage on the job's tasks; the figures are those of its own metrics and journal."""
    from quintain.harness.journal import read_journal
    from quintain.pipeline.grpo import grpo

    home = Path(job["tasks"]).parent
    recipe = recipe_from_table(stage_table(job), "benchmark")
    with tempfile.TemporaryDirectory() as scratch:
        workshop = Workshop(recipe, home, Path(scratch))
        workshop.policy("base")  # loads the model, so that the clock starts with the stage
        processor = time.process_time()
        grpo(workshop, recipe.stages[0], Path(scratch))
        processor = time.process_time() - processor
        metrics = json.loads((Path(scratch) / "metrics.jsonl").read_text())
        played, _ = read_journal(Path(scratch) / "rollouts" / "step-000001")
    observations = [one for episode in played for turn in episode.turns for one in turn.observations if one.tool]
    prompts = [episode.spans[0].start for episode in played if episode.spans[0]]
    return {
        "seconds": metrics["seconds"],
        "rollout_seconds": metrics["rollout_seconds"],
        "training_seconds": metrics["training_seconds"],
        "processor_seconds": processor,
        "episodes": len(played),
        "prompt": sum(prompts),
        "generated": sum(episode.usage.tokens for episode in played),
        "observation": sum(episode.usage.context_tokens for episode in played) - sum(prompts),
        "turns": sum(len(episode.turns) for episode in played),
        "calls": len(observations),
        "failed": sum(bool(one.error) for one in observations),
        "groups": metrics["groups"],
        "varying": metrics["kept_groups"],
        "successes": sum(episode.success for episode in played),
        "version": metadata.version("quintain"),
    }


def stage_table(job: Job) -> dict[str, Any]:
    """A recipe of one GRPO stage of one step."""
    train = {
        "learning_rate": job["learning_rate"],
        "warmup": 0.0,
        "groups": len(job["prompts"]),
        "group_size": job["group_size"],
        "steps": 1,
        "kl": 0.0,
        "advantage": "standardised",
        "refill": 0,
        "microbatch_tokens": job["microbatch_tokens"],
    }
    stage = {"kind": "grpo", "name": "grpo", "pool": "tasks", "max_tokens": job["max_tokens"], "train": train}
    return {
        "name": "benchmark",
        "seed": job["seed"],
        "concurrency": len(job["prompts"]) * job["group_size"],
        "model": {"base": job["model"], "dialect": job["dialect"]},
        "world": {"world": job["world"]},
        "budget": {
            "turns": job["turns"],
            "tokens": job["turns"] * job["max_tokens"],
            "tool_calls": 10 * job["turns"],
            "format_errors": 1,
        },
        "pools": {"tasks": {"file": Path(job["tasks"]).name}},
        "stages": [stage],
    }


def quintain_memory(job: Job) -> Row:
    """Two optimiser steps on made-up trajectories: the second has the optimiser's state beside it."""

    from quintain.inference.models import load_model
    from quintain.interface.example import Example
    from quintain.machine import tune
    from quintain.training.grpo import GRPOObjective
    from quintain.training.grpo_config import GRPOConfig
    from quintain.training.loop import Trainer

    tune()
    model, _ = load_model(job["model"])
    config = GRPOConfig(learning_rate=job["learning_rate"], kl=0.0, microbatch_tokens=job["microbatch_tokens"])
    objective = GRPOObjective(config.clip_low, config.clip_high, config.ratio_cap, config.off_policy_limit, config.kl)
    trainer = Trainer(model, objective, config)
    draw = random.Random(0)

    def some(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(100, model.config.vocab_size) for _ in range(count))

    def trajectory(prompt: tuple[int, ...], index: int) -> Example:
        own = some(job["completion_tokens"])
        head = (0.0,) * len(prompt)
        return Example(
            prompt + own,
            weights=head + (1.0,) * len(own),
            advantages=(2.0 * (index % 2) - 1.0,) * (len(prompt) + len(own)),
            behaviour_logprobs=head + (-1.0,) * len(own),
        )

    before = resident("VmRSS")
    for _ in range(2):
        prompt = some(job["prompt_tokens"])
        metrics = trainer.step([trajectory(prompt, index) for index in range(job["sequences"])], 1.0)
    return {"loaded_gb": before, "peak_gb": resident("VmHWM"), "computed": metrics["tokens"]}


def resident(field: str) -> float:
    """Resident size now (`VmRSS`) or at its highest (`VmHWM`), in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith(field))
    return kilobytes * 1024 / 1e9


SIDES = {"speed": quintain_speed, "memory": quintain_memory}


def fine_tuned(folder: Path) -> Path:
    """Runs the recipe up to its fine-tuning."""
    from quintain.pipeline.run import run_recipe
    from quintain.pipeline.stages import STAGES

    table = load_recipe(RECIPE).model_dump(mode="json", exclude_none=True)
    last = next(index for index, stage in enumerate(table["stages"]) if stage["kind"] == "sft")
    table["stages"] = table["stages"][: last + 1]
    recipe = recipe_from_table(table, str(RECIPE))
    run_recipe(recipe, RECIPE.read_text(encoding="utf-8"), RECIPE.parent, folder, STAGES)
    return folder / table["stages"][last]["name"] / "model"


class Bench:
    """Makes jobs and runs them in processes of their own."""

    def __init__(self, options: argparse.Namespace, model: Path, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.recipe: Recipe = load_recipe(RECIPE)
        self.stage = next(stage for stage in self.recipe.stages if isinstance(stage, GRPOStage))
        workshop = Workshop(self.recipe, RECIPE.parent, folder)
        self.pool = workshop.pool(self.stage.pool)
        self.world = workshop.one_world("this benchmark")
        self.toolset = self.world.toolset()
        self.instructions = self.world.world_class.instructions
        self.common = {
            "model": str(model),
            "learning_rate": self.stage.train.learning_rate,
            "tune_peer": options.tune_peer,
        }

    def speed(self, number: int) -> Job:
        """The job of round `number`, for both sides."""
        from transformers import AutoTokenizer

        from quintain.interface.dialects import get
        from quintain.interface.dialects.codec import TokenizerCodec

        options, name = self.options, self.recipe.model.dialect
        tasks = self.pool[number * options.groups : (number + 1) * options.groups]
        save_tasks(self.folder / "tasks.jsonl", tasks)
        codec = TokenizerCodec(AutoTokenizer.from_pretrained(self.common["model"]))
        dialect = get(name, codec)
        system = message("system", self.instructions)
        text = codec.decode(dialect.prompt([system], self.toolset))

        def prompt(task: Task) -> list[int]:
            return dialect.prompt([system, message("user", task.prompt)], self.toolset)

        return self.common | {
            "part": "speed",
            "seed": number,
            "dialect": name,
            "world": self.world.section.world,
            "tasks": str(self.folder / "tasks.jsonl"),
            "system": text.removeprefix("<|im_start|>system\n").partition("<|im_end|>")[0],
            "prompts": [prompt(task) for task in tasks],
            "group_size": options.group_size,
            "turns": self.recipe.budget.turns,
            "max_tokens": self.stage.max_tokens,
            "completion_tokens": 4096,  # counts observations too, so it must never bind: the turns do
            "sequences": options.group_size,
            "microbatch_tokens": options.microbatch,
            "gradient_checkpointing": False,
        }

    def memory(self, *, shared: int, checkpointing: bool = False) -> Job:
        """A microbatch of `--microbatch` tokens: 8 trajectories, the first `shared` tokens the same in all."""
        sequences, budget = 8, self.options.microbatch
        return self.common | {
            "part": "memory",
            "group_size": sequences,
            "sequences": sequences,
            "prompt_tokens": shared,
            "completion_tokens": budget // sequences - shared,
            "microbatch_tokens": budget,
            "gradient_checkpointing": checkpointing,
        }

    def run(self, side: str, job: Job) -> Row:
        """Runs one side; its last line is the result."""
        path = self.folder / "job.json"
        path.write_text(json.dumps(job))
        command = [self.options.peer_python, str(PEER), str(path)]
        if side == "quintain":
            command = [sys.executable, __file__, "--side", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            why = " (out of memory?)" if done.returncode == -signal.SIGKILL else ""
            sys.exit(f"{side} ended with code {done.returncode}{why}:\n{done.stderr[-3000:]}")
        row: Row = json.loads(done.stdout.splitlines()[-1])
        return row


def measure_speed(bench: Bench, sides: list[str]) -> Row:
    rows: dict[str, list[Row]] = {side: [] for side in sides}
    for number in range(bench.options.rounds):
        job = bench.speed(number)
        for side in sides:
            row = bench.run(side, job)
            rows[side].append(row)
            print(f"round {number + 1}: {side:9} {row['episodes'] / row['seconds']:.3f} trajectories/s", flush=True)
    return {side: summary(found) for side, found in rows.items()}


def summary(rows: list[Row]) -> Row:
    total = {key: sum(row[key] for row in rows) for key in rows[0] if key != "version"}
    rates = [row["episodes"] / row["seconds"] for row in rows]
    return {
        "version": rows[0]["version"],
        "trajectories_per_second": statistics.median(rates),
        "lowest": min(rates),
        "highest": max(rates),
        "rollout_seconds": statistics.median(row["rollout_seconds"] for row in rows),
        "training_seconds": statistics.median(row["training_seconds"] for row in rows),
        "processor_seconds": statistics.median(row["processor_seconds"] for row in rows),
        "per_episode": {key: total[key] / total["episodes"] for key in COUNTS},
        "calls_that_work": 1 - total["failed"] / total["calls"] if total["calls"] else 0.0,
        "success": total["successes"] / total["episodes"],
        "varying_groups": f"{total['varying']} of {total['groups']}",
        "rounds": rows,
    }


def measure_memory(bench: Bench, sides: list[str]) -> list[Row]:
    prompt = bench.options.microbatch // 32
    plans = [("quintain", prompt, False), ("quintain", 0, False), ("trl", prompt, False), ("trl", prompt, True)]
    rows = []
    for side, shared, checkpointing in plans:
        if side in sides:
            found = bench.run(side, bench.memory(shared=max(shared, 1), checkpointing=checkpointing))
            rows.append({"side": side, "shared_prompt": shared, "gradient_checkpointing": checkpointing, **found})
            show_memory(rows[-1])
    return rows


def show(speed: Row) -> None:
    if speed:
        columns = (
            "traj/s",
            "lowest",
            "highest",
            "rollout s",
            "train s",
            "cpu s",
            *COUNTS,
            "calls work",
            "success",
            "vary",
        )
        print("".join([f"{'':10}", *(f"{column:>12}" for column in columns)]))
    for side, row in speed.items():
        times = ("rollout_seconds", "training_seconds", "processor_seconds")
        keys = ("trajectories_per_second", "lowest", "highest", *times)
        figures = [row[key] for key in keys] + [row["per_episode"][key] for key in COUNTS]
        shares = f"{row['calls_that_work']:>12.0%}{row['success']:>12.2f}{row['varying_groups']:>12}"
        print(f"{side:10}" + "".join(f"{figure:>12.3f}" for figure in figures) + shares)
    if "trl" in speed:
        print(
            f"{ratio(speed):.1f}x the trajectories per second (targets {TARGETS['speed']:g}x, {TARGETS['stretch']:g}x)"
        )


def show_memory(row: Row) -> None:
    kind = f"{row['shared_prompt']} shared tokens" + (", checkpointing" if row["gradient_checkpointing"] else "")
    line = f"{row['side']:10}peak {row['peak_gb']:.2f} GB, {row['loaded_gb']:.2f} GB with the model loaded ({kind})"
    print(line, flush=True)


def ratio(speed: Row) -> float:
    return float(speed["quintain"]["trajectories_per_second"] / speed["trl"]["trajectories_per_second"])


def report(options: argparse.Namespace, speed: Row, memory: list[Row]) -> Row:
    shape = {key: getattr(options, key) for key in ("rounds", "groups", "group_size", "microbatch", "tune_peer")}
    process = {"threads": os.environ.get("OMP_NUM_THREADS", "default"), "torch": metadata.version("torch")}
    result = {**process, "shape": shape, "speed": speed, "memory": memory}
    return result | ({"ratio": ratio(speed), "targets": TARGETS} if "trl" in speed else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--model", type=Path, help="a model that can use the desk's tools (default: train one)")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has trl and quintain")
    parser.add_argument("--part", choices=("speed", "memory", "both"), default="both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--groups", type=int, default=4, help="tasks of one step")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--microbatch", type=int, default=4096, help="most tokens computed at once in training")
    parser.add_argument(
        "--tune-peer", action="store_true", help="TRL gets the process settings of quintain.machine too"
    )
    parser.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side is not None:
        job = json.loads(options.side.read_text())
        print(json.dumps(SIDES[job["part"]](job)))
        return
    sides = ["quintain"]
    if subprocess.run([options.peer_python, "-c", "import trl, quintain"], capture_output=True).returncode == 0:
        sides.append("trl")
    else:
        print(f"trl: {options.peer_python} can't import trl and quintain; install: {INSTALL}")
    with tempfile.TemporaryDirectory() as scratch:
        model = options.model or fine_tuned(Path(scratch) / "run")
        bench = Bench(options, model.absolute(), Path(scratch))
        speed = measure_speed(bench, sides) if options.part != "memory" else {}
        memory = measure_memory(bench, sides) if options.part != "speed" else []
    show(speed)
    if options.out is not None:
        write_result(options.out, report(options, speed, memory))


if __name__ == "__main__":
    main()
