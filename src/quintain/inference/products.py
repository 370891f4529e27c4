"""Matrix products with few rows, which decide how fast tokens are generated.

GEMM libraries are slow for a thin left side against a weight that lies row by row, as `nn.Linear` keeps it. Turning the
product round helps below some 50 rows; a weight that lies column by column helps at any number.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

THIN = 48
"""Up to this many rows `weight @ x.T` beats `F.linear` on a CPU for weights that lie row by row."""


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x` `[T, in]` by `weight` `[out, in]` to `[T, out]`, as `F.linear`."""
    if x.shape[0] > THIN or x.device.type != "cpu" or by_columns(weight):
        return nn.functional.linear(x, weight, bias)
    out = torch.mm(weight, x.t()).t()
    return out if bias is None else out + bias


class ThinLinear(nn.Linear):
    """A linear layer that is fast for few rows."""

    def forward(self, input: Tensor) -> Tensor:
        """`[..., T, in]` to `[..., T, out]`."""
        return product(input.flatten(0, -2), self.weight, self.bias).reshape(*input.shape[:-1], -1)


def by_columns(weight: Tensor) -> bool:
    """Whether a matrix lies column by column in memory."""
    return weight.stride(0) == 1 and weight.shape[0] > 1


def lay_by_columns(model: Any) -> None:
    """Moves the weights of a model's linear layers to column by column, in place; values and shapes stay.

    Trainer and engine then share the storage that is fast for both. Do it before an optimizer is made: its moments
    take the layout of their weights. An output layer tied to the embedding stays, because rows are looked up in it.
    """
    embedding = model.get_input_embeddings().weight
    for module in model.modules():
        if isinstance(module, nn.Linear) and module.weight is not embedding:
            module.weight.data = module.weight.data.t().contiguous().t()
