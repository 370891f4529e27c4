"""Prefix trees: examples merged so that every shared prefix is computed once.

The tokens of a tree lie in depth-first order (a token, then everything that follows it), so the
descendants of token `i` are exactly `i + 1 .. ends[i] - 1`. A query `q` may therefore attend to a key
`k` if and only if `k <= q < ends[k]`, which needs no table of ancestors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from quintain.interface.example import Example


@dataclass(frozen=True, slots=True)
class Predictions:
    """What the loss asks of the model, sorted by source; a source may predict several targets.

    Examples that agree on source, target, advantage and behaviour log-probability share one prediction
    whose weight is the sum of theirs. `member_*` keep who asked for what, for losses over whole examples.

    Attributes:
        sources: index of the token that predicts `[M]`.
        targets: id predicted `[M]`.
        weights: loss weight `[M]`.
        advantages: advantage, 0 where the example has none `[M]`.
        behaviour: log-probability under the behaviour policy, 0 where the example has none `[M]`.
        member_examples: which example `[K]`.
        member_predictions: which prediction of this list `[K]`.
        member_weights: weight in that example `[K]`.
    """

    sources: Tensor
    targets: Tensor
    weights: Tensor
    advantages: Tensor
    behaviour: Tensor
    member_examples: Tensor
    member_predictions: Tensor
    member_weights: Tensor

    def __len__(self) -> int:
        return int(self.sources.shape[0])

    def to(self, device: torch.device) -> Predictions:
        """All tensors on a device."""
        return replace(self, **{field.name: getattr(self, field.name).to(device) for field in fields(self)})


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """A forest of token ids in depth-first order.

    Attributes:
        ids: token ids `[N]`.
        positions: depth of each token, its position in every example that holds it `[N]`.
        parents: index of the token before it, -1 at a root `[N]`.
        ends: one past its last descendant `[N]`.
        segments: number of the unbranched run a token belongs to, rising `[N]`.
        predictions: what the loss asks for.
        examples: number of examples.
        example_tokens: tokens the examples hold without sharing.
    """

    ids: Tensor
    positions: Tensor
    parents: Tensor
    ends: Tensor
    segments: Tensor
    predictions: Predictions
    examples: int
    example_tokens: int

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    @property
    def loss_weight(self) -> float:
        """Sum of all loss weights."""
        return float(self.predictions.weights.sum())

    def leaves(self) -> Tensor:
        """Indices of the tokens nothing follows, in order `[L]`."""
        return torch.nonzero(self.ends == torch.arange(1, len(self) + 1)).flatten()

    def path(self, index: int) -> Tensor:
        """Indices from the root to a token, both included `[depth + 1]`."""
        chain = torch.empty(int(self.positions[index]) + 1, dtype=torch.long)
        for depth in range(len(chain) - 1, -1, -1):
            chain[depth] = index
            index = int(self.parents[index])
        return chain


def common_prefix(left: np.ndarray, right: np.ndarray) -> int:
    """Length of the longest common prefix of two id arrays."""
    size = min(len(left), len(right))
    differs = left[:size] != right[:size]
    return int(differs.argmax()) if differs.any() else size


def build_tree(examples: Sequence[Example], *, share: bool = True) -> PrefixTree:
    """Merges examples into a prefix tree.

    Args:
        examples: at least one, none empty.
        share: False keeps every example a tree of its own, for models that can't run a tree.
    """
    order = sorted(range(len(examples)), key=lambda index: examples[index].ids) if share else range(len(examples))
    nodes = _Nodes(sum(len(example.ids) for example in examples))
    asked = _Asked()
    previous = np.empty(0, dtype=np.int64)
    for index in order:
        example = examples[index]
        current = np.asarray(example.ids, dtype=np.int64)
        nodes.extend(current, common_prefix(previous, current) if share else 0)
        asked.add(index, example, nodes.path)
        previous = current
    ids, positions, parents = nodes.arrays()
    ends = _ends(parents)
    return PrefixTree(
        ids=torch.from_numpy(ids),
        positions=torch.from_numpy(positions),
        parents=torch.from_numpy(parents),
        ends=torch.from_numpy(ends),
        segments=torch.from_numpy(_segments(parents)),
        predictions=asked.predictions(),
        examples=len(examples),
        example_tokens=sum(len(example.ids) for example in examples),
    )


class _Nodes:
    """Tokens so far and the path of the last example. Sorted examples make appending a depth-first walk."""

    def __init__(self, capacity: int) -> None:
        self._ids = np.empty(capacity, dtype=np.int64)
        self._positions = np.empty(capacity, dtype=np.int64)
        self._parents = np.empty(capacity, dtype=np.int64)
        self._size = 0
        self.path = np.empty(0, dtype=np.int64)

    def extend(self, ids: np.ndarray, shared: int) -> None:
        start, stop = self._size, self._size + len(ids) - shared
        self._ids[start:stop] = ids[shared:]
        self._positions[start:stop] = np.arange(shared, len(ids))
        self._parents[start:stop] = np.arange(start - 1, stop - 1)
        if stop > start:
            self._parents[start] = self.path[shared - 1] if shared else -1
        self.path = np.concatenate([self.path[:shared], np.arange(start, stop)])
        self._size = stop

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._ids[: self._size], self._positions[: self._size], self._parents[: self._size]


class _Asked:
    """Predictions keyed by all that tells them apart."""

    def __init__(self) -> None:
        self._weights: dict[tuple[int, int, float, float], float] = {}
        self._members: list[tuple[int, tuple[int, int, float, float], float]] = []

    def add(self, index: int, example: Example, path: np.ndarray) -> None:
        for place, weight in enumerate(example.weights):
            if not weight:
                continue
            advantage = example.advantages[place] if example.advantages else 0.0
            behaviour = example.behaviour_logprobs[place] if example.behaviour_logprobs else 0.0
            key = (int(path[place - 1]), example.ids[place], advantage, behaviour)
            self._weights[key] = self._weights.get(key, 0.0) + weight
            self._members.append((index, key, weight))

    def predictions(self) -> Predictions:
        keys = sorted(self._weights)
        number = {key: place for place, key in enumerate(keys)}
        members = sorted((index, number[key], weight) for index, key, weight in self._members)
        return Predictions(
            sources=_long([key[0] for key in keys]),
            targets=_long([key[1] for key in keys]),
            weights=_float([self._weights[key] for key in keys]),
            advantages=_float([key[2] for key in keys]),
            behaviour=_float([key[3] for key in keys]),
            member_examples=_long([member[0] for member in members]),
            member_predictions=_long([member[1] for member in members]),
            member_weights=_float([member[2] for member in members]),
        )


def _long(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.long)


def _float(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)


def _ends(parents: np.ndarray) -> np.ndarray:
    """One past the last descendant: in depth-first order a parent's end is its last child's."""
    ends = np.arange(1, len(parents) + 1)
    for index in range(len(parents) - 1, -1, -1):
        parent = parents[index]
        if parent >= 0 and ends[index] > ends[parent]:
            ends[parent] = ends[index]
    return ends


def _segments(parents: np.ndarray) -> np.ndarray:
    """A run ends before a root, before a second child and after a token with several children."""
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    index = np.arange(len(parents))
    starts = (parents != index - 1) | (parents < 0)
    starts[1:] |= children[:-1] > 1
    return np.cumsum(starts) - 1
