"""The quickstart: its line of stages, the report on them, and how a time budget scales it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from quintain.commands.commands import LEAST_MINUTES, QUICKSTART_MINUTES, quickstart, recipes_folder, scaled
from quintain.interface.errors import InputError
from quintain.pipeline.reporting import report
from quintain.pipeline.run import run_recipe
from quintain.pipeline.stages import STAGES
from quintain.recipe import load_recipe, recipe_from_table

LINE = ["base", "pretrained", "tuned", "practised"]
"""Evaluations of the same held-out tasks: before, after pre-training, after fine-tuning, after GRPO."""


@pytest.fixture(scope="module")
def recipe():
    return load_recipe(recipes_folder() / "quickstart.toml")


def shortened(recipe, model_folder):
    """The recipe at a fiftieth, by steps and not by the clock, with contexts for the tiny tokenizer's longer texts."""
    table = scaled(recipe, 0.02).model_dump(mode="json", exclude_none=True)
    table["model"]["base"] = str(model_folder)
    for stage in table["stages"]:
        train = stage.get("train", {})
        train.pop("seconds", None)
        if stage["kind"] == "cpt":
            train |= {"context": 2 * train["context"], "microbatch_tokens": 2048}
            stage["text"] = ["general.txt"] if stage["text"] else []
        if stage["kind"] == "sft":
            train |= {"tokens": 2000}
    return recipe_from_table(table, "shortened")


@pytest.mark.slow
def test_the_whole_line_runs_and_the_report_holds_every_stage_with_intervals(recipe, model_folder, tmp_path):
    (tmp_path / "general.txt").write_text("A river runs to the sea. " * 100)
    run_recipe(shortened(recipe, model_folder), "", tmp_path, tmp_path / "run", STAGES)
    path, _ = report(tmp_path / "run")
    record = json.loads(path.read_text(encoding="utf-8"))
    stages = {stage["name"]: stage for stage in record["stages"]}
    assert list(stages) == [stage.name for stage in recipe.stages]
    for name in LINE:
        overall = stages[name]["evaluation"]["overall"]
        assert overall["counts"]["scored"] == overall["counts"]["planned"] == 8
        assert overall["pass1"]["low"] <= overall["pass1"]["value"] < overall["pass1"]["high"]
    compared = [(one["before"], one["after"]) for one in record["comparisons"]]
    assert compared == [*pairwise(LINE)]
    for name in ("cpt1", "cpt2", "sft", "grpo"):
        assert stages[name]["metrics"]
    results = {name: json.loads((tmp_path / "run" / name / "manifest.json").read_text())["result"] for name in stages}
    assert set(results["cpt1"]["tokens"]) == {"planning", "reasoning", "has", "general"}
    assert set(results["cpt2"]["tokens"]) == {"has", "replay"}
    assert set(results["cpt1"]["truncated_tokens"].values()) == {0}


def test_pretraining_takes_no_time_from_fine_tuning(recipe):
    seconds = {stage.name: stage.train.seconds for stage in recipe.stages if hasattr(stage, "train")}
    assert seconds["sft"] > seconds["cpt1"] + seconds["cpt2"]
    assert sum(seconds.values()) == pytest.approx(14 * 60)


def test_a_time_budget_scales_data_steps_and_evaluation(recipe):
    before, after = ({stage.name: stage for stage in one.stages} for one in (recipe, scaled(recipe, 0.5)))
    assert after["fas"].make.memories == before["fas"].make.memories / 2
    assert after["cpt1"].tokens == {name: tokens / 2 for name, tokens in before["cpt1"].tokens.items()}
    assert after["grpo"].train.steps == before["grpo"].train.steps / 2
    for name in ("cpt1", "cpt2", "sft", "grpo"):
        assert after[name].train.seconds == before[name].train.seconds / 2
    assert scaled(recipe, 0.5).pools["eval"].count == recipe.pools["eval"].count / 2


def test_more_time_trains_for_longer_and_measures_the_same(recipe):
    longer = scaled(recipe, 3)
    assert longer.pools == recipe.pools
    (tokens,) = [stage.tokens for stage in longer.stages if stage.name == "cpt2"]
    assert tokens == {"has": 48_000}


@pytest.mark.parametrize("minutes", [LEAST_MINUTES - 0.1, 0.0, -1.0, float("nan")])
def test_too_little_time_is_one_line(minutes, tmp_path):
    with pytest.raises(InputError, match=f"minutes is too short; give at least {LEAST_MINUTES}"):
        quickstart(tmp_path / "run", minutes)
    assert not (tmp_path / "run").exists()


def test_the_least_time_leaves_every_stage_something_to_do(recipe):
    least = scaled(recipe, LEAST_MINUTES / QUICKSTART_MINUTES)
    assert min(pool.count for pool in least.pools.values()) >= 8
    assert min(stage.train.seconds for stage in least.stages if hasattr(stage, "train")) > 15
