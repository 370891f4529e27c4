"""Faults in a recipe: stages that name them meet them, and a changed plan is a changed input."""

from __future__ import annotations

import pytest

from quintain.commands.commands import run
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError
from recipe_edits import set_stages

FAULTS = '[faults.rough]\nepisodes = 1.0\nrate = 1.0\nkinds = { server_error = 1 }\n\n[[stages]]\nkind = "rollout"'


@pytest.fixture
def faulted(recipe_file):
    """Two stages: the oracle plays with and without faults."""
    clean = '[[stages]]\nkind = "rollout"\nname = "clean"\npool = "train"\n\n'
    set_stages(recipe_file, clean + FAULTS + '\nname = "faulted"\npool = "train"\nfaults = "rough"\n')
    return recipe_file


def faults_of(folder, stage: str) -> list[str]:
    finished, _ = read_journal(folder / stage / "journal")
    return [one.fault for episode in finished for turn in episode.turns for one in turn.observations]


def test_a_stage_meets_the_faults_it_names_and_others_none(faulted, tmp_path):
    folder = tmp_path / "run"
    run(faulted, folder)
    assert faults_of(folder, "clean") == [""] * 12
    assert faults_of(folder, "faulted") == ["server_error"] * 12
    faulted.write_text(faulted.read_text().replace("server_error = 1", "tool_gone = 1"))
    run(faulted, folder)
    assert faults_of(folder, "faulted") == ["tool_gone"] * 12
    assert sorted(path.name for path in folder.glob("*.old*")) == ["faulted.old1"]


def test_a_rate_for_a_tool_that_does_not_exist_is_an_input_error(faulted, tmp_path):
    faulted.write_text(faulted.read_text().replace("kinds =", "tools = { subtract = 0.5 }\nkinds ="))
    with pytest.raises(InputError, match=r"faults.rough.tools: the world has no tool 'subtract'; tools: add"):
        run(faulted, tmp_path / "run")
