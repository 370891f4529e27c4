"""Stages played by an agent program: measured, and trained with GRPO end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from quintain.commands.commands import evaluate, run
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError

RECIPE = """
name = "talk"
seed = 3
concurrency = 8

[model]
base = "{model}"

[world]
world = "picker:{world}"

[budget]
turns = 3
tokens = 16

[programs.mine]
{program}

[pools.train]
split = "train"
count = 6

[[stages]]
kind = "grpo"
name = "grpo"
pool = "train"
program = "mine"
max_tokens = 2

[stages.train]
learning_rate = 0.01
warmup = 0.0
group_size = 8
groups = 3
steps = {steps}
refill = 0

[[stages]]
kind = "eval"
name = "after"
model = "grpo"
pool = "train"
samples = 1
program = "mine"
"""


@pytest.fixture
def recipe(tmp_path: Path, model_folder: Path):
    """Writes a recipe: `recipe(program, world)`."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("picker.py", "talker.py"):
        shutil.copy(Path(__file__).parent / name, home)

    def write(program: str = 'function = "talker:run"', world: str = "Picker", steps: int = 1) -> Path:
        path = home / "talk.toml"
        path.write_text(RECIPE.format(model=model_folder, world=world, program=program, steps=steps))
        return path

    return write


def moved(model_folder: Path, trained: Path) -> float:
    """Largest change of a weight."""
    before, after = (load_file(folder / "model.safetensors") for folder in (model_folder, trained))
    return max(float(torch.max(torch.abs(before[name] - after[name]))) for name in after if name in before)


def assert_learnt_from(folder: Path, program_turns: int) -> None:
    """The journals hold the program's episodes with their tokens, and a step was made of them."""
    episodes, _ = read_journal(next((folder / "rollouts").iterdir()))
    assert len(episodes) == 24
    assert {one.outcome.kind for one in episodes} <= {"answered", "limit"}
    for one in episodes:
        assert len(one.turns) >= program_turns
        for turn, span in zip(one.turns, one.spans, strict=True):
            if span is not None:
                ids = one.segments[span.segment].ids
                assert ids[span.start : span.stop] == turn.action.generation.ids
    (row,) = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert (row["episodes"], row["infra"]) == (24, 0)
    assert row["kept_groups"] > 0
    assert row["mismatch"] < 1e-3, "the trainer computes the log-probabilities that the gateway captured"


def test_a_program_is_trained_and_measured(recipe, tmp_path, model_folder):
    result = run(recipe(), tmp_path / "run")
    assert_learnt_from(tmp_path / "run" / "grpo", 1)
    assert moved(model_folder, tmp_path / "run" / "grpo" / "model") > 1e-4
    assert result["stages"]["after"]["line"].endswith("6 of 6 episodes scored")


def test_an_agent_of_a_framework_is_trained_and_measured(recipe, tmp_path, model_folder):
    pytest.importorskip("agents", reason="needs the OpenAI Agents SDK: pip install openai-agents")
    result = run(recipe('function = "talker:with_a_framework"'), tmp_path / "run")
    assert_learnt_from(tmp_path / "run" / "grpo", 1)
    assert moved(model_folder, tmp_path / "run" / "grpo" / "model") > 1e-4
    assert result["stages"]["after"]["line"].endswith("6 of 6 episodes scored")


def test_the_eval_command_plays_a_program_around_a_model(recipe, tmp_path):
    result = evaluate(recipe(), None, "train", 1, tmp_path / "run", program="mine")
    assert result["stages"]["eval"]["line"].endswith("6 of 6 episodes scored")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('function = "talker:blocking"', "must be an async function; give one that blocks as `command`"),
        ('function = "talker:nothing"', "must be an async function"),
        ('function = "nowhere:run"', "No module named 'nowhere'; is it installed, or beside the recipe?"),
        ('function = "talker"', "must be spelled module:function"),
        ('function = "a:b"\ncommand = ["a"]', "needs either `function` or `command`"),
    ],
)
def test_a_program_that_cannot_be_used_is_one_line(recipe, tmp_path, program, message):
    with pytest.raises(InputError, match=message.replace("`", ".")):
        run(recipe(program), tmp_path / "run")


def test_a_world_that_plays_a_user_is_refused(recipe, tmp_path):
    with pytest.raises(InputError, match="plays a user; a program is given its task once"):
        run(recipe(world="Asking"), tmp_path / "run")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('program = "mine"\nmax', 'program = "yours"\nmax', "program = 'yours' is not known there; allowed: mine"),
        ("samples = 1", "samples = 1\nsampling = { grammar = true }", "sampling.grammar is of the world's tools"),
        ("samples = 1", 'samples = 1\nendpoint = { model = "m" }', "give either .program. or .endpoint."),
        (
            'kind = "eval"\nname = "after"\nmodel = "grpo"',
            'kind = "rollout"\nname = "after"',
            "needs a model: set .agent. to .base. or a stage",
        ),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(recipe, tmp_path, old, new, message):
    path = recipe()
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        run(path, tmp_path / "run")
