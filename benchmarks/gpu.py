"""Training and decoding on one GPU: tokens a second, MFU and peak memory for the shapes of 0.6B, 4B and 8B models.

    python benchmarks/gpu.py --out benchmarks/results/gpu.json                 # one H100 or H200, about 10 minutes
    python benchmarks/gpu.py --shape tiny --device cpu --prompt 16 --completion 8 --out gpu.json   # whether it runs

Weights are random, of Qwen 3's dimensions. Training: GRPO steps on groups of 8 episodes that share their prompt, packed
as prefix trees into one microbatch, in bfloat16 with float32 masters by FSDP2 on one rank, layers recomputed; of
all weights where their 16 bytes each fit, else of adapters. Decoding: the local engine in bfloat16, 8 sessions each of
those prompts.

MFU (model FLOPs utilisation: Chowdhery et al. 2022, arXiv 2204.02311, appendix B) is operations / seconds / peak, with

    operations = P (2 W t + 2 V d p + 4 L H h c)

for t computed tokens (shared prefixes once), p of them with a head, and c pairs of a token and one it attends to. W are
the weights in layers, V d those of the head; L layers have H heads of width h. P is 1 for decoding, 3 for training all
weights, 2 for adapters, as frozen weights need no gradient. What is recomputed does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import socket
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
from transformers import Qwen3Config, Qwen3ForCausalLM

from quintain.commands.shape import parameters, training_bytes
from quintain.inference.local import LocalEngine
from quintain.interface.example import Example
from quintain.interface.generation import Sampling
from quintain.recipe.tables import ShapeSection
from quintain.training import ranks
from quintain.training.config import SFTConfig
from quintain.training.grpo import GRPOObjective
from quintain.training.loop import Trainer
from quintain.training.lora import add_lora
from quintain.training.packing import pack

GROUP = 8
STEPS, LORA_RANK = 5, 16
GIB = 2**30
PEAK = {"H100 PCIe": 756.0, "H100": 989.0, "H200": 989.0, "A100": 312.0}
"""Dense bfloat16 TFLOPS by the maker's data sheets; the first name that the device's holds."""


def _qwen3(layers: int, hidden: int, heads: int, intermediate: int, *, tied: bool) -> ShapeSection:
    return ShapeSection(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=8,
        head_dim=128,
        intermediate=intermediate,
        vocabulary=151_936,
        tied=tied,
    )


SHAPES = {
    "0.6B": _qwen3(28, 1024, 16, 3072, tied=True),
    "4B": _qwen3(36, 2560, 32, 9728, tied=True),
    "8B": _qwen3(36, 4096, 32, 12_288, tied=False),
    "tiny": ShapeSection(
        layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=128, vocabulary=512, tied=True
    ),
}


@dataclass(frozen=True)
class Found:
    """One measurement.

    Attributes:
        tokens_per_second: computed ones in training, shared prefixes once; drawn ones in decoding.
        mfu: None where the device's peak is not known.
        peak_gib: most memory of the device that tensors took.
        how: what was trained, or decoded at once.
    """

    tokens_per_second: float
    mfu: float | None
    peak_gib: float | None
    how: str


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, action="append", help="may be given several times")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--groups", type=int, default=8, help="groups of 8 episodes in a step")
    parser.add_argument("--prompt", type=int, default=512, help="tokens that a group shares")
    parser.add_argument("--completion", type=int, default=192, help="tokens that an episode adds")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("gpu.py: PyTorch finds no CUDA device here; --shape tiny --device cpu tries the code", file=sys.stderr)
        raise SystemExit(2)
    name = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    peak = next((value * 1e12 for known, value in PEAK.items() if known in name), None)
    join_alone()
    rows = {}
    table = Table("", "tokens / s", "MFU", "peak GiB", "", title=name)
    for shape in options.shape or ("0.6B", "4B", "8B"):
        lengths = options.groups, options.prompt, options.completion
        bench = Bench(SHAPES[shape], torch.device(options.device), peak, *lengths)
        for part in (bench.training, bench.decoding):
            row = bench.measured(part)
            rows[f"{shape} {part.__name__}"] = asdict(row)
            share, memory = (f"{row.mfu:.1%}" if row.mfu else "-"), (f"{row.peak_gib:.1f}" if row.peak_gib else "-")
            table.add_row(f"{shape} {part.__name__}", f"{row.tokens_per_second:,.0f}", share, memory, row.how)
    ranks.dismiss()
    Console().print(table)
    result = {"device": name, "torch": torch.__version__, "peak_tflops": peak and peak / 1e12, "rows": rows}
    write_result(options.out, result)


def join_alone() -> None:
    """What `torchrun --nproc-per-node 1` would set, so that the trainer keeps float32 masters."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "gpu"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks.join()


class Bench:
    """The measurements of one shape.

    Args:
        shape: of the model.
        device: where it runs.
        peak: operations a second of the device.
        groups: of 8 episodes.
        prompt: tokens that a group shares.
        completion: tokens that an episode adds.
    """

    def __init__(
        self, shape: ShapeSection, device: torch.device, peak: float | None, groups: int, prompt: int, completion: int
    ) -> None:
        self.shape = shape
        self.device = device
        self.peak = peak
        self.prompt, self.completion = prompt, completion
        draw = random.Random(0)
        self.prompts = [[draw.randrange(shape.vocabulary) for _ in range(prompt)] for _ in range(groups)]

    def measured(self, part: Callable[[], Found]) -> Found:
        """A measurement that begins with empty memory."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        return part()

    def training(self) -> Found:
        examples = self._examples()
        (tree,) = pack(examples, sum(len(one.ids) for one in examples))
        rank = 0 if self._fits(len(tree)) else LORA_RANK
        config = SFTConfig(microbatch_tokens=len(tree), recompute=True, precision="bfloat16", lora_rank=rank)
        model = self._model(torch.float32).to("cpu")
        objective = GRPOObjective(0.2, 0.28, 2.0, 0.1, kl=0.0)
        trainer = Trainer(add_lora(model, rank, seed=0) if rank else model, objective, config)
        trainer.step(examples, 1.0)  # compiles
        seconds = self._seconds(lambda: [trainer.step(examples, 1.0) for _ in range(STEPS)]) / STEPS
        trainer.workers.end()
        forward = self._forward(len(tree), len(tree.predictions.sources.unique()), int((tree.positions + 1).sum()))
        how = f"adapters of rank {rank}" if rank else "all weights"
        rate, work = len(tree) / seconds, (2 if rank else 3) * forward / seconds
        return self._found(rate, work, f"{how}, {len(tree):,} tokens a step")

    def decoding(self) -> Found:
        groups, prompt, completion = len(self.prompts), self.prompt, self.completion
        sessions = groups * GROUP
        engine = LocalEngine(self._model(torch.bfloat16), kv_tokens=sessions * (prompt + completion), sessions=sessions)

        async def generate(count: int, seed: int) -> None:
            sampling = Sampling(max_tokens=count, seed=seed)
            asked = list(enumerate(self.prompts * GROUP))
            jobs = [engine.generate(ids, session=f"{seed}.{at}", group="", sampling=sampling) for at, ids in asked]
            await asyncio.gather(*jobs)

        asyncio.run(generate(4, 1))
        asyncio.run(engine.update())  # forgets the prompts
        seconds = self._seconds(lambda: asyncio.run(generate(completion, 2)))
        engine.close()
        drawn, read = sessions * completion, groups * prompt
        seen = groups * prompt * (prompt + 1) / 2 + drawn * (prompt + completion / 2)
        work = self._forward(drawn + read, drawn, seen)
        return self._found(drawn / seconds, work / seconds, f"{sessions} sessions, prompts of {prompt} included")

    def _found(self, rate: float, operations: float, how: str) -> Found:
        memory = torch.cuda.max_memory_allocated() / GIB if self.device.type == "cuda" else None
        return Found(rate, self.peak and operations / self.peak, memory, how)

    def _seconds(self, work: Callable[[], Any]) -> float:
        self._wait()
        began = time.monotonic()
        work()
        self._wait()
        return time.monotonic() - began

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def _forward(self, tokens: int, heads: int, pairs: float) -> float:
        """Operations of a forward pass: every token through the layers, some through the head, attention by pairs."""
        shape = self.shape
        head = shape.vocabulary * shape.hidden
        body = parameters(shape) - head * (1 if shape.tied else 2)
        return 2 * body * tokens + 2 * head * heads + 4 * shape.layers * shape.heads * shape.head_dim * pairs

    def _fits(self, tokens: int) -> bool:
        """Whether the states of all weights fit, a tenth of the memory left free."""
        if self.device.type != "cuda":
            return True
        needed = sum(training_bytes(self.shape, tokens, recompute=True, precision="bfloat16").values())
        return needed < 0.9 * torch.cuda.get_device_properties(0).total_memory

    def _examples(self) -> list[Example]:
        draw = random.Random(1)
        weights = (0.0,) * self.prompt + (1.0,) * self.completion
        found = []
        for prompt in self.prompts:
            for number in range(GROUP):
                ids = (*prompt, *(draw.randrange(self.shape.vocabulary) for _ in range(self.completion)))
                advantages = (float(number % 2) - 0.5,) * len(ids)
                behaviour = (-8.0,) * len(ids)
                found.append(Example(ids, weights, advantages=advantages, behaviour_logprobs=behaviour))
        return found

    def _model(self, dtype: torch.dtype) -> Any:
        """Random weights, drawn where that is fast."""
        shape = self.shape
        config = Qwen3Config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            max_position_embeddings=4096,
            tie_word_embeddings=shape.tied,
        )
        with self.device:
            return Qwen3ForCausalLM(config).to(dtype).eval()


if __name__ == "__main__":
    main()
