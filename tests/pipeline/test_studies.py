"""Studies on a tiny model: cells share what comes before them, cost is said first, an interrupted one goes on."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import pytest

from quintain.cli.main import main
from quintain.commands.commands import recipes_folder
from quintain.inference.models import inspect_model
from quintain.interface.errors import InputError
from quintain.pipeline.run import Finished
from quintain.recipe import Recipe, load_recipe
from quintain.studies.studies import STUDIES, grid_of, study
from quintain.studies.study import cost, cost_line, expand
from quintain.training.sft import shuffled, steps_of
from recipe_edits import edit, set_stages

STAGES = """
[faults.rough]
episodes = 1.0
rate = 1.0
kinds = { server_error = 1 }

[faults.unseen]
episodes = 1.0
wordings = "held_out"

[[stages]]
kind = "rollout"
name = "demos"
pool = "train"

[[stages]]
kind = "rollout"
name = "struck"
pool = "train"
faults = "rough"

[[stages]]
kind = "recover"
name = "recovery"
data = ["struck"]

[[stages]]
kind = "curate"
name = "curated"
data = ["demos", "recovery"]
mix = { near_duplicate = 1.0 }

[[stages]]
kind = "sft"
name = "sft"
data = ["curated"]
train = { learning_rate = 1e-3, batch_trajectories = 4, tokens = 900 }

[[stages]]
kind = "eval"
name = "measured"
model = "sft"
pool = "eval"
samples = 1
faults = "unseen"
sampling = { max_tokens = 4 }
"""


@pytest.fixture
def small(recipe_file):
    edit(recipe_file, "turns = 3", "turns = 6")
    set_stages(recipe_file, STAGES)
    return recipe_file


def run(path, folder, **options):
    return study("recovery", path, folder, **({"full": False, "minutes": None, "cost_only": False} | options))


def test_a_study_trains_every_cell_shares_the_rest_and_goes_on_where_it_stopped(small, tmp_path, capsys):
    folder = tmp_path / "run"
    result = run(small, folder)
    assert "6 cells, 2 settings with 3 seeds each: about" in capsys.readouterr().err.splitlines()[0]
    assert [(row["group"], row["seeds"]) for row in result["rows"]] == [("clean", 3), ("mix", 3)]
    stages = sorted(path.parent.name for path in folder.glob("*/manifest.json"))
    assert [name for name in stages if "-" not in name] == ["demos", "recovery", "struck"]
    assert len(stages) == 3 + 3 * 6
    manifests = {name: json.loads((folder / name / "manifest.json").read_text()) for name in stages}
    tokens = {
        name: [json.loads(line)["example_tokens"] for line in (folder / name / "metrics.jsonl").open()]
        for name in stages
        if name.startswith("sft-")
    }
    assert all(sum(steps[:-1]) < 900 <= sum(steps) for steps in tokens.values())
    assert manifests["curated-mix-1"]["stage"]["data"] == ["demos", "recovery"]
    assert manifests["measured-clean-2"]["stage"]["model"] == "sft-clean-2"
    assert manifests["sft-clean-2"]["stage"]["train"]["seed"] == 2
    assert "| mix | 24 episodes, 0 failures | 3 |" in (folder / "study.md").read_text()
    assert (folder / "study.svg").read_text().startswith("<svg")
    assert (folder / "report.html").is_file()

    assert run(small, folder, cost_only=True)["lines"][0].endswith(", 0 of them still to come")

    (folder / "measured-mix-3" / "manifest.json").unlink()
    before = (folder / "sft-mix-3" / "model" / "model.safetensors").stat().st_mtime_ns
    again = run(small, folder)
    assert again["rows"] == result["rows"]
    assert (folder / "sft-mix-3" / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_several_models_have_a_grid_each_and_stand_side_by_side_by_size(small, tmp_path, model_folder, monkeypatch):
    other = tmp_path / "other"
    shutil.copytree(model_folder, other)
    monkeypatch.setitem(STUDIES, "recovery", replace(STUDIES["recovery"], seeds=(1,)))
    models = [str(other), str(model_folder)]
    costs = run(small, tmp_path / "runs", models=models, cost_only=True)
    assert (costs["cells"], [line.split(": ")[0] for line in costs["lines"]]) == (4, models)
    result = run(small, tmp_path / "runs", models=models)
    assert [one["model"] for one in result["models"]] == models
    assert {one["parameters"] for one in result["models"]} == {inspect_model(str(other)).parameters}
    assert [[row["group"] for row in one["rows"]] for one in result["models"]] == [["clean", "mix"]] * 2
    page = (tmp_path / "runs" / "sizes.md").read_text()
    assert page.count("| clean | 1 |") == page.count("| mix | 1 |") == 2
    assert len(list((tmp_path / "runs").glob("*/study.md"))) == 2
    assert run(small, tmp_path / "runs", models=models, cost_only=True)["lines"][1].endswith(
        ", 0 of them still to come"
    )


def test_a_model_given_twice_is_refused(small, tmp_path):
    with pytest.raises(InputError, match="--models a,b,a: one of them is given twice"):
        run(small, tmp_path, models=["a", "b", "a"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recovery", "failures"])
def test_a_study_of_the_desk_scaled_to_a_minute_runs_to_its_table(name, tmp_path, model_folder):
    one = STUDIES[name]
    text = (recipes_folder() / one.recipe).read_text(encoding="utf-8")
    (tmp_path / one.recipe).write_text(text.replace('"smollm2-135m"', f'"{model_folder}"'), encoding="utf-8")
    result = study(name, tmp_path / one.recipe, tmp_path / "run", full=False, minutes=1.0, cost_only=False)
    assert [row["seeds"] for row in result["rows"]] == [1] * len(one.settings)
    assert all(row["estimates"]["pass1"]["tasks"] >= 8 for row in result["rows"])


def test_cost_is_said_without_running_anything(small, tmp_path, capsys):
    arguments = ["study", "recovery", "--recipe", str(small), "--out", str(tmp_path / "run"), "--cost"]
    assert main(arguments) == 0
    assert "6 cells, 2 settings with 3 seeds each: about" in capsys.readouterr().out
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "full", "cells"), [("failures", False, 18), ("failures", True, 60), ("recovery", False, 6)]
)
def test_the_recipes_shipped_fit_their_studies(name, full, cells):
    one = STUDIES[name]
    made = one.cells(full)
    assert len(made) == cells
    recipe = expand(load_recipe(recipes_folder() / one.recipe), one, made)
    assert len({stage.name for stage in recipe.stages}) == len(recipe.stages)
    budgets = {stage.train.tokens for stage in recipe.stages if stage.name.startswith("sft-")}
    assert len(budgets) == 1


def test_the_failures_study_costs_about_ninety_minutes(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    one = STUDIES["failures"]
    recipe = expand(load_recipe(recipes_folder() / one.recipe), one, one.cells(False))
    assert 80 < cost(recipe, [])[0] < 120


def test_every_cell_differs_from_the_others_in_its_keys(tmp_path):
    one = STUDIES["failures"]
    recipe = expand(load_recipe(recipes_folder() / one.recipe), one, one.cells(False))
    mixes = {(stage.mix.failure_share, stage.mix.mask) for stage in recipe.stages if stage.kind == "curate"}
    assert mixes == {(share, mask) for share in (0.0, 0.2, 0.5) for mask in ("agent", "wrong_turns")}


def test_a_recipe_that_ends_otherwise_is_an_input_error(recipe_file, tmp_path):
    with pytest.raises(InputError, match="the recipe must end with curate, sft, eval"):
        run(recipe_file, tmp_path)


def none_done(_: Recipe) -> list[Finished]:
    return []


def test_fewer_minutes_are_fewer_seeds_of_the_same_cells_and_then_smaller_ones(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    one, recipe = STUDIES["cpt"], load_recipe(recipes_folder() / "cpt-desk.toml")
    whole = cost(grid_of(one, recipe, False, None, none_done)[1], [])[0]
    for minutes, seeds in ((whole, 3), (whole * 0.9, 2), (whole * 0.4, 1)):
        cells, expanded, _ = grid_of(one, recipe, False, minutes, none_done)
        assert {cell.seed for cell in cells} == set(range(1, seeds + 1))
        assert {stage.train.tokens for stage in expanded.stages if stage.kind == "sft"} == {24_000}
        assert cost(expanded, [])[0] <= minutes
    cells, expanded, _ = grid_of(one, recipe, False, whole / 6, none_done)
    assert {cell.seed for cell in cells} == {1}
    assert {stage.train.tokens for stage in expanded.stages if stage.kind == "sft"} == {12_000}
    assert cost(expanded, [])[0] == pytest.approx(whole / 6, rel=0.01)


def test_cells_done_keep_their_size_and_count_as_measured(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    one, recipe = STUDIES["cpt"], load_recipe(recipes_folder() / "cpt-desk.toml")
    hour = Finished("sft-original-1", "sft", "of the fine-tuning", 3600.0, {})
    cells, expanded, _ = grid_of(one, recipe, False, 30, lambda _: [hour])
    assert {cell.seed for cell in cells} == {1}
    assert {stage.train.tokens for stage in expanded.stages if stage.kind == "sft"} == {24_000}
    total, left = cost(expanded, [hour])
    assert total - left == pytest.approx(60)


def test_one_core_takes_twice_as_long_as_two(monkeypatch):
    one = STUDIES["cpt"]
    recipe = expand(load_recipe(recipes_folder() / one.recipe), one, one.cells(False))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    two = cost(recipe, [])[0]
    assert "on 2 cores" in cost_line(recipe, one.cells(False), [])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    assert cost(recipe, [])[0] == 2 * two
    assert "on 1 core" in cost_line(recipe, one.cells(False), [])


@pytest.mark.parametrize("minutes", [0.5, -1.0, float("nan")])
def test_too_few_minutes_are_refused(small, tmp_path, minutes):
    with pytest.raises(InputError, match="too short"):
        run(small, tmp_path, minutes=minutes)


def test_steps_of_a_token_budget_end_with_the_batch_that_reaches_it():
    from quintain.interface.example import Example

    examples = [Example(tuple(range(10)), (0.0,) * 10) for _ in range(6)]
    batches, _ = shuffled(examples, 2, 1, 0)
    assert [steps_of(batches, tokens) for tokens in (1, 20, 21, 60, 61)] == [1, 1, 2, 3, 4]
