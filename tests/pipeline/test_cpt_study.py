"""The study `cpt` on a tiny model: bases at equal tokens, resumed, curves, conflict, and a fit that may refuse."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from quintain.commands.commands import recipes_folder
from quintain.evaluation.estimators import Trials
from quintain.recipe import load_recipe
from quintain.studies.cpt import _fit, loss_figures, paired_with
from quintain.studies.studies import STUDIES, study
from quintain.studies.study import Cell, expand
from recipe_edits import set_stages

STAGES = """
[[stages]]
kind = "rollout"
name = "demos"
pool = "train"

[[stages]]
kind = "fas"
name = "fas"
documents = ["chad.txt"]
make = { memories = 4, chinese = 0.0 }

[[stages]]
kind = "has"
name = "has"
data = ["demos"]

[[stages]]
kind = "cpt"
name = "cpt"
data = ["fas", "has"]
text = ["rivers.jsonl"]
tokens = { reasoning = 600, has = 600 }
train = { context = 1024, microbatch_tokens = 1024, batch_tokens = 512, learning_rate = 1e-3 }

[[stages]]
kind = "sft"
name = "sft"
data = ["demos", "fas"]
start = "cpt"
train = { learning_rate = 1e-3, batch_trajectories = 4, chat_tokens = 400, tokens = 900, conflict = 3 }

[[stages]]
kind = "eval"
name = "measured"
model = "sft"
pool = "eval"
samples = 2
sampling = { max_tokens = 4 }
"""


@pytest.fixture
def small(recipe_file):
    set_stages(recipe_file, STAGES)
    facts = "Capital: N'Djamena. Population: 17179740. Area: 1284000. Currency: Franc. Region: Middle Africa."
    (recipe_file.parent / "chad.txt").write_text(facts)
    rivers = [json.dumps({"text": f"River {number} runs to the sea."}) for number in range(60)]
    (recipe_file.parent / "rivers.jsonl").write_text("\n".join(rivers))
    return recipe_file


def test_bases_learn_from_equal_tokens_and_are_set_side_by_side(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(STUDIES, "cpt", replace(STUDIES["cpt"], seeds=(1,)))
    folder = tmp_path / "run"
    study("cpt", small, folder, full=False, minutes=None, cost_only=False)
    assert capsys.readouterr().err.startswith("3 cells, 3 settings with 1 seed each: about")
    record = json.loads((folder / "pretraining.json").read_text())
    cells = {one["base"]: one for one in record["cells"]}
    assert cells["original"]["cpt_tokens"] == 0
    assert 1200 <= cells["general"]["cpt_tokens"] < 1200 + 40
    assert 1200 <= cells["fas_has"]["cpt_tokens"] < 1200 + 2 * 1024
    for one in cells.values():
        assert one["loss"]["least"] <= one["loss"]["last_mean"]
        steps = [moment["step"] for moment in one["gradient_cosine"]]
        assert steps == [0, -(-len(one["losses"]) // 2), len(one["losses"])]
        assert all(-1 <= moment["cosine"] <= 1 for moment in one["gradient_cosine"])
        assert 0 <= one["pass1"] <= one["pass_at_k"] <= 1
        assert one["k"] == 2
    assert record["lines"] == ["No fit: a fit of score against tokens needs 5 different amounts of tokens, found 2."]
    assert record["against_original"]["fas_has"]["pass@2"]["estimate"]["low"] <= 0
    assert set(record["against_general"]) == {"fas_has"}
    page = (folder / "study.md").read_text()
    assert "| fas_has | " in page
    assert "- general, pass@1 against original: " in page
    assert "- fas_has, pass@1 against general: " in page
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/model/*.safetensors")}
    study("cpt", small, folder, full=False, minutes=None, cost_only=False)
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/model/*.safetensors")} == before


def test_every_base_of_the_full_grid_has_the_same_tokens_but_for_the_amounts():
    one = STUDIES["cpt"]
    recipe = expand(load_recipe(recipes_folder() / one.recipe), one, one.cells(full=True))
    tokens = {stage.name: sum(stage.tokens.values()) for stage in recipe.stages if stage.kind == "cpt"}
    whole = tokens.pop("cpt-fas_has-1")
    assert {tokens[f"cpt-{base}-1"] for base in ("general", "fas", "has", "shuffled")} == {whole}
    assert not any("mixed" in name or "summarised" in name for name in tokens)
    assert tokens["cpt-fas_has_x0_25-1"] == whole / 4
    assert tokens["cpt-fas_has_x2-1"] == whole * 2
    assert not any("original" in name for name in tokens)
    start = {stage.name: stage.start for stage in recipe.stages if stage.kind == "sft"}
    assert start["sft-original-2"] == "base"
    assert start["sft-shuffled-3"] == "cpt-shuffled-3"
    assert start["sft-shuffled-mixed-3"] == start["sft-shuffled-summarised-3"] == "cpt-shuffled-3"
    assert start["sft-original-mixed-2"] == "base"
    ways = {stage.name: (stage.train.chat, stage.summarise) for stage in recipe.stages if stage.kind == "sft"}
    assert ways["sft-fas-1"] == ("first", False)
    assert ways["sft-fas-mixed-1"] == ("mixed", False)
    assert ways["sft-fas-summarised-1"] == ("first", True)
    seeds = {stage.name: stage.train.seed for stage in recipe.stages if stage.kind in ("cpt", "sft")}
    assert all(name.endswith(f"-{seed}") for name, seed in seeds.items())


def test_a_base_is_held_against_the_general_text_of_as_many_tokens_that_was_fine_tuned_alike():
    solved = {"original": 1, "general": 2, "fas_has": 4, "fas_has_x2": 4, "general-mixed": 0, "fas_has-mixed": 3}
    trials = {base: {task: Trials(task, task, 4, right) for task in "ab"} for base, right in solved.items()}
    assert {base: one["pass@1"].estimate.value for base, one in paired_with("general", trials).items()} == {
        "fas_has": 0.5,
        "fas_has-mixed": 0.75,
    }
    assert list(paired_with("original", trials)) == ["general", "fas_has", "fas_has_x2"]


def test_steps_to_the_controls_loss_by_hand():
    # A quarter of eight steps: the control ends with a mean of 2. Trailing means of two: 6, 5.5, 4.5, 3.5, 2.5, 2.
    assert loss_figures([6, 5, 4, 3, 2, 2, 1, 1], [9, 9, 9, 9, 9, 9, 3, 1]) == {
        "final": 1,
        "least": 1,
        "last_mean": 1,
        "steps_to_control": 6,
    }
    assert loss_figures([4, 4], [1, 1])["steps_to_control"] is None


def test_long_runs_are_compared_over_their_last_hundred_steps():
    assert loss_figures([9.0] * 900 + [1.0] * 100, [5.0] * 1000)["last_mean"] == 1.0


def test_seeds_that_read_some_tokens_more_are_one_amount_of_tokens():
    def points(seeds):
        amounts = {"original": 0, "fas_has_x0_25": 10_000, "fas_has_x0_5": 20_000, "fas_has": 40_000}
        return [
            (Cell(group, seed, {}), {"cpt_tokens": tokens and tokens + seed, "pass1": 0.1 * seed})
            for group, tokens in amounts.items()
            for seed in range(1, seeds + 1)
        ]

    assert _fit(points(1))["lines"] == _fit(points(9))["lines"]
    assert "found 4." in _fit(points(9))["lines"][0]
    five = [*points(3), *((Cell("fas_has_x2", seed, {}), {"cpt_tokens": 80_000 + seed}) for seed in (1, 2, 3))]
    low, high = (_fit([(cell, {"pass1": score, **one}) for cell, one in five])["laws"] for score in (0.2, 0.9))
    assert low
    assert [one["predicted"] for one in low] == [one["predicted"] for one in high], "no seed of the largest is fitted"
