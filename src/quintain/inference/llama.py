"""The forward pass of the llama family (Llama, Qwen 2, Qwen 3) over a flat batch, on the modules' own parameters.

In a decode step of a small model, transformers' own code spends as much on small operations and calls of modules as on
attention. The engine compares both on a few tokens before it uses this one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM

from quintain.inference.attention import Plan, attend
from quintain.inference.products import product

_FAMILY = (LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)


def is_llama(model: Any) -> bool:
    """Whether `forward` computes this model: of the family, its linear layers plain (no adapters, not quantised)."""
    if type(model) not in _FAMILY:
        return False
    linear = [module for name, module in model.named_modules() if name.endswith(("_proj", "lm_head"))]
    return all(type(module) is nn.Linear for module in linear)


def forward(model: Any, ids: Tensor, positions: Tensor, ends: Tensor, plan: Plan) -> Tensor:
    """Logits that follow some of the tokens.

    Args:
        model: one for which `is_llama` holds.
        ids: `[T]`.
        positions: `[T]`.
        ends: indices of the tokens `[R]`.
        plan: where keys and values go, and who attends to whom.

    Returns:
        `[R, V]`.
    """
    body = model.model
    hidden = body.embed_tokens(ids)
    cosine, sine = body.rotary_emb(hidden, positions[None])
    rotary = cosine[0][:, None], sine[0][:, None]  # [T, 1, D]
    for layer in body.layers:
        hidden += _attention(layer.self_attn, _norm(hidden, layer.input_layernorm), rotary, plan)
        hidden += _mlp(layer.mlp, _norm(hidden, layer.post_attention_layernorm))
    return _linear(_norm(hidden[ends], body.norm), model.lm_head)


def _attention(module: Any, hidden: Tensor, rotary: tuple[Tensor, Tensor], plan: Plan) -> Tensor:
    query, key, value = (
        _linear(hidden, linear).reshape(len(hidden), -1, module.head_dim)
        for linear in (module.q_proj, module.k_proj, module.v_proj)
    )
    if hasattr(module, "q_norm"):
        query, key = _norm(query, module.q_norm), _norm(key, module.k_norm)
    heads = query.shape[1]
    turned = _rotate(torch.cat([query, key], dim=1), *rotary)
    window = getattr(module, "sliding_window", None)
    found = attend(plan, module.layer_idx, turned[:, :heads], turned[:, heads:], value, module.scaling, window)
    return _linear(found.flatten(1), module.o_proj)


def _mlp(module: Any, hidden: Tensor) -> Tensor:
    gate = module.act_fn(_linear(hidden, module.gate_proj))
    return _linear(gate.mul_(_linear(hidden, module.up_proj)), module.down_proj)


def _rotate(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding (Su et al. 2021) of `[T, N, D]`, halves paired as in transformers."""
    first, second = heads.chunk(2, dim=-1)
    return torch.addcmul(heads * cosine, torch.cat([-second, first], dim=-1), sine)


def _norm(x: Tensor, module: Any) -> Tensor:
    """Root mean square norm (Zhang & Sennrich 2019) over the last dimension."""
    return nn.functional.rms_norm(x, x.shape[-1:], module.weight, module.variance_epsilon)


def _linear(x: Tensor, module: nn.Linear) -> Tensor:
    return product(x, module.weight, module.bias)
