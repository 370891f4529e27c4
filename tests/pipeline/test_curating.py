"""The curate stage in a run: between rollouts and training."""

from __future__ import annotations

import json

import pytest

from quintain.commands import run
from quintain.interface.errors import InputError

CURATE = """
[[stages]]
kind = "curate"
name = "mix"
data = ["demos"]
mix = { mask = "agent", near_duplicate = 1.0 }

"""


@pytest.fixture
def curated_recipe(recipe_file):
    text = recipe_file.read_text().replace('data = ["demos"]', 'data = ["mix"]')
    where = text.index('[[stages]]\nkind = "sft"')
    recipe_file.write_text(text[:where] + CURATE + text[where:])
    return recipe_file


def test_training_on_everything_curated_is_training_on_the_rollouts(recipe_file, tmp_path):
    run(recipe_file, tmp_path / "plain")
    text = recipe_file.read_text().replace('data = ["demos"]', 'data = ["mix"]')
    where = text.index('[[stages]]\nkind = "sft"')
    recipe_file.write_text(text[:where] + CURATE + text[where:])
    run(recipe_file, tmp_path / "curated")
    counts = json.loads((tmp_path / "curated" / "mix" / "manifest.json").read_text())["result"]
    plain, curated = (
        json.loads((tmp_path / name / "sft" / "manifest.json").read_text())["result"] for name in ("plain", "curated")
    )
    assert counts["kept"] == plain["episodes"] == curated["episodes"]
    assert curated["examples"] == plain["examples"]
    assert (tmp_path / "curated" / "mix" / "lessons.jsonl").read_text().count("\n") == curated["examples"]


def test_a_second_run_skips_the_stage_and_a_changed_mix_runs_it_again(curated_recipe, tmp_path, capsys):
    run(curated_recipe, tmp_path / "run")
    capsys.readouterr()
    run(curated_recipe, tmp_path / "run")
    assert "mix: done before" in capsys.readouterr().err
    curated_recipe.write_text(curated_recipe.read_text().replace("near_duplicate = 1.0", "size = 5"))
    run(curated_recipe, tmp_path / "run")
    counts = json.loads((tmp_path / "run" / "mix" / "manifest.json").read_text())["result"]
    assert counts["kept"] <= 5
    assert "sft: done before" not in capsys.readouterr().err


def test_a_stage_without_a_source_is_one_line(curated_recipe, tmp_path):
    curated_recipe.write_text(curated_recipe.read_text().replace('name = "mix"\ndata = ["demos"]', 'name = "mix"'))
    with pytest.raises(InputError, match="needs `data`, `imports` or both"):
        run(curated_recipe, tmp_path / "run")


def test_a_missing_import_is_one_line_with_the_command_that_makes_it(curated_recipe, tmp_path):
    text = curated_recipe.read_text().replace('name = "mix"\ndata = ["demos"]', 'name = "mix"\nimports = ["others"]')
    curated_recipe.write_text(text)
    with pytest.raises(InputError, match=r"no import in .*others: it has no journal.*quintain import FILE --out"):
        run(curated_recipe, tmp_path / "run")
