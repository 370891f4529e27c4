"""A plan before anything runs: published sizes, figures worked out by hand, warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.cli.main import main
from quintain.commands.commands import plan_run, recipes_folder
from quintain.commands.shape import (
    forward_flops,
    kv_bytes,
    lora_parameters,
    most_tokens,
    parameters,
    shape_of,
    training_bytes,
    training_flops,
)
from quintain.interface.errors import InputError
from quintain.recipe.tables import ShapeSection
from quintain.training.lora import add_lora
from tiny import tiny_model

QWEN3_30B = ShapeSection(
    layers=48,
    hidden=2048,
    heads=32,
    kv_heads=4,
    head_dim=128,
    intermediate=768,
    vocabulary=151936,
    experts=128,
    experts_used=8,
)
QWEN25_7B = ShapeSection(
    layers=28, hidden=3584, heads=28, kv_heads=4, head_dim=128, intermediate=18944, vocabulary=152064
)
SMALL = ShapeSection(layers=2, hidden=8, heads=2, kv_heads=1, head_dim=4, intermediate=16, vocabulary=10, tied=True)


@pytest.mark.parametrize(
    ("shape", "total", "active"),
    # as the model cards state them: 30.5B in total and 3.3B activated; 7.61B
    [(QWEN3_30B, 30.5e9, 3.3e9), (QWEN25_7B, 7.61e9, 7.61e9)],
    ids=["qwen3-30b-a3b", "qwen2.5-7b"],
)
def test_parameters_are_those_the_makers_state(shape, total, active):
    assert parameters(shape) == pytest.approx(total, rel=0.005)
    assert parameters(shape, active=True) == pytest.approx(active, rel=0.02)


def test_parameters_are_those_of_a_real_model_but_for_its_norms(model_folder):
    real = sum(one.numel() for one in tiny_model().parameters() if one.ndim > 1)
    assert parameters(shape_of(str(model_folder))) == real


def test_adapters_are_those_of_a_real_model(model_folder):
    adapted = add_lora(tiny_model(), 4, 0)
    real = sum(one.numel() for one in adapted.parameters() if one.requires_grad)
    assert lora_parameters(shape_of(str(model_folder)), 4) == real


def test_figures_of_a_small_model_by_hand():
    # A layer: attention 2 * 8 * (2 + 1) * 4 = 192, feed-forward 3 * 8 * 16 = 384; embeddings 10 * 8 = 80.
    assert parameters(SMALL) == 80 + 2 * (192 + 384) == 1232
    # A token: 2 * 1232, and attention 2 * 2 layers * 2 heads * 4 * 100 tokens.
    assert forward_flops(SMALL, 100) == 2464 + 3200
    assert training_flops(SMALL, 100) == 3 * 5664
    assert training_flops(SMALL, 100, lora=True, recompute=True) == 3 * 5664
    assert training_flops(SMALL, 100, recompute=True) == 4 * 5664
    assert training_bytes(SMALL, 10) == {"states": 16 * 1232, "activations": 10 * 2 * 68 * 8}
    assert training_bytes(SMALL, 10, recompute=True)["activations"] == 10 * (2 * 4 * 8 + 68 * 8)
    assert training_bytes(SMALL, 10, precision="bfloat16")["activations"] == 10 * 2 * 68 * 8 / 2
    assert kv_bytes(SMALL) == 2 * 2 * 1 * 4 * 4


def test_the_published_recipe_has_the_published_tokens():
    result = plan_run(recipes_folder() / "agentfounder-30b.toml")
    stages = {one["name"]: one for one in result["stages"]}
    assert stages["cpt1"]["tokens"] == 200_000_000_000
    assert stages["cpt2"]["tokens"] == 100_000_000_000
    assert stages["cpt1"]["steps"] == 47_684  # 200e9 / 4,194,304, rounded up
    # four forward passes, of which one recomputes: 2 N and attention 2 * 48 * 32 * 128 * 32768 each
    by_hand = 200e9 * 4 * (2 * 3.3531e9 + 2 * 48 * 4096 * 32768) / (64 * 989e12 * 0.35) / 3600
    assert stages["cpt1"]["hours"] == pytest.approx(by_hand, rel=0.01)
    assert [line for line in result["lines"] if line.startswith("warning")] == []
    assert any("this version plays on one accelerator" in line for line in result["lines"])


def test_decisions_that_no_number_of_passes_makes_enough_are_told():
    plan = plan_run(recipes_folder() / "agentfounder-30b.toml")
    notes = {one["name"]: one["note"] for one in plan["stages"]}
    # 20,000 episodes, each told twice: 40,000 x (32,768 + 4 x 8,192) tokens are 2.62B, and there are four passes
    assert notes["cpt1"].endswith("; has: 10.5B tokens in 4 passes < 40.0B: more episodes, or a lower target")
    assert (
        "passes"
        not in {one["name"]: one["note"] for one in plan_run(recipes_folder() / "single-gpu-7b.toml")["stages"]}["cpt1"]
    )


def test_those_that_only_play_hold_caches_and_the_others_the_states(tmp_path):
    text = (recipes_folder() / "agentfounder-30b.toml").read_text()
    path = tmp_path / "apart.toml"
    path.write_text(text.replace("accelerators = 64\n", "accelerators = 64\nrollout_accelerators = 48\n"))
    shared, apart = (plan_run(one) for one in (recipes_folder() / "agentfounder-30b.toml", path))
    (one, other) = (next(stage for stage in each["stages"] if stage["name"] == "grpo") for each in (shared, apart))
    # weight, gradient, two moments and the policy that is held on to: 20 bytes a weight
    states = 20 * shared["parameters"] / 2**30
    caches = 2 * 32_768 * 2 * 48 * 4 * 128 * 4 / 2**30  # of 128 episodes on 64, two on each
    assert other["gib"] - states / 16 == pytest.approx(one["gib"] - states / 64 - caches)
    # 131 GiB - 113.7 GiB of weights have room for two caches of 6 GiB
    assert [line for line in apart["lines"] if line.startswith("warning")] == [
        "warning: grpo: concurrency 128 > 96 episodes whose caches have room on 48 accelerators; "
        "lower it, or let more of them play"
    ]


@pytest.mark.parametrize(("count", "groups"), [(64, 64), (256, 64), (1000, 64), (1000, 1000)])
def test_the_page_on_planning_states_what_more_accelerators_bring(tmp_path, count, groups):
    text, players = (recipes_folder() / "agentfounder-30b.toml").read_text(), count * 7 // 8
    episodes = groups * 16
    for old, new in (
        ("accelerators = 64\n", f"accelerators = {count}\nrollout_accelerators = {players}\n"),
        ("concurrency = 128", f"concurrency = {min(2 * players, episodes)}"),
        ("groups = 64,", f"groups = {groups}, ahead = 1,"),
    ):
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "more.toml"
    path.write_text(text)
    result = plan_run(path)
    now = result["simulated"]["grpo"]["now"]
    hours = sum(stage["hours"] for stage in result["stages"] if stage["kind"] == "cpt")
    idle = f"{now['trainer_idle']:.0%} | {now['engine_idle']:.0%}".replace("%", " %")
    rate = f"{now['step_seconds']:,.0f} s | {now['rate']:.2f}"
    page = (Path(__file__).parents[2] / "docs" / "planning.md").read_text(encoding="utf-8")
    assert f"\n| {count:,} | {episodes:,} | {rate} | {idle} | {hours:.0f} h |\n" in page


def test_the_recipe_for_one_accelerator_fits_it():
    result = plan_run(recipes_folder() / "single-gpu-7b.toml")
    assert [line for line in result["lines"] if line.startswith("warning")] == []
    assert [one["kind"] for one in result["stages"]] == [
        *("rollout", "fas", "has", "cpt", "cpt", "sft", "eval", "grpo", "eval")
    ]


def test_the_longest_document_is_what_one_accelerator_has_room_for_beside_the_states():
    # 16 * 1232 bytes of states on four, and 2 * 68 * 8 bytes of activations for each of ten tokens
    room = 16 * 1232 / 4 + 10 * 2 * 68 * 8
    assert most_tokens(SMALL, room, 4) == 10
    assert most_tokens(SMALL, room - 1, 4) == 9
    assert most_tokens(SMALL, room) == 0


@pytest.mark.parametrize("name", ["several-gpus.md", "several-gpus.zh.md"])
def test_the_page_on_several_gpus_states_the_longest_documents_by_the_formula(name):
    page = (Path(__file__).parents[2] / "docs" / "concepts" / name).read_text(encoding="utf-8")
    sizes = {"0.6B": (28, 1024, 16, 3072), "4B": (36, 2560, 32, 9728), "8B": (36, 4096, 32, 12_288)}
    for model, (layers, hidden, heads, intermediate) in {**sizes, "32B": (64, 5120, 64, 25_600)}.items():
        shape = ShapeSection(
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=8,
            head_dim=128,
            intermediate=intermediate,
            vocabulary=151_936,
            tied=hidden < 4096,
        )
        settings = {"recompute": True, "precision": "bfloat16"}
        found = [most_tokens(shape, 0.9 * 80 * 2**30, count, **settings) for count in (1, 8, 64)]
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {model}")]
        assert row.endswith("| " + " | ".join(f"{one:,}" for one in found) + " |")


def test_a_context_that_does_not_fit_is_told_what_would(recipe_file):
    text = recipe_file.read_text().replace("[budget]", "[plan]\ngib = 0.01\n\n[budget]")
    recipe_file.write_text(text)
    result = plan_run(recipe_file)
    most = {one["name"]: one["most_tokens"] for one in result["stages"]}["sft"]
    assert any(f"microbatch_tokens (at most {most:,}: a document" in line for line in result["lines"])


def test_what_does_not_fit_says_what_helps(recipe_file):
    text = recipe_file.read_text().replace("[budget]", "[plan]\ngib = 0.0001\n\n[budget]")
    recipe_file.write_text(text)
    assert any(
        "GiB > 0.0001 GiB of one accelerator; use more of them" in line for line in plan_run(recipe_file)["lines"]
    )


def test_a_model_that_is_not_here_needs_its_dimensions(recipe_file, model_folder):
    recipe_file.write_text(recipe_file.read_text().replace(str(model_folder), "somebody/unheard-of-9b"))
    with pytest.raises(InputError, match=r"the dimensions of 'somebody/unheard-of-9b' are not known here.*plan.shape"):
        plan_run(recipe_file)


def test_the_command_prints_the_plan_and_runs_nothing(recipe_file, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(recipe_file), "--plan"]) == 0
    printed = capsys.readouterr().out
    assert "sft" in printed
    assert "at most" in printed
    assert not (tmp_path / "runs").exists()
