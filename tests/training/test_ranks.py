"""Several ranks: two or three gloo processes on this machine train what one process trains."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rank_programs import Weights, cpt, grpo, on_ranks, sft
from training_models import example, family_of_examples, tiny

from quintain.interface.errors import InputError
from quintain.training.balance import deal, duration, idle, spread
from quintain.training.config import TrainConfig
from quintain.training.loop import Trainer
from quintain.training.objective import cross_entropy
from quintain.training.packing import pack

pytestmark = pytest.mark.timeout(600)  # the first test waits for a process that imports torch

SAME = 2e-6
"""Largest difference of a weight after three steps of size 1e-3, in float32: sums in another order."""
SPLIT = {"seconds", "step_seconds", "tokens_per_second", "tokens", "microbatches", "idle"}
"""What depends on how the work is split."""


def rows(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def assert_same(found: Weights, expected: Weights, tolerance: float = SAME) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=tolerance, msg=name)


def assert_same_metrics(found: list[dict[str, float]], expected: list[dict[str, float]]) -> None:
    assert len(found) == len(expected) >= 3
    for one, other in zip(found, expected, strict=True):
        assert one.keys() - SPLIT == other.keys() - SPLIT
        assert {key: one[key] for key in other.keys() - SPLIT} == pytest.approx(
            {key: other[key] for key in other.keys() - SPLIT}, rel=1e-4, abs=1e-6
        )


# The same losses and weights


def run(count: int, out: Path) -> Weights:
    return sft(out) if count == 1 else on_ranks(count, sft, out)


@pytest.mark.parametrize(
    ("count", "others"), [(2, (1, 3)), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((1, (2,)), (3, (2,))))]
)
def test_fine_tuning_on_some_ranks_is_fine_tuning_and_goes_on_with_fewer_or_more(tmp_path, count, others):
    expected = sft(tmp_path / "alone")
    assert_same(run(count, tmp_path / "whole"), expected)
    assert_same_metrics(rows(tmp_path / "whole"), rows(tmp_path / "alone"))
    written = list((tmp_path / "whole" / "checkpoints" / "step-000003").glob("weights*"))
    assert len(written) == count
    for other in others:
        out = tmp_path / f"{count} then {other}"
        shutil.copytree(tmp_path / "whole", out)
        shutil.rmtree(out / "checkpoints" / "step-000003")
        assert_same(run(other, out), expected)
        assert_same_metrics(rows(out), rows(tmp_path / "alone"))


def test_pre_training_on_two_ranks_is_pre_training(tmp_path):
    expected = cpt(tmp_path / "one")
    assert_same(on_ranks(2, cpt, tmp_path / "two"), expected)
    assert_same_metrics(rows(tmp_path / "two"), rows(tmp_path / "one"))


@pytest.mark.parametrize("lora_rank", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_the_grpo_objective_on_two_ranks_is_the_same(lora_rank):
    expected, metrics = grpo(lora_rank)
    found, others = on_ranks(2, grpo, lora_rank)
    assert metrics[-1]["kl"] > 0
    assert_same_metrics(others, metrics)
    assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "settings"),
    [("qwen3", {"recompute": True}), ("gemma3", {}), ("qwen3_next", {}), ("llama", {"lora_rank": 4})],
)
def test_other_models_and_settings_train_the_same_on_three_ranks(tmp_path, family, settings):
    expected = sft(tmp_path / "one", family, **settings)
    assert_same(on_ranks(3, sft, tmp_path / "three", family, **settings), expected)


@pytest.mark.slow
def test_bfloat16_is_near_float32_and_its_masters_are_float32(tmp_path):
    expected = sft(tmp_path / "one")
    found = on_ranks(1, sft, tmp_path / "half", precision="bfloat16")
    assert {value.dtype for value in found.values()} == {torch.float32}
    losses = [[row["loss"] for row in rows(tmp_path / name)] for name in ("one", "half")]
    assert losses[1] == pytest.approx(losses[0], rel=1e-2)
    assert losses[1] != losses[0]
    before = dict(tiny().named_parameters())
    moved = torch.cat([(expected[name] - before[name]).flatten() for name in expected])
    apart = torch.cat([(expected[name] - found[name]).flatten() for name in expected])
    assert apart.norm() < 0.5 * moved.norm()


# What is refused


def test_lower_precision_without_torchrun_is_refused_with_the_way_to_have_it():
    with pytest.raises(InputError, match=r"^precision = 'bfloat16' .*torchrun --nproc-per-node 1"):
        Trainer(tiny(), cross_entropy, TrainConfig(precision="bfloat16"))


@pytest.mark.parametrize("other", [lambda: tiny("gemma3"), lambda: torch.nn.Linear(2, 2)])
def test_a_checkpoint_of_another_model_is_refused_in_one_line(tmp_path, other):
    from quintain.training import checkpoint

    path = Trainer(tiny(), cross_entropy, TrainConfig()).save(tmp_path, checkpoint.Position(1))
    model: Any = other()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    with pytest.raises(
        InputError, match=r"step-000001 is a checkpoint of another model: \S+ is .* there and .* here; "
    ):
        checkpoint.restore(path, model, torch.optim.AdamW(model.parameters()))
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


# Balance


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(2, 5))
def test_every_tree_is_dealt_once_and_no_rank_is_ahead_by_more_than_the_longest(lengths, ranks):
    trees = [pack([example([3 + number] * (length + 1))], 100)[0] for number, length in enumerate(lengths)]
    dealt = deal(trees, ranks)
    assert len({len(own) for own in dealt}) == 1  # all gather weights equally often
    real = [[tree for tree in own if tree.loss_weight] for own in dealt]
    assert sorted(id(tree) for own in real for tree in own) == sorted(map(id, trees))
    tokens = [sum(map(len, own)) for own in real]
    assert max(tokens) - min(tokens) <= max(map(len, trees))


def test_trees_of_one_round_are_equally_long_where_they_can_be():
    # Rounds (9, 8), (5, 4) and (2, empty); the rank with 9 takes the 4, so both have 13; then one gets the 2.
    trees = [pack([example([3 + number] * n)], 100)[0] for number, n in enumerate((4, 9, 2, 8, 5))]
    dealt = deal(trees, 2)
    assert [[len(tree) for tree in own] for own in dealt] == [[9, 4, 2], [8, 5, 1]]
    assert duration(dealt) == 9 + 5 + 2
    assert idle(dealt) == pytest.approx(1 - 29 / 32)


def test_a_batch_of_one_tree_is_packed_smaller_so_that_no_rank_waits():
    examples = [example([10 * number + 3] * 10) for number in range(4)]
    (whole,) = pack(examples, 100)
    assert len(whole) == 40
    dealt = spread(examples, 100, 2, pack, share=True)
    assert [[len(tree) for tree in own] for own in dealt] == [[20], [20]]


def test_one_rank_computes_the_trees_in_their_order():
    trees = pack(family_of_examples(), 60)
    assert deal(trees, 1) == [trees]
