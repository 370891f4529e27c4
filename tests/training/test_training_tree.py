"""Prefix trees and packing: nothing lost, nothing twice, nothing past the budget."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from training_models import example

from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.training.packing import pack
from quintain.training.tree import PrefixTree, build_tree

untimed = settings(deadline=None, max_examples=60)


@st.composite
def some_examples(draw: st.DrawFn) -> list[Example]:
    """Few different ids, so that prefixes, duplicates and branch points are common."""
    found = []
    for number in range(draw(st.integers(1, 8))):
        ids = draw(st.lists(st.integers(0, 2), min_size=1, max_size=12))
        weights = [0.0, *draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(ids) - 1, max_size=len(ids) - 1))]
        advantage = draw(st.sampled_from([None, -1.0, 1.0]))
        advantages = None if advantage is None else (advantage,) * len(ids)
        found.append(example(ids, weights, advantages=advantages, episode=str(number)))
    return found


def wanted(examples: list[Example]) -> dict:
    """What the examples ask for: total weight by everything that decides a prediction's loss."""
    sums: dict = {}
    for one in examples:
        for place, weight in enumerate(one.weights):
            advantage = one.advantages[place] if one.advantages else 0.0
            key = (one.ids[:place], one.ids[place], advantage)
            if weight:
                sums[key] = sums.get(key, 0.0) + weight
    return sums


def asked(trees: list[PrefixTree]) -> dict:
    sums: dict = {}
    for tree in trees:
        asks = tree.predictions
        for index in range(len(asks)):
            prefix = tuple(tree.ids[tree.path(int(asks.sources[index]))].tolist())
            key = (prefix, int(asks.targets[index]), float(asks.advantages[index]))
            sums[key] = sums.get(key, 0.0) + float(asks.weights[index])
    return sums


@untimed
@given(some_examples())
def test_a_tree_asks_for_exactly_what_its_examples_ask_for(examples):
    assert asked([build_tree(examples)]) == wanted(examples)


@untimed
@given(some_examples())
def test_a_tree_is_the_full_trie_of_its_examples(examples):
    tree = build_tree(examples)
    prefixes = {one.ids[:length] for one in examples for length in range(1, len(one.ids) + 1)}
    assert {tuple(tree.ids[tree.path(index)].tolist()) for index in range(len(tree))} == prefixes
    assert len(tree) == len(prefixes)


@untimed
@given(some_examples())
def test_descendants_of_a_token_lie_between_it_and_its_end(examples):
    tree = build_tree(examples)
    paths = [set(tree.path(index).tolist()) for index in range(len(tree))]
    for index in range(len(tree)):
        below = [other for other, path in enumerate(paths) if index in path]
        assert below == list(range(index, int(tree.ends[index])))


@untimed
@given(some_examples())
def test_segments_are_the_unbranched_runs(examples):
    tree = build_tree(examples)
    for index in range(1, len(tree)):
        parent = int(tree.parents[index])
        only_child = parent >= 0 and int((tree.parents == parent).sum()) == 1
        assert (tree.segments[index] == tree.segments[index - 1]) == (only_child and parent == index - 1)


@untimed
@given(some_examples())
def test_members_say_which_example_asked_for_what(examples):
    asks = build_tree(examples).predictions
    sums = torch.zeros(len(asks)).index_add_(0, asks.member_predictions, asks.member_weights)
    torch.testing.assert_close(sums, asks.weights)
    for number, one in enumerate(examples):
        mine = asks.member_predictions[asks.member_examples == number]
        expected = [token for token, weight in zip(one.ids, one.weights, strict=True) if weight]
        assert sorted(asks.targets[mine].tolist()) == sorted(expected)


@untimed
@given(some_examples(), st.integers(12, 40))
def test_packing_keeps_to_the_budget_and_loses_no_example(examples, budget):
    trees = pack(examples, budget)
    assert all(len(tree) <= budget for tree in trees)
    assert asked(trees) == pytest.approx(wanted(examples))
    assert sum(tree.examples for tree in trees) == sum(1 for one in examples if one.loss_tokens)


@untimed
@given(some_examples())
def test_without_sharing_every_example_is_computed_on_its_own(examples):
    trees = pack(examples, 40, share=False)
    assert sum(len(tree) for tree in trees) == sum(len(one.ids) for one in examples if one.loss_tokens)
    assert asked(trees) == pytest.approx(wanted(examples))


def test_examples_with_a_common_prefix_land_in_the_same_microbatch():
    left, right = list(range(10, 20)), list(range(30, 40))
    mixed = [example([*prompt, last]) for last in range(4) for prompt in (left, right)]
    trees = pack(mixed, 14)
    assert [len(tree) for tree in trees] == [14, 14]
    assert [tree.example_tokens for tree in trees] == [44, 44]


def test_duplicates_are_merged_with_summed_weights():
    tree = build_tree([example([5, 6, 7]), example([5, 6, 7], [0, 1, 0.5])])
    assert len(tree) == 3
    assert tree.predictions.weights.tolist() == [2.0, 1.5]


def test_duplicates_with_other_advantages_keep_predictions_of_their_own():
    good = example([5, 6], advantages=(0.0, 1.0), behaviour_logprobs=(0.0, -0.5))
    bad = example([5, 6], advantages=(0.0, -1.0), behaviour_logprobs=(0.0, -0.5))
    asks = build_tree([good, bad]).predictions
    assert asks.sources.tolist() == [0, 0]
    assert asks.advantages.tolist() == [-1.0, 1.0]
    assert asks.weights.tolist() == [1.0, 1.0]


def test_an_example_longer_than_the_budget_is_refused_with_the_arithmetic():
    with pytest.raises(InputError, match=r"^long one: 11 tokens do not fit microbatch_tokens = 10; set .* >= 11"):
        pack([example(list(range(11)), episode="long one")], 10)
