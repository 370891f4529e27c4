"""Continual pre-training as stages of a recipe: short context, then long, then fine-tuning."""

from __future__ import annotations

import json

import pytest

from quintain.commands.commands import run
from quintain.interface.errors import InputError
from quintain.interface.sample import Sample, write_samples
from quintain.recipe import load_recipe
from recipe_edits import set_stages

STAGES = """
[[stages]]
kind = "cpt"
name = "short"
text = ["texts"]

[stages.train]
context = 32
microbatch_tokens = 64
batch_tokens = 64
learning_rate = 1e-3

[[stages]]
kind = "cpt"
name = "long"
data = ["short"]
text = ["more.txt"]
tokens = { general = 10_000 }
start = "short"
replay = "short"
replay_share = 0.5

[stages.train]
context = 128
microbatch_tokens = 128
batch_tokens = 128
learning_rate = 1e-3
rope = { theta = 20000.0 }
"""


@pytest.fixture
def two_stages(recipe_file):
    set_stages(recipe_file, STAGES)
    (recipe_file.parent / "texts").mkdir()
    for number in range(4):
        (recipe_file.parent / "texts" / f"{number}.txt").write_text(
            f"Text {number}: the capital of France is Paris. " * 3
        )
    (recipe_file.parent / "more.txt").write_text("The area of Chad is 1284000 square kilometres.\n" * 3)
    return recipe_file


def test_both_stages_leave_a_model_and_say_what_they_learnt_from(two_stages, tmp_path):
    result = run(two_stages, tmp_path / "run")
    first, second = result["stages"]["short"], result["stages"]["long"]
    assert first["tokens"] == {"general": first["sources"]["general"]["tokens"]}
    assert first["cut"] == {"general": 4}
    assert first["truncated_tokens"] == {"general": 0}
    assert second["tokens"]["replay"] >= second["tokens"]["general"]
    assert first["tokens_short"] == {}
    assert second["tokens_short"] == {"general": 10_000 - second["tokens"]["general"]}
    assert f"({second['tokens_short']['general']:,} short of the target)" in second["line"]
    config = json.loads((tmp_path / "run" / "long" / "model" / "config.json").read_text())
    assert config["rope_parameters"]["rope_theta"] == 20000.0
    rows = [json.loads(line) for line in (tmp_path / "run" / "long" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == second["steps"] == second["planned_steps"]


def test_a_stage_runs_again_when_the_text_it_read_has_changed(two_stages, tmp_path, capsys):
    run(two_stages, tmp_path / "run")
    (two_stages.parent / "texts" / "0.txt").write_text("Another text about Mali and its people.")
    run(two_stages, tmp_path / "run")
    assert (tmp_path / "run" / "short.old1").is_dir()


def test_a_replay_must_be_a_cpt_stage(two_stages, tmp_path):
    two_stages.write_text(two_stages.read_text().replace('replay = "short"', 'replay = "elsewhere"'))
    with pytest.raises(InputError, match="replay = 'elsewhere' is not known there; allowed: short"):
        run(two_stages, tmp_path / "run")


def test_a_text_that_is_missing_is_found_before_anything_runs(two_stages, tmp_path):
    (two_stages.parent / "more.txt").unlink()
    with pytest.raises(InputError, match=r"stage 'long': text: no such file or folder: .*more.txt"):
        run(two_stages, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_samples_are_rendered_with_the_worlds_tools(two_stages, tmp_path):
    samples = [Sample(str(number), "general", "en", "c", text=f"Some text {number}. " * 9) for number in range(3)]
    write_samples(two_stages.parent / "texts" / "own.jsonl", samples)
    result = run(two_stages, tmp_path / "run")
    assert result["stages"]["short"]["sources"]["general"]["documents"] > 12


@pytest.mark.parametrize(
    ("tokens", "complaint"),
    [
        ("{ generel = 5 }", "no source 'generel'; there are planning, reasoning, has, general"),
        ("{ general = -5 }", "stages.0.tokens.general"),
        ("{ general = 0 }", "stages.0.tokens.general"),
    ],
)
def test_tokens_of_no_source_and_no_tokens_are_refused_when_the_recipe_is_read(recipe_file, tokens, complaint):
    set_stages(recipe_file, f'[[stages]]\nkind = "cpt"\nname = "cpt"\ntext = ["python-docs"]\ntokens = {tokens}\n')
    with pytest.raises(InputError, match=complaint):
        load_recipe(recipe_file)
