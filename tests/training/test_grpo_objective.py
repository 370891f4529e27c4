"""The GRPO objective: each piece against a value computed by hand, the whole against separate sequences."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from training_models import example, family_of_examples, tiny

from quintain.training.config import TrainConfig
from quintain.training.forward import TreeForward, prepare, tree_logprobs
from quintain.training.grpo import (
    GRPOObjective,
    clip_higher,
    importance_ratio,
    k3_kl,
    masked_weights,
    sequence_mask,
)
from quintain.training.loop import Trainer
from quintain.training.lora import add_lora
from quintain.training.packing import pack
from quintain.training.reference import Reference
from quintain.training.tree import build_tree

CLIP = {"low": 0.2, "high": 0.28, "cap": 2.0}


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def objective(kl: float = 0.0, limit: float = 0.1) -> GRPOObjective:
    return GRPOObjective(clip_low=0.2, clip_high=0.28, ratio_cap=2.0, off_policy_limit=limit, kl=kl)


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        (1.0, 1.0, 1.0, 1.0),
        (1.25, 1.0, 1.25, 1.0),  # within the wider upper clip
        (1.5, 1.0, 1.28, 0.0),  # a good token that is already likely enough
        (0.5, 1.0, 0.5, 1.0),  # a good token that became unlikely is pulled back
        (0.5, -1.0, -0.8, 0.0),  # a bad one that is already unlikely enough
        (1.5, -1.0, -1.5, -1.0),  # a bad one that became likely is pushed down ...
        (8.0, -1.0, -2.0, -0.25),  # ... by its log-probability times the cap: 8 x 0.25 = 2
    ],
)
def test_clip_higher_by_hand(ratio, advantage, value, slope):
    found = tensor(ratio).requires_grad_()
    surrogate = clip_higher(found, tensor(advantage), **CLIP)
    surrogate.sum().backward()
    assert surrogate.item() == pytest.approx(value)
    assert found.grad.item() == pytest.approx(slope)


def test_the_ratio_by_hand_and_finite_however_far_the_policies_are():
    found = importance_ratio(tensor(-1.0, -2.0, 0.0), tensor(-1.0, -1.0, -1e4))
    assert found[:2].tolist() == pytest.approx([1.0, math.exp(-1)])
    assert torch.isfinite(found).all()


def test_k3_by_hand():
    """p = 0.5, p_ref = 0.25: k3 = 0.5 - ln 0.5 - 1 = 0.19315; a ratio of 2 doubles it."""
    logprobs, reference = tensor(math.log(0.5), math.log(0.5)), tensor(math.log(0.25), math.log(0.5))
    found = k3_kl(logprobs, reference, tensor(2.0, 1.0))
    assert found.tolist() == pytest.approx([2 * 0.1931472, 0.0], abs=1e-6)


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=3), st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_the_kl_estimate_and_its_gradient_are_unbiased_when_another_policy_sampled(current, reference):
    """Expectations over the behaviour policy, exact on three tokens: they must be those of KL(p || p_ref)."""
    behaviour = torch.log_softmax(tensor(0.3, -0.4, 0.1), 0)
    ref = torch.log_softmax(tensor(*reference), 0)
    logits = tensor(*current).requires_grad_()
    logprobs = torch.log_softmax(logits, 0)
    estimate = (behaviour.exp() * k3_kl(logprobs, ref, importance_ratio(logprobs, behaviour))).sum()
    exact = (logprobs.exp() * (logprobs - ref)).sum()
    (found,) = torch.autograd.grad(estimate, logits, retain_graph=True)
    (expected,) = torch.autograd.grad(exact, logits)
    assert estimate.item() == pytest.approx(exact.item(), abs=1e-9)
    assert torch.allclose(found, expected, atol=1e-9)


def test_the_sequence_mask_drops_bad_sequences_the_policy_has_left_and_only_those():
    members = [
        example([1, 5, 6], advantages=(0, -1, -1), behaviour_logprobs=(0, -1, -1)),  # bad, drifted by 0.3 a token
        example([1, 7, 8], advantages=(0, -1, -1), behaviour_logprobs=(0, -1, -1)),  # bad, drifted by 0.05
        example([1, 9, 8], advantages=(0, 1, 1), behaviour_logprobs=(0, -1, -1)),  # good, drifted by 3
    ]
    predictions = build_tree(members).predictions
    drift = {5: -0.5, 6: -0.1, 7: -0.05, 8: -0.05, 9: -5.0}
    log_ratio = torch.tensor([drift[int(target)] for target in predictions.targets])
    assert sequence_mask(log_ratio, predictions, 0.1).tolist() == [0.0, 1.0, 1.0]
    left = masked_weights(sequence_mask(log_ratio, predictions, 0.1), predictions)
    assert left.sum() == pytest.approx(4.0)
    assert all(weight == 0 for weight, target in zip(left, predictions.targets, strict=True) if int(target) in (5, 6))


def test_a_shared_prediction_keeps_the_weight_of_the_members_that_are_left():
    same = {"advantages": (0, -1, -1), "behaviour_logprobs": (0, -1, -1)}
    members = [example([1, 5, 6], **same), example([1, 5, 7], **same)]
    predictions = build_tree(members).predictions
    shared = [int(target) for target in predictions.targets].index(5)
    assert predictions.weights[shared] == 2
    assert masked_weights(torch.tensor([0.0, 1.0]), predictions)[shared] == 1


def reference_loss(model: torch.nn.Module, base: torch.nn.Module, examples: list, kl: float, limit: float) -> Tensor:
    """The objective written the long way: one sequence after the other, token by token."""
    total = sum(sum(one.weights) for one in examples)
    loss = torch.zeros(())
    for one in examples:
        ids = torch.tensor([one.ids])
        logprobs = model(input_ids=ids).logits[0].log_softmax(-1)
        with torch.no_grad():
            before = base(input_ids=ids).logits[0].log_softmax(-1)
        wanted = [t for t in range(1, len(one.ids)) if one.weights[t]]
        drift = sum(one.weights[t] * (one.behaviour_logprobs[t] - logprobs[t - 1, one.ids[t]].item()) for t in wanted)
        bad = sum(one.weights[t] * one.advantages[t] for t in wanted) < 0
        masked = bad and drift / sum(one.weights[t] for t in wanted) > limit
        for t in wanted:
            value = logprobs[t - 1, one.ids[t]]
            ratio = (value - one.behaviour_logprobs[t]).exp()
            advantage = torch.tensor(one.advantages[t])
            clipped = ratio.clamp(0.8, 1.28) * advantage
            weighted = min(ratio.item(), 2.0) * advantage * (1 + value - value.detach())
            surrogate = torch.minimum(weighted, clipped) * (not masked)
            apart = before[t - 1, one.ids[t]] - value
            loss = loss - one.weights[t] / total * (surrogate - kl * ratio * (apart.exp() - apart - 1))
    return loss


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3"])
def test_loss_and_gradient_on_a_tree_equal_those_of_separate_sequences(family):
    model, base = tiny(family, seed=1), tiny(family, seed=2)
    prepare(model)
    noise = torch.Generator().manual_seed(0)
    examples = []
    for one in family_of_examples():
        logits = model(input_ids=torch.tensor([one.ids])).logits[0].log_softmax(-1).detach()
        near = [0.0] + [
            float(logits[t - 1, one.ids[t]] + 0.3 * torch.randn((), generator=noise)) for t in range(1, len(one.ids))
        ]
        examples.append(example(list(one.ids), list(one.weights), advantages=one.advantages, behaviour_logprobs=near))
    expected = reference_loss(model, base, examples, kl=0.05, limit=0.02)
    expected.backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()

    goal = objective(kl=0.05, limit=0.02)
    trees = pack(examples, budget=80)
    assert len(trees) > 1
    total = sum(tree.loss_weight for tree in trees)
    metrics: dict[str, float] = {}
    for tree in trees:
        with tree_logprobs(model, tree) as logprobs:
            reference = Reference(TreeForward(base)).logprobs(tree)
            loss = goal(replace(logprobs, reference=reference), tree.predictions, total)
            loss.value.backward()
        metrics = {name: metrics.get(name, 0.0) + value for name, value in loss.metrics.items()}
    assert 0 < metrics["masked"] < 1
    assert metrics["loss"] == pytest.approx(expected.item(), rel=1e-4)
    for name, parameter in model.named_parameters():
        assert (parameter.grad - gradients[name]).norm() <= 1e-4 * gradients[name].norm(), name


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_the_reference_stays_where_training_started(lora_rank):
    model = tiny()
    if lora_rank:
        model = add_lora(model, lora_rank, seed=0)
    examples = family_of_examples()
    goal = objective(kl=0.5, limit=10.0)
    config = TrainConfig(learning_rate=1e-2, microbatch_tokens=500)
    trainer = Trainer(model, goal, config, reference=True)
    (tree,) = pack(examples, budget=500)
    before = trainer.workers.own.reference.logprobs(tree)
    first = trainer.step(examples, 1.0)
    assert first["kl"] == pytest.approx(0, abs=1e-6)
    second = trainer.step(examples, 1.0)
    assert second["kl"] > 1e-4
    assert torch.allclose(trainer.workers.own.reference.logprobs(tree), before, atol=1e-5)


def test_on_fresh_samples_nothing_is_clipped_or_masked_and_the_mismatch_is_rounding():
    model = tiny()
    ids = [5, 6, 7, 8]
    logprobs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1).detach()
    behaviour = (0.0, *(float(logprobs[t - 1, ids[t]]) for t in range(1, 4)))
    one = example(ids, advantages=(0, -1, -1, -1), behaviour_logprobs=behaviour)
    metrics = Trainer(model, objective(), TrainConfig()).step([one], 1.0)
    assert (metrics["clipped"], metrics["masked"]) == (0, 0)
    assert metrics["ratio"] == pytest.approx(1, abs=1e-5)
    assert metrics["mismatch"] < 1e-5
    assert metrics["loss"] == pytest.approx(1, abs=1e-5)
