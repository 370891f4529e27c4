"""Training runs that read the same for one process and for several, and how several gloo processes are started."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from training_models import VOCABULARY, family_of_examples, tiny

from quintain.training import ranks
from quintain.training.config import CPTConfig, SFTConfig, TrainConfig
from quintain.training.cpt import run_cpt
from quintain.training.documents import Document
from quintain.training.grpo import GRPOObjective
from quintain.training.loop import Trainer
from quintain.training.lora import add_lora
from quintain.training.sft import train_examples

PRELOADED = [
    "torch.distributed.fsdp",
    "transformers.models.llama.modeling_llama",
    "transformers.models.qwen3.modeling_qwen3",
    "quintain.training.cpt",
    "quintain.training.sft",
    "quintain.training.grpo",
]
"""Imported once for all processes."""

Weights = dict[str, torch.Tensor]

SMALL = {"learning_rate": 1e-3, "microbatch_tokens": 60}


def sft(out: Path, family: str = "llama", **settings: Any) -> Weights:
    """Three steps, a checkpoint after each."""
    config = SFTConfig(**SMALL, batch_trajectories=3, epochs=1, checkpoint_seconds=0.0, **settings)
    return weights(train_examples(config, family_of_examples(), tiny(family), out).model)


def cpt(out: Path) -> Weights:
    """Three steps on packed documents."""
    draw = random.Random(0)
    lengths = [draw.randrange(5, 40) for _ in range(20)]
    documents = [Document("text", [draw.randrange(3, VOCABULARY) for _ in range(n)], [1] * n) for n in lengths]
    config = CPTConfig(**SMALL, context=40, batch_tokens=-(-sum(lengths) // 3))
    return weights(run_cpt(config, documents, tiny("qwen3"), out, targets={}).model)


def grpo(lora_rank: int) -> tuple[Weights, list[dict[str, float]]]:
    """Three steps of the whole objective, the model up to date after each."""
    model = add_lora(tiny(), lora_rank, seed=0) if lora_rank else tiny()
    objective = GRPOObjective(clip_low=0.2, clip_high=0.28, ratio_cap=2.0, off_policy_limit=0.1, kl=0.5)
    trainer = Trainer(model, objective, TrainConfig(**SMALL), reference=True)
    seen = []

    def watched(change: Callable[[], object]) -> None:
        before = weights(model)
        change()
        seen.append(any(not torch.equal(before[name], value) for name, value in weights(model).items()))

    trainer.exclusively = watched
    rows = []
    for step in range(3):
        examples = [
            replace(one, behaviour_logprobs=tuple(value - 4.5 for value in one.behaviour_logprobs or ()))
            for one in family_of_examples(step)
        ]
        rows.append(trainer.step(examples, 1.0))
    trainer.finish()
    assert seen == [True] * 3
    return weights(model), rows


def weights(model: Any) -> Weights:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def on_ranks(count: int, program: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Runs a program on rank 0 of `count` gloo processes on the loopback interface; returns what it returns."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    receiver, sender = context.Pipe(duplex=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = (sender, count, port, program, arguments, settings)
    processes = [context.Process(target=_rank, args=(rank, *common), daemon=True) for rank in range(count)]
    for process in processes:
        process.start()
    sender.close()
    try:
        return pickle.loads(
            receiver.recv_bytes()
        )  # EOFError where rank 0 ended without a result; pytest's own limit bounds the wait
    finally:
        for process in processes:
            process.join(10)
            process.kill()


def _rank(
    rank: int, sender: Any, count: int, port: int, program: Callable[..., Any], arguments: Any, settings: Any
) -> None:
    """What `torchrun` and the command line do for one process."""
    torch.set_num_threads(1)
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_PORT": port}
    os.environ |= {
        "TORCHELASTIC_RUN_ID": "test",
        "MASTER_ADDR": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        **{key: str(one) for key, one in place.items()},
    }
    if not ranks.join():
        sender.close()
        ranks.serve()
        return
    found = program(*arguments, **settings)
    ranks.dismiss()
    sender.send_bytes(pickle.dumps(found))  # `send` would share the memory of a process about to end
