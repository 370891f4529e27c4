"""How large a model is, from its dimensions: parameters, work and memory per token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quintain.inference.models import DEFAULT, cache_folder
from quintain.interface.errors import InputError
from quintain.recipe.tables import ShapeSection

FLOAT32 = 4
"""Bytes of a weight, as the trainer loads them."""


def shape_of(reference: str) -> ShapeSection:
    """Dimensions of a model that is on this machine; nothing is downloaded.

    Raises:
        InputError: it is not, or its configuration is that of another kind of model.
    """
    folder = cache_folder() / "models" / DEFAULT if reference == DEFAULT else Path(reference)
    remedy = "add its dimensions as [plan.shape]"
    if not (folder / "config.json").is_file() and (reference == DEFAULT or reference.count("/") != 1):
        raise InputError(f"plan: model {reference!r} is not on this machine; {remedy}")
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(
            str(folder) if (folder / "config.json").is_file() else reference, local_files_only=True
        ).get_text_config()
        return _shape(config)
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(
            f"plan: the dimensions of {reference!r} are not known here ({type(error).__name__}); {remedy}"
        ) from None


def _shape(config: Any) -> ShapeSection:
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None) or 1
    return ShapeSection(
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        intermediate=config.moe_intermediate_size if experts > 1 else config.intermediate_size,
        vocabulary=config.vocab_size,
        experts=experts,
        experts_used=config.num_experts_per_tok if experts > 1 else 1,
        tied=bool(config.tie_word_embeddings),
    )


def parameters(shape: ShapeSection, *, active: bool = False) -> int:
    """Weights of a decoder with gated feed-forward blocks, norms and biases left out.

    Embeddings `V d` (twice if not tied), and in each layer attention `2 d (H + K) h` and feed-forward `3 d f` for each
    expert, with its router `d E`.

    Args:
        shape: the dimensions.
        active: count the experts a token passes through, not all.
    """
    experts = shape.experts_used if active else shape.experts
    attention = 2 * shape.hidden * (shape.heads + shape.kv_heads) * shape.head_dim
    forward = 3 * shape.hidden * shape.intermediate * experts
    router = shape.hidden * shape.experts if shape.experts > 1 else 0
    embeddings = shape.vocabulary * shape.hidden * (1 if shape.tied else 2)
    return embeddings + shape.layers * (attention + forward + router)


def lora_parameters(shape: ShapeSection, rank: int) -> int:
    """Weights of adapters on every linear layer but the head: `r (in + out)` each; experts have none."""
    width = shape.heads * shape.head_dim
    kv = shape.kv_heads * shape.head_dim
    attention = 2 * (shape.hidden + width) + 2 * (shape.hidden + kv)
    forward = 3 * (shape.hidden + shape.intermediate) if shape.experts == 1 else 0
    return rank * shape.layers * (attention + forward)


def training_flops(shape: ShapeSection, context: int, *, lora: bool = False, recompute: bool = False) -> float:
    """Floating-point operations to learn from one token, at most.

    A forward pass costs `2 N` for the active weights and `2 L H h T` for causal attention over documents of `T`
    tokens; a backward pass twice as much, or as much if the weights are frozen; recomputing one more forward pass.
    """
    forward = forward_flops(shape, context)
    return forward * (1 + (1 if lora else 2) + recompute)


def forward_flops(shape: ShapeSection, context: int) -> float:
    """Operations of one token's forward pass within a document of `context` tokens."""
    attention = 2 * shape.layers * shape.heads * shape.head_dim * context
    return 2 * parameters(shape, active=True) + attention


def training_bytes(
    shape: ShapeSection, tokens: int, *, lora_rank: int = 0, recompute: bool = False, precision: str = "float32"
) -> dict[str, float]:
    """Bytes of training, of the states (shared among accelerators) and of one microbatch's activations.

    States: 16 bytes per trained weight (weight, gradient, AdamW's two moments in float32), 4 per frozen one.
    Activations of a token and layer: `68 d` bytes in float32, half of that in Korthikanti et al. 2022 for 16 bit and
    without attention scores, which fused attention never stores; with recomputing the layer's input `4 d` alone, and
    one layer in full. All of it is half as much in bfloat16.
    """
    total = parameters(shape)
    states = FLOAT32 * total + 16 * lora_parameters(shape, lora_rank) if lora_rank else 16 * total
    layer = 68 * shape.hidden
    kept = shape.layers * FLOAT32 * shape.hidden + layer if recompute else shape.layers * layer
    return {"states": states, "activations": tokens * kept / (2 if precision == "bfloat16" else 1)}


def most_tokens(shape: ShapeSection, room: float, accelerators: int = 1, **settings: Any) -> int:
    """Tokens of the largest microbatch, and so of the longest document, that one accelerator has room for.

    Args:
        shape: the dimensions.
        room: bytes of one.
        accelerators: how many share the states.
        settings: of `training_bytes`.

    Returns:
        0 where the states alone are too large.
    """
    size = training_bytes(shape, 1, **settings)
    return max(0, int((room - size["states"] / accelerators) // size["activations"]))


def kv_bytes(shape: ShapeSection) -> int:
    """Bytes one token takes in the key-value cache, in float32."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * FLOAT32
