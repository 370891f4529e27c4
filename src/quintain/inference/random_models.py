"""Models of the default one's kind with random weights: small ones, to see what size does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError

REFERENCE = re.compile(r"random:(\d+)x(\d+)")
HEAD = 64
"""Width of a head, as in the default model."""


def shape_in(ref: str) -> tuple[int, int] | None:
    """Layers and width of `random:LAYERSxWIDTH`; None for another reference.

    Raises:
        InputError: no layer, or a width that is no whole number of heads.

    >>> shape_in("random:8x256"), shape_in("smollm2-135m")
    ((8, 256), None)
    """
    found = REFERENCE.fullmatch(ref)
    if found is None:
        return None
    layers, width = int(found[1]), int(found[2])
    if not layers or not width or width % HEAD:
        raise InputError(f"model {ref!r}: layers must be at least 1, and the width a multiple of {HEAD}")
    return layers, width


def write_random(like: Path, layers: int, width: int, target: Path) -> None:
    """Writes a model with the tokenizer and the proportions of another one, drawn with seed 0.

    Args:
        like: folder of the other model, of Llama's kind.
        layers: how many.
        width: of the residual stream.
        target: the new folder.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    config: Any = AutoConfig.from_pretrained(str(like), local_files_only=True)
    heads = width // HEAD
    # at least three heads share keys, as in the default model
    shared = max(count for count in range(1, max(1, heads // 3) + 1) if heads % count == 0)
    config.num_hidden_layers, config.hidden_size = layers, width
    config.intermediate_size = width * 8 // 3
    config.num_attention_heads, config.num_key_value_heads, config.head_dim = heads, shared, HEAD
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    model.save_pretrained(target)
    AutoTokenizer.from_pretrained(str(like), local_files_only=True).save_pretrained(target)
