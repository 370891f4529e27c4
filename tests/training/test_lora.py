"""Adapters: the only thing trained, and merging them changes nothing that is computed."""

from __future__ import annotations

import json

import pytest
import torch
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


def test_only_adapters_are_trained_and_merging_keeps_the_logits(tmp_path):
    model = tiny("qwen3")
    frozen = {name: value.clone() for name, value in model.state_dict().items()}
    trained = train_examples(CONFIG, family_of_examples(), model, tmp_path).model
    adapted = trained.eval()(IDS).logits.detach()
    assert not torch.allclose(adapted, tiny("qwen3").eval()(IDS).logits, atol=1e-3)
    for name, value in trained.get_base_model().state_dict().items():
        if "lora_" not in name:
            assert torch.equal(value, frozen[name.replace(".base_layer", "")]), name
    torch.testing.assert_close(merge(trained).eval()(IDS).logits, adapted, rtol=1e-4, atol=1e-4)


def test_only_the_adapter_is_saved(tmp_path):
    trained = train_examples(CONFIG, family_of_examples(), tiny("qwen3"), tmp_path)
    assert all("lora_" in name for name in load_file(trained.folder / "adapter_model.safetensors"))
    assert not list(trained.folder.glob("model*.safetensors"))


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
