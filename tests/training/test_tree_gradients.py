"""A tree's gradients are those of the examples run one by one through the unchanged model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention
from training_models import VOCABULARY, example, family_of_examples, tiny

from quintain.interface.example import Example
from quintain.training.attention import Layout, _flex_attention, _visibility, supports_trees
from quintain.training.blocks import block_attention
from quintain.training.forward import prepare, tree_logprobs
from quintain.training.head import CHUNK_ELEMENTS
from quintain.training.objective import cross_entropy, policy_gradient
from quintain.training.packing import pack
from quintain.training.tree import build_tree

ATTENTION_ONLY = ["llama", "qwen3", "gemma3"]


def reference_gradients(model: torch.nn.Module, examples: Sequence[Example], advantages: bool) -> dict:
    """Plain transformers: one sequence at a time, full logits, no sharing."""
    model.zero_grad()
    total = sum(sum(one.weights) for one in examples)
    for one in examples:
        ids = torch.tensor([one.ids])
        logprobs = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        chosen = logprobs.gather(1, ids[0, 1:, None])[:, 0]
        weights = torch.tensor(one.weights[1:])
        if advantages:
            weights = weights * torch.tensor(one.advantages[1:])
        (-(weights * chosen).sum() / total).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def tree_gradients(model: torch.nn.Module, examples: Sequence[Example], objective, budget: int = 10_000) -> dict:
    model.zero_grad()
    trees = pack(examples, budget, share=supports_trees(model))
    total = sum(tree.loss_weight for tree in trees)
    for tree in trees:
        with tree_logprobs(model, tree) as logprobs:
            objective(logprobs, tree.predictions, total).value.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def assert_close(found: dict, expected: dict, relative: float = 1e-4) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert (found[name] - gradient).norm() <= relative * gradient.norm(), name


@pytest.mark.parametrize("family", [*ATTENTION_ONLY, "qwen3_next"])
@pytest.mark.parametrize("objective", [cross_entropy, policy_gradient])
@pytest.mark.parametrize("budget", [10_000, 90])
def test_gradients_equal_those_of_separate_sequences(family, objective, budget):
    model = tiny(family)
    prepare(model)
    examples = family_of_examples()
    expected = reference_gradients(model, examples, advantages=objective is policy_gradient)
    assert_close(tree_gradients(model, examples, objective, budget), expected)


@pytest.mark.parametrize("block", [1, 5, 16])
@pytest.mark.parametrize("family", ATTENTION_ONLY)
def test_the_size_of_attention_blocks_changes_nothing(family, block, monkeypatch):
    model = tiny(family)
    prepare(model)
    expected = tree_gradients(model, family_of_examples(), cross_entropy)
    monkeypatch.setattr("quintain.training.attention.BLOCK", block)
    assert_close(tree_gradients(model, family_of_examples(), cross_entropy), expected)


def test_chunks_of_the_head_change_nothing(monkeypatch):
    model = tiny("qwen3")
    prepare(model)
    expected = tree_gradients(model, family_of_examples(), cross_entropy)
    monkeypatch.setitem(CHUNK_ELEMENTS, "cpu", 7 * VOCABULARY)
    assert_close(tree_gradients(model, family_of_examples(), cross_entropy), expected)


@pytest.mark.parametrize("change", [{"final_logit_softcapping": 3.0}, {"logit_scale": 0.25}, {"logits_scaling": 4.0}])
def test_logit_transforms_of_the_model_are_part_of_the_log_probabilities(change):
    model = tiny("llama")
    prepare(model)
    for name, value in change.items():
        setattr(model.config, name, value)
    one = family_of_examples()[5]
    tree = build_tree([one])
    with tree_logprobs(model, tree) as found:
        values = found.values
        values.sum().backward()
    gradient = model.get_output_embeddings().weight.grad.clone()
    model.zero_grad()
    logits = model(input_ids=torch.tensor([one.ids])).logits[0]
    name, value = next(iter(change.items()))
    finished = {
        "final_logit_softcapping": lambda: torch.tanh(logits / value) * value,
        "logit_scale": lambda: logits * value,
        "logits_scaling": lambda: logits / value,
    }[name]().log_softmax(-1)
    expected = finished[tree.predictions.sources, tree.predictions.targets]
    expected.sum().backward()
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradient, model.get_output_embeddings().weight.grad, rtol=1e-3, atol=1e-5)


def test_entropy_is_that_of_the_whole_distribution():
    model = tiny("llama")
    prepare(model)
    one = family_of_examples()[5]
    tree = build_tree([one])
    with tree_logprobs(model, tree) as found:
        pass
    logits = model(input_ids=torch.tensor([one.ids])).logits[0]
    expected = torch.distributions.Categorical(logits=logits).entropy()[tree.predictions.sources]
    torch.testing.assert_close(found.entropies, expected, rtol=1e-4, atol=1e-5)


def test_one_token_predicts_several_next_tokens():
    """The branch point's logits serve both targets: its two log-probabilities come from one distribution."""
    tree = build_tree([example([5, 6, 7]), example([5, 6, 8])])
    assert len(tree) == 4
    assert tree.predictions.sources.tolist() == [0, 1, 1]
    assert tree.predictions.targets.tolist() == [6, 7, 8]
    assert tree.predictions.weights.tolist() == [2.0, 1.0, 1.0]


@pytest.mark.parametrize("family", ATTENTION_ONLY)
def test_one_example_never_changes_what_another_gets(family):
    model = tiny(family)
    prepare(model)
    prompt, own, others = [5, 9, 3, 7], [11, 12, 13, 14], [[21, 22], [31, 32, 33, 34, 35, 36, 37, 38, 39]]
    found = []
    for other in others:
        tree = build_tree([example(prompt + own), example(prompt + other), example(other + own)])
        mine = [index for index in range(len(tree.predictions)) if tree.predictions.targets[index] in own]
        paths = [tree.path(int(tree.predictions.sources[index])) for index in mine]
        keep = [index for index, path in zip(mine, paths, strict=True) if tree.ids[path][:4].tolist() == prompt]
        with tree_logprobs(model, tree) as logprobs:
            found.append(logprobs.values[keep].tolist())
    assert len(found[0]) == len(own)
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_the_padding_token_gets_its_input_gradient():
    """transformers drops it; where a model pads with its end token, that would leave the end token untrained."""
    model = tiny("llama")
    assert model.get_input_embeddings().padding_idx == 2
    prepare(model)
    ids = torch.tensor([[5, 2, 9, 11]])
    tree = build_tree([example([5, 2, 9, 11], [0, 0, 1, 1])])
    found = tree_gradients(model, [example([5, 2, 9, 11], [0, 0, 1, 1])], cross_entropy)["model.embed_tokens.weight"]
    model.zero_grad()
    table = model.get_input_embeddings().weight
    embedded = table[ids]
    logprobs = model(inputs_embeds=embedded).logits[0].log_softmax(-1)
    (-(logprobs[1, 9] + logprobs[2, 11]) / tree.loss_weight).backward()
    torch.testing.assert_close(found[2], table.grad[2], rtol=1e-4, atol=1e-6)


def test_a_model_generates_as_before_outside_of_training():
    model = tiny("gemma3").eval()
    ids = torch.tensor([[5, 9, 3, 7]])
    before = model.generate(ids, max_new_tokens=12, do_sample=False)
    prepare(model)
    tree_gradients(model, family_of_examples(), cross_entropy)
    assert torch.equal(before, model.eval().generate(ids, max_new_tokens=12, do_sample=False))


@pytest.mark.parametrize("window", [None, 7])
def test_flex_attention_uses_the_same_visibility(window):
    tree = build_tree(family_of_examples())
    size = len(tree)
    dense = torch.zeros(size, size, dtype=torch.bool)
    for query in range(size):
        path = tree.path(query)
        dense[query, path if window is None else path[-window:]] = True
    index = torch.arange(size)
    assert torch.equal(_visibility(tree.ends, tree.positions, window)(index[:, None], index[None, :]), dense)


@pytest.mark.parametrize("window", [None, 7, 300])
def test_the_blocks_flex_attention_skips_hide_everything_and_those_it_does_not_mask_nothing(window):
    draw = random.Random(3)
    trunk = [draw.randrange(3, VOCABULARY) for _ in range(400)]
    tails = [trunk[:cut] + [draw.randrange(3, VOCABULARY) for _ in range(170)] for cut in (400, 400, 130, 0)]
    tree = build_tree([example(ids) for ids in tails])
    index = torch.arange(len(tree))
    dense = _visibility(tree.ends, tree.positions, window)(index[:, None], index[None, :])
    mask = Layout.of(tree, torch.device("cpu")).flex(window)
    blocks = mask.to_dense()[0, 0].bool()
    rest = len(blocks) * 128 - len(tree)
    tiles = torch.nn.functional.pad(dense, (0, rest, 0, rest)).view(len(blocks), 128, len(blocks), 128).transpose(1, 2)
    some, every = tiles.flatten(2).any(2), tiles.flatten(2).all(2)
    assert not (some & ~blocks).any()
    whole = [
        (query, int(key))
        for query, count in enumerate(mask.full_kv_num_blocks[0, 0].tolist())
        for key in mask.full_kv_indices[0, 0, query, :count]
    ]
    assert all(every[place] for place in whole)
    if window is None:
        assert torch.equal(blocks, some)
        assert len(whole) == every.sum() > 0
    else:
        assert blocks.sum() < len(blocks) * (len(blocks) + 1) / 2


def test_the_backward_pass_may_run_in_another_thread_as_on_a_gpu():
    model = tiny("gemma3")
    prepare(model)
    examples = family_of_examples()
    expected = tree_gradients(model, examples, cross_entropy)
    model.zero_grad()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    (tree,) = pack(examples, 10_000)
    with tree_logprobs(model, tree) as logprobs, ThreadPoolExecutor(1) as other:
        other.submit(cross_entropy(logprobs, tree.predictions, tree.loss_weight).value.backward).result()
    assert_close({name: one.grad for name, one in model.named_parameters() if one.grad is not None}, expected)


def test_gradients_of_a_head_in_bfloat16_are_summed_over_chunks_in_float32(monkeypatch):
    model = tiny("qwen3").bfloat16()
    prepare(model)
    expected = tree_gradients(model, family_of_examples(), cross_entropy)["lm_head.weight"].float()
    monkeypatch.setitem(CHUNK_ELEMENTS, "cpu", VOCABULARY)
    found = tree_gradients(model, family_of_examples(), cross_entropy)["lm_head.weight"].float()
    assert (found - expected).norm() < 2**-8 * expected.norm()


@pytest.mark.parametrize("window", [None, 7])
def test_flex_attention_computes_what_the_dense_blocks_compute(window):
    tree = build_tree(family_of_examples())
    layout = Layout.of(tree, torch.device("cpu"))
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, heads, len(tree), 16) for heads in (4, 2, 2))
    expected = block_attention(query[0], key[0], value[0], layout.blocks(window), 0.3).transpose(0, 1)[None]
    found = _flex_attention(query, key, value, layout.flex(window), 0.3, flex_attention)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [None, 7])
def test_block_attention_and_its_gradients_are_those_of_a_masked_softmax(window):
    tree = build_tree(family_of_examples())
    layout = Layout.of(tree, torch.device("cpu"))
    index = torch.arange(len(tree))
    seen = _visibility(tree.ends, tree.positions, window)(index[:, None], index[None, :])
    torch.manual_seed(0)
    inputs = [torch.randn(heads, len(tree), 16, dtype=torch.float64, requires_grad=True) for heads in (4, 2, 2)]
    slope = torch.randn(4, len(tree), 16, dtype=torch.float64)
    query, key, value = inputs
    scores = 0.3 * query @ key.repeat_interleave(2, dim=0).mT
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    expected = weights @ value.repeat_interleave(2, dim=0)
    gradients = torch.autograd.grad(expected, inputs, slope)
    single = [one.detach().float().requires_grad_() for one in inputs]
    found = block_attention(*single, layout.blocks(window), 0.3)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    for one, gradient in zip(torch.autograd.grad(found, single, slope.float()), gradients, strict=True):
        torch.testing.assert_close(one.double(), gradient, rtol=1e-4, atol=1e-5)


def test_what_attention_keeps_for_the_backward_pass_grows_with_the_length_not_with_its_square():
    def kept(length: int) -> int:
        numbers = 0

        def count(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal numbers
            numbers += tensor.numel()
            return tensor

        blocks = Layout.of(build_tree([example([5] * length)]), torch.device("cpu")).blocks(None)
        inputs = [torch.randn(heads, length, 4, requires_grad=True) for heads in (4, 2, 2)]
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            block_attention(*inputs, blocks, 0.5)
        return numbers

    assert kept(2000) == 4 * kept(500)


def test_half_precision_models_get_log_probabilities_in_single_precision():
    examples = family_of_examples()
    tree = build_tree(examples)
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        model = tiny("qwen3").to(dtype)
        prepare(model)
        with tree_logprobs(model, tree) as logprobs:
            cross_entropy(logprobs, tree.predictions, tree.loss_weight).value.backward()
        found[dtype] = logprobs.values.detach()
        assert model.get_output_embeddings().weight.grad.dtype == dtype
    assert found[torch.bfloat16].dtype == torch.float32
    assert (found[torch.bfloat16] - found[torch.float32]).abs().mean() < 0.1


def test_models_with_recurrent_layers_fall_back_to_separate_sequences():
    assert not supports_trees(tiny("qwen3_next"))
    assert all(supports_trees(tiny(family)) for family in ATTENTION_ONLY)
