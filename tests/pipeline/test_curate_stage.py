"""The curate stage in a run: between rollouts and training."""

from __future__ import annotations

import json

import pytest

from quintain.commands.commands import run
from quintain.curation.curate import curated
from quintain.curation.importing import import_files
from quintain.curation.review import Judgement, add_judgement
from quintain.harness.journal import read_journal
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


def test_a_judgement_of_its_episodes_runs_the_stage_again_and_none_of_others(curated_recipe, tmp_path, capsys):
    text, folder = curated_recipe.read_text(), tmp_path / "run"
    curated_recipe.write_text(text[: text.index('[[stages]]\nkind = "sft"')])
    run(curated_recipe, folder)
    before = json.loads((folder / "mix" / "manifest.json").read_text())["result"]
    name = read_journal(folder / "demos" / "journal")[0][0].id
    add_judgement(folder, Judgement(stage="base", episode=name, flag="flag"))
    capsys.readouterr()
    run(curated_recipe, folder)
    assert "mix: done before" in capsys.readouterr().err
    add_judgement(folder, Judgement(stage="demos", episode=name, flag="flag"))
    run(curated_recipe, folder)
    after = json.loads((folder / "mix" / "manifest.json").read_text())["result"]
    assert after["rejected"] == {**before["rejected"], "flagged": 1}
    assert after["kept"] == before["kept"] - 1


def test_a_stage_without_a_source_is_one_line(curated_recipe, tmp_path):
    curated_recipe.write_text(curated_recipe.read_text().replace('name = "mix"\ndata = ["demos"]', 'name = "mix"'))
    with pytest.raises(InputError, match="needs `data`, `imports` or both"):
        run(curated_recipe, tmp_path / "run")


def test_a_missing_import_is_one_line_with_the_command_that_makes_it(curated_recipe, tmp_path):
    text = curated_recipe.read_text().replace('name = "mix"\ndata = ["demos"]', 'name = "mix"\nimports = ["others"]')
    curated_recipe.write_text(text)
    with pytest.raises(InputError, match=r"no import in .*others: it has no journal.*quintain import FILE --out"):
        run(curated_recipe, tmp_path / "run")


def test_imported_trajectories_are_trained_on_with_their_own_tools(curated_recipe, tmp_path):
    record = {
        "messages": [
            {"role": "user", "content": "What is 2 + 3?"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "plus", "arguments": {"x": 2, "y": 3}}}]},
            {"role": "tool", "content": "5"},
            {"role": "assistant", "content": "5"},
        ],
        "tools": [{"name": "plus", "description": "Adds.", "parameters": {"type": "object"}}],
        "success": True,
    }
    file = tmp_path / "theirs.jsonl"
    file.write_text(json.dumps(record) + "\n")
    import_files([file], "messages", curated_recipe.parent / "theirs")
    curated_recipe.write_text(
        curated_recipe.read_text().replace('"mix"\ndata = ["demos"]', '"mix"\nimports = ["theirs"]')
    )
    run(curated_recipe, tmp_path / "run")
    trained = json.loads((tmp_path / "run" / "sft" / "model" / "training.json").read_text())
    (episode,) = (one for _, one, _ in curated(tmp_path / "run" / "mix"))
    assert trained["examples"] == 1
    assert [one["toolset"] for one in trained["digests"]] == [episode.digests.toolset]


def test_what_the_dialect_cant_write_is_left_out_with_a_word(curated_recipe, tmp_path, capsys):
    good, bad = (
        [{"role": "user", "content": "?"}, {"role": "assistant", "content": one}] for one in ("5", "<call>x {")
    )
    file = tmp_path / "theirs.jsonl"
    file.write_text("".join(json.dumps({"messages": one, "success": True}) + "\n" for one in (good, bad)))
    import_files([file], "messages", curated_recipe.parent / "theirs")
    curated_recipe.write_text(
        curated_recipe.read_text().replace('"mix"\ndata = ["demos"]', '"mix"\nimports = ["theirs"]')
    )
    run(curated_recipe, tmp_path / "run")
    assert "1 lesson left out, the first: episode theirs-2: dialect 'hermes-compact' can't" in capsys.readouterr().err
