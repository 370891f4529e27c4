"""A trained model meets tools that changed: it stops with the difference in words, or goes on and says the cost."""

from __future__ import annotations

import json
import sys

import pytest

from quintain.cli.main import main
from quintain.commands.commands import evaluate, run
from quintain.interface.errors import InterfaceDrift
from quintain.recipe import load_recipe


@pytest.fixture
def trained(recipe_file, tmp_path):
    """The model of a finished run; the tool's parameter `b` is named `c` since, and its result is an object."""
    run(recipe_file, tmp_path / "run")
    world = recipe_file.parent / "counter.py"
    text = world.read_text().replace("a: int, b: int) -> int", "a: int, c: int) -> dict[str, int]")
    world.write_text(text.replace("return a + b", 'return {"sum": a + c}').replace('"b": 1', '"c": 1'))
    recipe_file.write_text(recipe_file.read_text().replace("b = 2", "c = 2"))
    sys.modules.pop("counter")
    yield tmp_path / "run" / "sft" / "model"
    sys.modules.pop("counter", None)


def test_evaluating_it_stops_with_the_difference_in_words(recipe_file, trained, tmp_path):
    with pytest.raises(InterfaceDrift) as caught:
        evaluate(recipe_file, str(trained), "eval", 1, tmp_path / "new")
    text = str(caught.value)
    assert text.startswith(f"{trained} was trained on another interface: add: ")
    assert 'parameter "b" renamed to "c"' in text
    assert "result" in text
    assert text.endswith("run the same command with --accept-drift")


def test_training_it_further_stops_as_well(recipe_file, trained, tmp_path, capsys):
    base = load_recipe(recipe_file).model.base
    recipe_file.write_text(recipe_file.read_text().replace(base, str(trained)))
    assert main(["run", str(recipe_file), "--out", str(tmp_path / "further")]) == 2
    assert "was trained on another interface: add: " in capsys.readouterr().err


def test_accepting_the_drift_evaluates_and_prints_the_paired_difference(recipe_file, trained, tmp_path, capsys):
    arguments = ["--model", str(trained), "--out", str(tmp_path / "new"), "--accept-drift", "--json"]
    assert main(["eval", str(recipe_file), *arguments]) == 0
    (line,) = json.loads(capsys.readouterr().out)["stages"]["eval"]["drift"]
    assert line.startswith(
        f"drift: eval, tools as they are against {tmp_path / 'run' / 'tuned'}, tools as trained: pass@1 "
    )
    assert "4 common tasks, 0 left out" in line


def test_without_a_recorded_evaluation_the_cost_is_said_to_be_unknown(recipe_file, trained, tmp_path, capsys):
    recipe_file.write_text(recipe_file.read_text().replace("count = 4", "count = 4\nseed = 9"))
    world = recipe_file.parent / "counter.py"
    world.write_text(world.read_text().replace('Task(f"{split}-{n}"', 'Task(f"{split}-{seed}-{n}"'))
    arguments = ["--model", str(trained), "--out", str(tmp_path / "new"), "--accept-drift"]
    assert main(["eval", str(recipe_file), *arguments]) == 0
    assert "so what the change costs is not known" in capsys.readouterr().out


def test_a_model_without_its_lock_still_knows_that_the_tools_changed(recipe_file, trained, tmp_path):
    (trained / "tools.lock").unlink()
    with pytest.raises(InterfaceDrift, match=r"toolset changed, how is not known \(it has no tools.lock\)"):
        evaluate(recipe_file, str(trained), "eval", 1, tmp_path / "new")
