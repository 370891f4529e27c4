"""The recipe of BFCL from the command line: a model in this process, one behind a server, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import loopback
from benchmark_scripts import load_benchmark
from quintain.cli.main import main
from quintain.commands.commands import recipes_folder, run
from quintain.training.config import SUMMARY
from quintain.worlds.bfcl import wheel
from recipe_edits import edit, set_stages


@pytest.fixture
def bfcl(tmp_path: Path, model_folder: Path) -> Path:
    """The recipe, on ten tasks and a tiny model."""
    path = tmp_path / "bfcl.toml"
    shutil.copy(recipes_folder() / "bfcl.toml", path)
    edit(path, "smollm2-135m", str(model_folder))
    edit(path, "count = 1240 ", "count = 10 ")
    edit(path, "tokens = 288\n", "tokens = 12\n")
    edit(path, "max_tokens = 288", "max_tokens = 12")
    return path


def evaluation(run: Path, stage: str) -> dict:
    return json.loads((run / stage / "evaluation.json").read_text())


def test_a_random_model_is_measured_by_category(bfcl, tmp_path):
    pytest.importorskip("bfcl_eval")
    assert main(["run", str(bfcl), "--out", str(tmp_path / "run")]) == 0
    found = evaluation(tmp_path / "run", "base")
    assert found["overall"]["counts"]["scored"] == 10
    assert set(found["by_template"]) <= {"simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance"}
    assert all(one["pass1"]["low"] < one["pass1"]["high"] for one in found["by_template"].values())
    assert list(found["by_turns"]) == ["1"]


def test_a_server_model_is_told_each_tasks_functions_and_sampled_as_the_recipe_says(bfcl, tmp_path, monkeypatch):
    pytest.importorskip("bfcl_eval")
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with loopback.serve(lambda request: {"content": "No function does this."}) as server:
        agent = ["--agent", "openai:m", "--base-url", server.url, "--samples", "1"]
        assert main(["eval", str(bfcl), *agent, "--out", str(tmp_path / "run")]) == 0
    assert len(server.requests) == 10
    assert {one["temperature"] for one in server.requests} == {0.0}
    offered = {tuple(tool["function"]["name"] for tool in one["tools"]) for one in server.requests}
    assert len(offered) == 10
    by_category = evaluation(tmp_path / "run", "eval")["by_template"]
    assert all((one["pass1"]["value"] == 1) == (name == "irrelevance") for name, one in by_category.items())


def test_a_model_trained_on_other_tools_is_measured_but_not_with_another_dialect(bfcl, tmp_path, model_folder, capsys):
    pytest.importorskip("bfcl_eval")
    from quintain.interface.dialects import digest_of

    trained = tmp_path / "trained"
    shutil.copytree(model_folder, trained)
    digests = {"toolset": "sha256:other", "dialect": digest_of("lines"), "world": "sha256:other"}
    (trained / SUMMARY).write_text(json.dumps({"digests": [digests]}))
    measure = ["eval", str(bfcl), "--model", str(trained), "--samples", "1", "--out"]
    assert main([*measure, str(tmp_path / "one")]) == 0
    (trained / SUMMARY).write_text(json.dumps({"digests": [digests | {"dialect": digest_of("hermes")}]}))
    assert main([*measure, str(tmp_path / "two")]) == 2
    assert "dialect changed to 'lines'" in capsys.readouterr().err


def test_nothing_is_trained_on_a_benchmark(bfcl, tmp_path, capsys):
    pytest.importorskip("bfcl_eval")
    set_stages(bfcl, '[[stages]]\nkind = "rollout"\nname = "demos"\npool = "eval"\n')
    bfcl.write_text(bfcl.read_text() + '[[stages]]\nkind = "sft"\nname = "sft"\ndata = ["demos"]\n')
    assert main(["run", str(bfcl), "--out", str(tmp_path / "run")]) == 2
    assert "stage 'sft': world 'bfcl-single' brings tools with each task" in capsys.readouterr().err


def test_without_the_package_the_command_says_how_to_get_it(bfcl, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(wheel, "PACKAGE", "bfcl_eval_that_is_not_there")
    assert main(["run", str(bfcl), "--out", str(tmp_path / "run")]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert "pip install --no-deps bfcl-eval" in last


def test_the_benchmark_prints_both_models_by_category(bfcl, recipe_file, tmp_path, capsys):
    pytest.importorskip("bfcl_eval")
    edit(recipe_file, "hermes-compact", "lines")
    run(recipe_file, tmp_path / "trained")
    capsys.readouterr()
    options = ["--trained", str(tmp_path / "trained"), "--recipe", str(bfcl), "--runs", str(tmp_path / "runs")]
    benchmark().main([*options, "--out", str(tmp_path / "result.json")])
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["after"] == "small/sft"
    assert result["rows"]["all"]["tasks"] == 10
    assert sum(one["tasks"] for name, one in result["rows"].items() if not name.startswith("all")) == 10
    assert result["scan"]["tasks"] == {}
    table = capsys.readouterr().out
    assert all(name in table for name in result["rows"])


def benchmark() -> Any:
    """The script, as a module."""
    return load_benchmark("bfcl")
