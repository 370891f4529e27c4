"""vLLM's side of `rollout_engine.py`: plays the same scripted episodes; runs where vLLM is installed.

The first line on standard input is the job; `{}` answers it once the engine stands and has played once. Every further
line is answered by playing once, so that another program can play in turn with it; seconds are those of the episodes
alone.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from vllm import LLM, SamplingParams

CONTEXT = 2048


def play(engine: Any, sampling: Any, job: dict[str, Any]) -> dict[str, float]:
    """All episodes, turn by turn: every turn is equally long, so nobody waits for anybody."""
    engine.reset_prefix_cache()
    wall, processor = time.perf_counter(), time.process_time()
    sequences = [list(prompt) for prompt in job["prompts"]]
    for _ in range(job["turns"]):
        found = engine.generate([{"prompt_token_ids": ids} for ids in sequences], sampling, use_tqdm=False)
        for ids, output in zip(sequences, found, strict=True):
            ids += [*output.outputs[0].token_ids, *job["observation"]]
    return {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}


def main() -> None:
    job = json.loads(sys.stdin.readline())
    engine = LLM(
        model=job["model"],
        dtype="float32",
        enable_prefix_caching=True,
        max_model_len=CONTEXT,
        max_num_seqs=len(job["prompts"]),
    )
    sampling = SamplingParams(temperature=1.0, max_tokens=job["new"], ignore_eos=True, logprobs=0)
    play(engine, sampling, job)  # compiles on first use
    print("{}", flush=True)
    for _ in sys.stdin:
        print(json.dumps(play(engine, sampling, job)), flush=True)


if __name__ == "__main__":
    main()
