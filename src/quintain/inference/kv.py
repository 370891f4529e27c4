"""The KV cache: a pool of slots, one sequence each, bounded in tokens."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor

STEP = 64
"""A slot's capacity is a multiple of this many tokens."""


class KVPool:
    """Keys and values of all layers for up to `slots` sequences of up to `capacity` tokens.

    Both are `[S, G, C, D]` (slots, key/value heads, capacity, head size). Layers are allocated at their first write,
    because only then their shapes are known for every architecture; the zeros matter, because what lies
    beyond a sequence's end is multiplied by probability 0 and must not be NaN.

    Args:
        slots: most sequences at once.
        budget: most tokens, `slots * capacity`, at any time.
    """

    def __init__(self, slots: int, budget: int) -> None:
        self.most = slots
        self.budget = budget
        self.capacity = min(max(4 * STEP, budget // slots), budget)
        self.slots = min(slots, budget // self.capacity)
        self._keys: dict[int, Tensor] = {}
        self._values: dict[int, Tensor] = {}

    def slots_at(self, length: int) -> tuple[int, int]:
        """`(slots, capacity)` of the pool once sequences of `length` tokens must fit."""
        roomy = max(length, self.capacity * 5 // 4)
        capacity = max(length, min(self.budget, -(-roomy // STEP) * STEP))
        return min(self.most, self.budget // capacity), capacity

    @torch.inference_mode()
    def resize(self, slots: int, capacity: int, keep: Sequence[int]) -> None:
        """Gives the pool another shape; the slots of `keep` move to 0, 1, ... in that order.

        One layer at a time, so that both copies of the whole cache never exist at once.
        """
        self.slots, self.capacity = slots, capacity
        for layers in (self._keys, self._values):
            for layer, before in layers.items():
                layers[layer] = _zeros((slots, before.shape[1], capacity, before.shape[3]), before)
                layers[layer][: len(keep), :, : before.shape[2]] = before[list(keep)]

    @torch.inference_mode()
    def copy(self, source: int, target: int, length: int) -> None:
        """Copies the first `length` tokens of one slot to another."""
        for tensor in chain(self._keys.values(), self._values.values()):
            tensor[target, :, :length] = tensor[source, :, :length]

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Cache of one layer, allocated to fit `key` and `value` `[T, G, D]` at its first use."""
        if index not in self._keys:
            for layers, new in ((self._keys, key), (self._values, value)):
                layers[index] = _zeros((self.slots, new.shape[1], self.capacity, new.shape[2]), new)
        return self._keys[index], self._values[index]


def _zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Zeros in the type and place of `like`; on a CPU memory that costs nothing until it is written.

    A pool can be large and is rarely full, and pages the kernel hands out are zero already.
    """
    if like.device.type != "cpu":
        return like.new_zeros(shape)
    pages = mmap.mmap(-1, math.prod(shape) * like.element_size())
    return torch.frombuffer(pages, dtype=like.dtype).view(shape)
