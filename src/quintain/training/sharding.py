"""FSDP2: a model's weights, gradients and moments cut over the ranks, row by row (Zhao et al. 2023, arXiv 2304.11277).

The model itself stays whole on rank 0, where it plays, is saved and is measured; what is trained is a copy of which
every rank holds its rows. Weights go from one to the other parameter by parameter, never all at once.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import distribute_tensor

from quintain.interface.errors import InputError
from quintain.training import ranks
from quintain.training.forward import TreeForward, causal_lm


def hollow(model: Any, device: str = "meta") -> Any:
    """A copy without weights: float32 parameters of the same shapes, nothing in them; buffers are copied."""
    memo: dict[int, Any] = {
        id(one): nn.Parameter(torch.empty(one.shape, dtype=torch.float32, device=device), one.requires_grad)
        for one in model.parameters()
    }
    return copy.deepcopy(model, memo)


def shard(forward: TreeForward, precision: str) -> None:
    """Cuts a model over the ranks, in place: every layer is gathered when it is computed, the rest with the whole.

    Args:
        forward: of the model.
        precision: `bfloat16` gathers and computes in it; rows, sums of gradients and moments stay float32.

    Raises:
        InputError: the model does not say which of its modules are layers.
    """
    mesh = init_device_mesh(ranks.device().type, (ranks.size(),))
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if precision == "bfloat16" else None, reduce_dtype=torch.float32
    )
    for layer in _layers(causal_lm(forward.model)):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(forward, mesh=mesh, mp_policy=policy)
    for module in forward.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # losses are shares of one sum already: nothing is averaged
            module.set_force_sum_reduction_for_comms(True)  # gloo knows no other


def _layers(causal: Any) -> list[nn.Module]:
    names = set(getattr(causal, "_no_split_modules", None) or ())
    found = [module for module in causal.modules() if type(module).__name__ in names]
    if not found:
        raise InputError(f"{type(causal).__name__} can't be sharded: it names no layers in _no_split_modules")
    return found


def push(whole: Any, part: Any) -> None:
    """Hands rank 0's weights out; `whole` may be hollow on the other ranks."""
    wanted = dict(part.named_parameters())
    for name, source in whole.named_parameters():
        target = wanted[name]
        values = source.detach() if ranks.rank() == 0 else torch.empty(source.shape)
        values = values.to(ranks.device(), torch.float32).contiguous()
        ranks.rows(target).copy_(ranks.rows(distribute_tensor(values, target.device_mesh, target.placements)))


def pull(part: Any, whole: Any) -> None:
    """Gathers what was trained into rank 0's model, in place."""
    targets = dict(whole.named_parameters())
    for name, parameter in part.named_parameters():
        if parameter.requires_grad:
            values = parameter.detach().full_tensor()
            if ranks.rank() == 0:
                targets[name].data.copy_(values)
