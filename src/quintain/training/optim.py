"""AdamW, its learning-rate schedule and gradient clipping."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

BETAS = (0.9, 0.95)
"""A second moment over about 20 steps: agent training runs are hundreds of steps long, not millions."""

FIRST_STEP = 0.1
"""Share of the peak rate that the very first step uses at least, so that no computed gradient is thrown away."""


def adamw(parameters: Iterable[nn.Parameter], learning_rate: float, decay: float) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019) over the trainable parameters; vectors (norms, biases) are never decayed."""
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in trainable if parameter.ndim >= 2], "weight_decay": decay},
        {"params": [parameter for parameter in trainable if parameter.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=learning_rate, betas=BETAS, fused=True)


def rate_share(progress: float, warmup: float) -> float:
    """Share of the peak learning rate at a progress in [0, 1]: linear up, then linear down to 0.

    Linear decay to zero beats a cosine to 10 % at the same compute (Bergsma et al. 2025, "Straight to Zero").
    """
    if progress < warmup:
        return max(FIRST_STEP, progress / warmup)
    return max(0.0, (1.0 - progress) / (1.0 - warmup))


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Sets the rate of every group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> Tensor:
    """Scales all gradients down to a total 2-norm of `limit`, over all ranks; returns the norm before."""
    with_gradient = [parameter for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm([parameter.grad for parameter in with_gradient if parameter.grad is not None])
    norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
    nn.utils.clip_grads_with_norm_(with_gradient, limit, norm)
    return norm
