"""Low-rank adapters (Hu et al. 2022), through peft: only they are trained, saved and loaded."""

from __future__ import annotations

from typing import Any

import torch
from peft import LoraConfig, get_peft_model

ALPHA = 32
"""Fixed, so that the best learning rate hardly depends on the rank; it is about ten times that of full training."""


def add_lora(model: Any, rank: int, seed: int) -> Any:
    """Freezes a model and puts adapters on every linear layer but the head; untouched it computes the same."""
    config = LoraConfig(
        r=rank, lora_alpha=ALPHA, lora_dropout=0.0, target_modules="all-linear", bias="none", task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return get_peft_model(model, config)


def merge(model: Any) -> Any:
    """The base model with its adapters added into its weights; computes what the adapted model computed."""
    return model.merge_and_unload()
