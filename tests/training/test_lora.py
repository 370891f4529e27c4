"""Adapters: the only thing trained, and merging them changes nothing that is computed."""

from __future__ import annotations

import json

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from training_models import example, family_of_examples, tiny
from transformers import AutoModelForCausalLM

from quintain.training.config import SFTConfig
from quintain.training.lora import add_lora, merge
from quintain.training.sft import train_examples

IDS = torch.tensor([[5, 9, 3, 7, 11, 2, 8]])
CONFIG = SFTConfig(learning_rate=1e-2, batch_trajectories=4, lora_rank=2, checkpoint_seconds=1000)


def test_fresh_adapters_change_nothing():
    model = tiny("qwen3").eval()
    before = model(IDS).logits
    torch.testing.assert_close(add_lora(model, 2, seed=0).eval()(IDS).logits, before)


def test_adapters_start_from_their_seed_and_leave_the_random_state_alone():
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    first = add_lora(tiny_without_reseeding(), 2, seed=1).state_dict()
    torch.manual_seed(5)
    found = torch.rand(2)
    second = add_lora(tiny_without_reseeding(), 2, seed=1).state_dict()
    assert torch.equal(found, expected)
    assert all(torch.equal(value, second[name]) for name, value in first.items() if "lora_A" in name)


def tiny_without_reseeding() -> torch.nn.Module:
    with torch.random.fork_rng():
        return tiny("qwen3")


def test_only_adapters_are_trained_and_what_is_kept_is_the_base_with_them_merged(tmp_path):
    frozen = tiny("qwen3")
    trained = train_examples(CONFIG, family_of_examples(), tiny("qwen3"), tmp_path)
    adapters = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert all("lora_" in name for name in adapters)
    adapted = PeftModel.from_pretrained(tiny("qwen3"), tmp_path / "adapter").eval()(IDS).logits
    assert not torch.allclose(adapted, frozen.eval()(IDS).logits, atol=1e-3)
    torch.testing.assert_close(trained.model.eval()(IDS).logits, adapted, rtol=1e-4, atol=1e-4)
    loaded = AutoModelForCausalLM.from_pretrained(trained.folder).eval()
    torch.testing.assert_close(loaded(IDS).logits, adapted, rtol=1e-4, atol=1e-4)


def test_merging_changes_nothing_that_is_computed():
    model = add_lora(tiny("qwen3"), 2, seed=0).eval()
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    adapted = model(IDS).logits.detach()
    assert not torch.allclose(adapted, tiny("qwen3").eval()(IDS).logits, atol=1e-3)
    torch.testing.assert_close(merge(model).eval()(IDS).logits, adapted, rtol=1e-4, atol=1e-4)


def test_a_full_run_saves_a_model_that_transformers_loads(tmp_path):
    config = SFTConfig(learning_rate=1e-3, batch_trajectories=4)
    trained = train_examples(config, family_of_examples(), tiny("llama"), tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(trained.folder).eval()
    torch.testing.assert_close(loaded(IDS).logits, trained.model.eval()(IDS).logits)
    summary = json.loads((trained.folder / "training.json").read_text())
    assert (summary["examples"], summary["steps"]) == (8, 4)


@pytest.mark.parametrize("rank", [0, 2])
def test_the_saved_attention_is_one_that_others_know(tmp_path, rank):
    config = SFTConfig(learning_rate=1e-3, lora_rank=rank)
    trained = train_examples(config, [example([5, 6, 7])], tiny("llama"), tmp_path)
    assert "quintain" not in "".join(path.read_text() for path in trained.folder.glob("*config.json"))
