"""A step's trees over the ranks: as many for each, and as nearly as possible the same tokens."""

from __future__ import annotations

from collections.abc import Sequence

from quintain.interface.example import Example
from quintain.training.packing import Packing
from quintain.training.tree import PrefixTree, build_tree

_WELL_SPREAD = 0.1
"""Share of the ranks' time that may be idle before trees are packed again, smaller."""


def spread(
    examples: Sequence[Example], budget: int, ranks: int, packing: Packing, *, share: bool
) -> list[list[PrefixTree]]:
    """Packs a batch and deals its trees out `[ranks][trees]`; where they come out uneven, into smaller trees.

    Args:
        examples: of one optimiser step.
        budget: most tokens of a tree.
        ranks: how many share the work.
        packing: makes the trees.
        share: whether trees share prefixes.

    Raises:
        InputError: one example alone is longer than the budget.
    """
    trees = packing(examples, budget, share=share)
    dealt = deal(trees, ranks)
    if idle(dealt) <= _WELL_SPREAD:
        return dealt
    tokens, longest = sum(map(len, trees)), max(len(example.ids) for example in examples)
    rounds = -(-tokens // (budget * ranks))
    even = max(longest, -(-tokens // (rounds * ranks)))
    again = deal(packing(examples, min(budget, even), share=share), ranks)
    return min(dealt, again, key=duration)


def deal(trees: Sequence[PrefixTree], ranks: int) -> list[list[PrefixTree]]:
    """Deals trees out in rounds, the longest first and in each round to who has the fewest tokens so far.

    All ranks compute their n-th trees together, for every layer's weights are gathered by all at once. So trees of one
    round should be equally long, which sorting does best, and ranks that go without one get an empty tree. The most
    tokens of a rank and the fewest differ by no more than the longest tree.
    """
    if ranks == 1:
        return [list(trees)]
    dealt: list[list[PrefixTree]] = [[] for _ in range(ranks)]
    ordered = sorted(trees, key=len, reverse=True)
    for start in range(0, len(ordered), ranks):
        behind = sorted(dealt, key=_tokens)
        hand = ordered[start : start + ranks]
        for place, own in enumerate(behind):
            own.append(hand[place] if place < len(hand) else empty_tree())
    return dealt


def empty_tree() -> PrefixTree:
    """One token and no loss: a rank without work computes it beside the others."""
    return build_tree([Example(ids=(0,), weights=(0.0,))])


def duration(dealt: Sequence[Sequence[PrefixTree]]) -> int:
    """Tokens that pass until all are done: the longest tree of every round."""
    return sum(max(map(len, one)) for one in zip(*dealt, strict=True))


def idle(dealt: Sequence[Sequence[PrefixTree]]) -> float:
    """Share of the ranks' time in which they wait for each other."""
    whole = len(dealt) * duration(dealt)
    return 1.0 - sum(map(_tokens, dealt)) / whole if whole else 0.0


def _tokens(trees: Sequence[PrefixTree]) -> int:
    return sum(map(len, trees))
