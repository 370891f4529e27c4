"""TRL's side of `grpo_vs_trl.py`: `GRPOTrainer` with its own tool loop, on the same tasks; runs where TRL is installed.

    python trl_grpo.py JOB.json

Token for token the same prompts, the same parser, tools and verifier (all imported from Quintain); generating,
calling tools, scoring and training are TRL's own. Prints one JSON line.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from quintain.interface.dialects import get
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.tasks import Task, load_tasks
from quintain.machine import tune
from quintain.worlds.desk import Desk

Job = dict[str, Any]
Row = dict[str, Any]

CHATML = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls or [] %}<call>{{ call.function.name }}\
{% for name, value in call.function.arguments.items() %}
{{ name }}: {{ value }}{% endfor %}{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Quintain's dialect `lines` as a chat template; the tools are documented in the system message already."""


class DeskEnvironment:
    """One desk per trajectory: TRL offers its public methods as tools."""

    def __init__(self) -> None:
        self.world = Desk()

    def reset(self, task: str, **_: Any) -> None:
        self.world.reset(TASKS[task])

    def search(self, query: str) -> str:
        """Finds document titles.

        Args:
            query: name or keywords.
        """
        return self.world.search(query)

    def open(self, title: str, page: int = 1) -> str:
        """Reads a document.

        Args:
            title: its title.
            page: which page of a long one.
        """
        return self.world.open(title, page)

    def calculate(self, expression: str) -> str:
        """Does arithmetic.

        Args:
            expression: such as (3 + 4) * 2.
        """
        return self.world.calculate(expression)


TASKS: dict[str, Task] = {}
"""By id; an environment is reset with a row of the dataset, which holds the id."""


def reward(completions: list[Any], environments: list[DeskEnvironment], task: list[str], **_: Any) -> list[float]:
    """1 for the world's success, else 0."""
    rewards = []
    for messages, environment, name in zip(completions, environments, task, strict=True):
        # The desk judges by the answer and by what it saw itself of the episode.
        verdict = environment.world.verify(TASKS[name], SimpleNamespace(answer=answer_of(messages)))
        rewards.append(float(verdict.success))
        PLAYED.append((messages, verdict.success))
    return rewards


PLAYED: list[tuple[list[dict[str, Any]], bool]] = []
"""Conversations with their success, group by group."""


def answer_of(messages: list[dict[str, Any]]) -> str | None:
    last = messages[-1]
    return last["content"] if last["role"] == "assistant" and not last.get("tool_calls") else None


class TimedTrainer(GRPOTrainer):
    """Notes how long the rollout took and what it was made of."""

    batches: list[Row]

    # The only place where TRL has the finished batch with its masks; a name of its own, checked with 1.16.
    def _generate_and_score_completions(self, inputs: list[Row]) -> Row:
        began = time.perf_counter()
        batch = super()._generate_and_score_completions(inputs)
        seconds = time.perf_counter() - began
        prompts = [
            row[mask.bool()].tolist() for row, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)
        ]
        completion = batch["completion_mask"].sum().item()
        generated = (batch["completion_mask"] * batch["tool_mask"]).sum().item() if "tool_mask" in batch else completion
        self.batches.append(
            {
                "rollout_seconds": seconds,
                "prompts": prompts,
                "generated": generated,
                "observation": completion - generated,
            }
        )
        return batch


class Clock(TrainerCallback):
    """Seconds of the last optimiser step, rollout included: on the wall, and of the processor."""

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = (time.perf_counter(), time.process_time())

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds = time.perf_counter() - self.began[0]
        self.processor_seconds = time.process_time() - self.began[1]


def settings(job: Job, folder: str, **more: Any) -> GRPOConfig:
    """What both parts share: fp32, one update per batch, no KL, temperature 1 with nothing cut."""
    return GRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=job["sequences"],
        num_generations=job["group_size"],
        learning_rate=job["learning_rate"],
        gradient_checkpointing=job["gradient_checkpointing"],
        bf16=False,
        use_cpu=True,
        shuffle_dataset=False,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **more,
    )


def load(job: Job) -> tuple[Any, Any]:
    if job["tune_peer"]:
        tune()
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    tokenizer.chat_template = CHATML
    return model, tokenizer


def speed(job: Job) -> Row:
    """One optimiser step on fresh episodes of the job's tasks."""
    model, tokenizer = load(job)
    dialect = get(job["dialect"], TokenizerCodec(tokenizer))

    def parse_response(ids: Any, **_: Any) -> dict[str, Any]:
        ids = list(ids)
        action = dialect.parse(ids, cut=ids[-1] not in dialect.stop, prefix="")
        if action.answer is not None or not action.calls:
            return {"role": "assistant", "content": action.answer or ""}
        calls = [
            {"type": "function", "function": {"name": one.tool, "arguments": one.arguments}} for one in action.calls
        ]
        return {"role": "assistant", "content": action.thought, "tool_calls": calls}

    tokenizer.response_template = {}  # anything but None sends TRL to `parse_response`
    tokenizer.parse_response = parse_response
    tasks = load_tasks(Path(job["tasks"]))
    TASKS.update({task.id: task for task in tasks})
    system = {"role": "system", "content": job["system"]}
    rows = [{"prompt": [system, {"role": "user", "content": task.prompt}], "task": task.id} for task in tasks]
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        config = settings(
            job,
            folder,
            gradient_accumulation_steps=len(tasks) * job["group_size"] // job["sequences"],
            max_steps=1,
            max_completion_length=job["completion_tokens"],
            max_tool_calling_iterations=job["turns"] - 1,
            generation_kwargs={"max_new_tokens": job["max_tokens"]},
        )
        trainer = TimedTrainer(
            model=model,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            environment_factory=DeskEnvironment,
            callbacks=[clock],
        )
        trainer.batches = []
        trainer.train()
    (batch,) = trainer.batches
    expected = [ids for ids in job["prompts"] for _ in range(job["group_size"])]
    assert batch["prompts"] == expected, "TRL renders other prompts than the dialect"
    return speed_row(job, batch, clock)


def speed_row(job: Job, batch: Row, clock: Clock) -> Row:
    size = job["group_size"]
    successes = [success for _, success in PLAYED]
    groups = [set(successes[start : start + size]) for start in range(0, len(successes), size)]
    said = [one for messages, _ in PLAYED for one in messages]
    observations = [one["content"] for one in said if one["role"] == "tool"]
    return {
        "seconds": clock.seconds,
        "rollout_seconds": batch["rollout_seconds"],
        "training_seconds": clock.seconds - batch["rollout_seconds"],
        "processor_seconds": clock.processor_seconds,
        "episodes": len(PLAYED),
        "prompt": sum(map(len, batch["prompts"])),
        "generated": batch["generated"],
        "observation": batch["observation"],
        "turns": sum(one["role"] == "assistant" for one in said),
        "calls": len(observations),
        # TRL hands an exception to the model as the text of {"error": ...}
        "failed": sum(content.startswith("{'error': ") for content in observations),
        "groups": len(groups),
        "varying": sum(len(group) > 1 for group in groups),
        "successes": sum(successes),
    }


def memory(job: Job) -> Row:
    """Two optimiser steps on made-up trajectories: the second has the optimiser's state beside it."""
    model, tokenizer = load(job)
    draw = random.Random(0)

    def some(count: int) -> list[int]:
        return [draw.randrange(100, model.config.vocab_size) for _ in range(count)]

    def rollout(prompts: list[Any], _: Any) -> dict[str, Any]:
        prompt = some(job["prompt_tokens"])
        completions = [some(job["completion_tokens"]) for _ in prompts]
        return {
            "prompt_ids": [prompt for _ in prompts],
            "completion_ids": completions,
            "logprobs": [[-1.0] * job["completion_tokens"] for _ in prompts],
        }

    def alternating(prompts: list[Any], **_: Any) -> list[float]:
        return [float(index % 2) for index in range(len(prompts))]

    before = resident("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        config = settings(job, folder, max_steps=2, max_completion_length=job["completion_tokens"])
        GRPOTrainer(
            model=model,
            reward_funcs=alternating,
            args=config,
            train_dataset=Dataset.from_list([{"prompt": "go"}] * 4),
            processing_class=tokenizer,
            rollout_func=rollout,
        ).train()
    return {"loaded_gb": before, "peak_gb": resident("VmHWM")}


def resident(field: str) -> float:
    """Resident size now (`VmRSS`) or at its highest (`VmHWM`), in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith(field))
    return kilobytes * 1024 / 1e9


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    row = {"speed": speed, "memory": memory}[job["part"]](job)
    print(json.dumps(row | {"version": metadata.version("trl")}))


if __name__ == "__main__":
    main()
