"""Tiny random models of the families trained here, and examples that share prefixes."""

from __future__ import annotations

import random

import torch
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, Qwen3Config, Qwen3NextConfig

from quintain.interface.example import Example

VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
}
CONFIGS = {
    "llama": lambda: LlamaConfig(**SIZES, tie_word_embeddings=True),
    "qwen3": lambda: Qwen3Config(**SIZES, head_dim=8, tie_word_embeddings=False),
    "gemma3": lambda: Gemma3TextConfig(
        **SIZES,
        head_dim=8,
        sliding_window=7,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        query_pre_attn_scalar=8,
    ),
    "qwen3_next": lambda: Qwen3NextConfig(
        **SIZES,
        head_dim=8,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        linear_num_value_heads=4,
        linear_num_key_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=0,
        mlp_only_layers=[0, 1, 2],
    ),
}


def tiny(family: str = "llama", seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(CONFIGS[family](), dtype=torch.float32)
    # The default initialisation makes all logits nearly equal; these weights make attention matter.
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.25)
    return model


def example(ids: list[int], weights: list[float] | None = None, **more: object) -> Example:
    return Example(ids=tuple(ids), weights=tuple(weights or [0.0] + [1.0] * (len(ids) - 1)), **more)


def family_of_examples(seed: int = 0) -> list[Example]:
    """Two prompts; below them branches at several depths, a duplicate, a prefix of another and a stranger."""
    draw = random.Random(seed)

    def some(count: int) -> list[int]:
        return [draw.randrange(3, VOCABULARY) for _ in range(count)]

    prompt, other, middle = some(20), some(9), some(12)
    tails = [some(15), some(6), some(30)]
    sequences = [
        prompt + middle + tails[0] + [2],
        prompt + middle + tails[1] + [2],
        prompt + tails[2] + [2] + some(5),
        prompt + middle + tails[0] + [2],
        prompt + middle,
        other + some(18),
        other + some(1),
        some(25),
    ]
    return [
        example(
            ids,
            [0.0] + [draw.choice([0.0, 1.0, 1.0, 0.5]) for _ in ids[1:]],
            advantages=tuple(round(draw.uniform(-1, 1), 2) for _ in ids),
            behaviour_logprobs=tuple(-draw.random() for _ in ids),
            episode=f"episode-{number}",
        )
        for number, ids in enumerate(sequences)
    ]
