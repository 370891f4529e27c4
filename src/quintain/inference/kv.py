"""The KV cache: a pool of slots, one sequence each, bounded in tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

STEP = 64
"""A slot's capacity is a multiple of this many tokens."""


class KVPool:
    """Keys and values of all layers for up to `slots` sequences of up to `capacity` tokens.

    Keys lie transposed, `[S, G, D, C]` (slots, key/value heads, head size, capacity), values `[S, G, C, D]`: so the
    two products of a decode step both run along memory. Layers are allocated at their first write, because
    only then their shapes are known for every architecture; the zeros matter, because what lies beyond a
    sequence's end is multiplied by probability 0 and must not be NaN.

    Args:
        slots: most sequences at once.
        budget: most tokens, `slots * capacity`, at any time.
    """

    def __init__(self, slots: int, budget: int) -> None:
        self.most = slots
        self.budget = budget
        self.capacity = min(4 * STEP, budget)
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
        for layer in self._keys:
            keys, values = self._keys[layer], self._values[layer]
            self._keys[layer] = keys.new_zeros(slots, *keys.shape[1:3], capacity)
            self._keys[layer][: len(keep), :, :, : keys.shape[3]] = keys[list(keep)]
            self._values[layer] = values.new_zeros(slots, values.shape[1], capacity, values.shape[3])
            self._values[layer][: len(keep), :, : values.shape[2]] = values[list(keep)]

    @torch.inference_mode()
    def copy(self, source: int, target: int, length: int) -> None:
        """Copies the first `length` tokens of one slot to another."""
        for keys in self._keys.values():
            keys[target, :, :, :length] = keys[source, :, :, :length]
        for values in self._values.values():
            values[target, :, :length] = values[source, :, :length]

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Cache of one layer, allocated to fit `key` and `value` `[1, G, T, D]` at its first use."""
        if index not in self._keys:
            shape = (self.slots, key.shape[1], key.shape[3], self.capacity)
            self._keys[index] = torch.zeros(shape, dtype=key.dtype, device=key.device)
            shape = (self.slots, value.shape[1], self.capacity, value.shape[3])
            self._values[index] = torch.zeros(shape, dtype=value.dtype, device=value.device)
        return self._keys[index], self._values[index]
