"""Microbatches by a token budget: shared prefixes side by side, or documents where they fit best."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.training.tree import PrefixTree, build_tree, common_prefix


class Packing(Protocol):
    """Splits the examples of one optimiser step into microbatches."""

    def __call__(self, examples: Sequence[Example], budget: int, *, share: bool = True) -> list[PrefixTree]:
        """Trees of at most `budget` tokens."""
        ...


def pack(examples: Sequence[Example], budget: int, *, share: bool = True) -> list[PrefixTree]:
    """Splits examples into prefix trees of at most `budget` tokens each.

    In the order of their ids, an example adds exactly the tokens it does not share with the one before it, so
    filling trees in that order keeps shared prefixes together.

    Args:
        examples: of one optimiser batch; those without loss are left out, for they change nothing.
        budget: most tokens of a tree, shared ones counted once.
        share: False counts and keeps every example apart, for models that can't run a tree.

    Raises:
        InputError: one example alone is longer than the budget.
    """
    kept = [example for example in examples if example.loss_tokens]
    ordered = sorted(kept, key=lambda example: example.ids) if share else kept
    groups: list[list[Example]] = []
    previous = np.empty(0, dtype=np.int64)
    used = budget
    for example in ordered:
        current = np.asarray(example.ids, dtype=np.int64)
        if len(current) > budget:
            raise InputError(_too_long(example, budget))
        added = len(current) - (common_prefix(previous, current) if share else 0)
        if used + added > budget:
            groups.append([])
            used, added = 0, len(current)
        groups[-1].append(example)
        used += added
        previous = current
    return [build_tree(group, share=share) for group in groups]


def best_fit(examples: Sequence[Example], budget: int, *, share: bool = True) -> list[PrefixTree]:
    """Splits documents into as few trees of at most `budget` tokens as best-fit-decreasing finds.

    The longest document first, each into the fullest tree that still holds it (Ding et al. 2024, "Fewer
    Truncations Improve Language Modeling"). No document is cut, and none sees another: every document is a path
    of its own from a root, with positions from 0. Prefixes that documents of one tree share are computed once.

    Args:
        examples: of one optimiser step; those without loss are left out.
        budget: most tokens of a tree, shared ones counted for every document.
        share: False keeps every document a tree of its own, for models that can't run a tree.

    Raises:
        InputError: one document alone is longer than the budget.
    """
    kept = [example for example in examples if example.loss_tokens]
    groups: list[list[Example]] = []
    rooms: list[tuple[int, int]] = []  # (free tokens, number of the tree), sorted
    for example in sorted(kept, key=lambda one: -len(one.ids)):
        if len(example.ids) > budget:
            raise InputError(_too_long(example, budget))
        place = bisect_left(rooms, (len(example.ids), -1))
        if place < len(rooms):
            free, number = rooms.pop(place)
        else:
            free, number = budget, len(groups)
            groups.append([])
        groups[number].append(example)
        insort(rooms, (free - len(example.ids), number))
    return [build_tree(group, share=share) for group in groups]


def _too_long(example: Example, budget: int) -> str:
    name = example.episode or example.source or "example"
    return (
        f"{name}: {len(example.ids)} tokens do not fit microbatch_tokens = {budget}; "
        f"set microbatch_tokens >= {len(example.ids)} or lower window_turns"
    )
