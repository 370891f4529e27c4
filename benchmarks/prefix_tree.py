"""Training on one prefix tree against separate, padded sequences: same model, same loss positions, same head.

Both sides run forward and backward of one optimiser batch, alternating; the optimiser's step, which is the
same for both, is left out. Separate sequences are padded batches under the same token budget, run by the
unchanged model; their head also runs at loss positions only, so the difference is sharing alone.

    python benchmarks/prefix_tree.py --model DIR --shape sft --out prefix_tree.json
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from support.results import write_result
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM

from quintain.interface.example import Example
from quintain.machine import tune
from quintain.training.forward import prepare, tree_logprobs
from quintain.training.head import predict
from quintain.training.objective import cross_entropy
from quintain.training.packing import pack
from quintain.training.tree import build_tree


@dataclass(frozen=True)
class Shape:
    """Trajectories that share a prompt; of their own tokens every second run of `run` carries loss."""

    trajectories: int
    prompt: int
    own: int
    run: int


SHAPES = {
    "sft": Shape(trajectories=16, prompt=120, own=250, run=35),
    "sft4": Shape(trajectories=4, prompt=120, own=250, run=35),
    "group": Shape(trajectories=8, prompt=600, own=200, run=25),
}


def examples_of(shape: Shape, vocabulary: int) -> list[Example]:
    draw = random.Random(0)
    prompt = [draw.randrange(3, vocabulary) for _ in range(shape.prompt)]
    found = []
    for _ in range(shape.trajectories):
        own = [draw.randrange(3, vocabulary) for _ in range(shape.own + draw.randint(-shape.own // 5, shape.own // 5))]
        weights = [float(place // shape.run % 2 == 0) for place in range(len(own))]
        found.append(Example(tuple(prompt + own), (*[0.0] * shape.prompt, *weights)))
    return found


def run_tree(model: Any, examples: Sequence[Example], budget: int) -> float:
    total = sum(sum(example.weights) for example in examples)
    loss_sum = 0.0
    for tree in pack(examples, budget):
        with tree_logprobs(model, tree) as logprobs:
            loss = cross_entropy(logprobs, tree.predictions, total).value
            loss.backward()
        loss_sum += loss.item()
    return loss_sum


def run_separate(model: Any, examples: Sequence[Example], budget: int) -> float:
    total = sum(sum(example.weights) for example in examples)
    loss_sum = 0.0
    for batch in padded_batches(examples, budget):
        ids = pad_sequence([torch.tensor(example.ids) for example in batch], batch_first=True)
        mask = pad_sequence([torch.ones(len(example.ids), dtype=torch.long) for example in batch], batch_first=True)
        hidden = model.get_decoder()(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        asked = build_tree(batch, share=False)
        flat = torch.cat([hidden[row, : len(example.ids)] for row, example in enumerate(batch)])
        loss = cross_entropy(predict(model, flat, asked.predictions), asked.predictions, total).value
        loss.backward()
        loss_sum += loss.item()
    return loss_sum


def padded_batches(examples: Sequence[Example], budget: int) -> Iterator[list[Example]]:
    batch: list[Example] = []
    for example in sorted(examples, key=lambda one: len(one.ids)):
        if batch and len(example.ids) * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(example)
    yield batch


def timed(run: Callable[[], float], model: Any) -> tuple[float, float, float]:
    """Wall seconds, processor seconds of all threads (steadier where the machine is shared) and the loss."""
    model.zero_grad()
    wall, processor = time.perf_counter(), time.process_time()
    loss = run()
    return time.perf_counter() - wall, time.process_time() - processor, loss


def measure(model: Any, shape: Shape, budget: int, rounds: int) -> dict[str, Any]:
    examples = examples_of(shape, model.config.vocab_size)
    sides = {
        "tree": lambda: run_tree(model, examples, budget),
        "separate": lambda: run_separate(model, examples, budget),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    processor: dict[str, list[float]] = {name: [] for name in sides}
    losses = {}
    for _ in range(rounds):
        for name, run in sides.items():
            wall, used, losses[name] = timed(run, model)
            seconds[name].append(wall)
            processor[name].append(used)
    if abs(losses["tree"] - losses["separate"]) > 1e-4 * losses["separate"]:
        raise SystemExit(f"the two sides compute different losses: {losses}")
    tokens = {
        "tree": sum(len(tree) for tree in pack(examples, budget)),
        "separate": sum(len(example.ids) for example in examples),
    }
    return {
        "shape": vars(shape),
        "loss_tokens": sum(example.loss_tokens for example in examples),
        "tokens": tokens,
        "seconds": seconds,
        "processor_seconds": processor,
        "median_seconds": {name: statistics.median(values) for name, values in seconds.items()},
        "median_processor_seconds": {name: statistics.median(values) for name, values in processor.items()},
        "speedup": statistics.median(seconds["separate"]) / statistics.median(seconds["tree"]),
    }


def print_table(name: str, result: dict[str, Any]) -> None:
    columns = ("shape", "side", "computed", "median s", "cpu s", "computed/s", "example tokens/s")
    print("".join(f"{column:>18}" for column in columns))
    for side, median in result["median_seconds"].items():
        computed, processor = result["tokens"][side], result["median_processor_seconds"][side]
        speeds = f"{computed / median:18.0f}{result['tokens']['separate'] / median:18.0f}"
        print(f"{name:>18}{side:>18}{computed:18d}{median:18.2f}{processor:18.2f}{speeds}")
    print(f"the tree is {result['speedup']:.2f}x faster; {result['loss_tokens']} tokens carry loss")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder or hub id of a causal LM")
    parser.add_argument("--shape", choices=SHAPES, default="sft", help="trajectories to train on")
    parser.add_argument("--rounds", type=int, default=3, help="alternating measurements of each side")
    parser.add_argument("--budget", type=int, default=4096, help="most tokens of a microbatch")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    tune()
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    prepare(model)
    result = measure(model, SHAPES[options.shape], options.budget, options.rounds)
    print_table(options.shape, result)
    if options.out:
        threads = {"threads": torch.get_num_threads(), "torch": torch.__version__}
        write_result(options.out, {**threads, **result})


if __name__ == "__main__":
    main()
