"""Microbatches by a token budget, examples with a common prefix side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.training.tree import PrefixTree, build_tree, common_prefix


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


def _too_long(example: Example, budget: int) -> str:
    name = example.episode or example.source or "example"
    return (
        f"{name}: {len(example.ids)} tokens do not fit microbatch_tokens = {budget}; "
        f"set microbatch_tokens >= {len(example.ids)} or lower window_turns"
    )
