"""An evaluation as a log of Inspect AI: one sample a task, one epoch an episode."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "curation"))

from curation_episodes import answered, called, episode

from quintain.cli.main import main
from quintain.commands.commands import run
from quintain.commands.inspecting import export_inspect, inspect_log
from quintain.interface.episode import Outcome, Usage, Verdict
from quintain.interface.messages import Action, Turn
from quintain.interface.tasks import Task
from quintain.pipeline.comparison import Measured

TASKS = {name: Task(name, "desk", "?", answer="42") for name in ("t1", "t2")}


@pytest.fixture
def measured():
    """Two tasks, two trials each: one success, one failure with a refused call, one thought, one infra error."""
    refused = [called(error="exception", result="no such page"), answered("41")]
    thinking = [Turn(Action(thought="Easy.", answer="42"))]
    episodes = [
        replace(episode("a#0"), task_id="t1", usage=Usage(tokens=9, context_tokens=30, seconds=1.5)),
        replace(episode("a#1", refused, success=False), task_id="t1", verdict=Verdict(False, 0.5, ("wrong number",))),
        replace(episode("b#0", thinking), task_id="t2"),
        replace(episode("b#1", success=None), task_id="t2", outcome=Outcome("infra_error", detail="disk full")),
    ]
    return Measured("run", episodes, TASKS, len(TASKS))


@pytest.fixture
def log(measured):
    return inspect_log(measured, "eval", datetime(2025, 1, 2, tzinfo=UTC))


def test_every_episode_is_a_sample_with_the_epoch_of_its_trial(log):
    assert [(one["id"], one["epoch"], one["target"]) for one in log["samples"]] == [
        ("t1", 1, "42"),
        ("t1", 2, "42"),
        ("t2", 1, "42"),
        ("t2", 2, "42"),
    ]


def test_verdicts_are_scores_and_an_infra_error_has_none(log):
    assert [one["scores"].get("verdict", {}).get("value") for one in log["samples"]] == ["C", "I", "C", None]
    assert log["samples"][1]["scores"]["verdict"]["explanation"] == "wrong number"
    assert log["samples"][3]["error"]["message"] == "disk full"


def test_accuracy_is_pass_at_1_over_tasks_with_its_interval(log):
    """One task at 1/2, the other at 1/1: 0.75, not 2 of 3."""
    (score,) = log["results"]["scores"]
    assert score["metrics"]["accuracy"]["value"] == 0.75
    assert score["metrics"]["ci_low"]["value"] < 0.75 < score["metrics"]["ci_high"]["value"]
    assert (log["results"]["total_samples"], log["results"]["completed_samples"]) == (4, 3)


def test_of_a_sealed_pool_the_log_holds_what_was_played_and_no_targets(measured):
    """A run keeps no task of a sealed pool, but knows how many there are: one of three was not played."""
    log = inspect_log(replace(measured, tasks={}, size=3), "eval", datetime(2025, 1, 2, tzinfo=UTC))
    assert (log["results"]["total_samples"], log["results"]["completed_samples"]) == (6, 3)
    assert log["eval"]["dataset"] == {"name": "eval", "samples": 3, "sample_ids": ["t1", "t2"]}
    assert {one["target"] for one in log["samples"]} == {""}


def test_messages_keep_calls_errors_and_thoughts(log):
    asked, called_, told, last = log["samples"][1]["messages"]
    assert (asked["role"], last["content"]) == ("user", "41")
    assert called_["tool_calls"] == [{"id": "c", "function": "search", "arguments": {}, "type": "function"}]
    assert told["error"] == {"type": "unknown", "message": "exception: no such page"}
    assert log["samples"][2]["messages"][-1]["content"] == [
        {"type": "reasoning", "reasoning": "Easy."},
        {"type": "text", "text": "42"},
    ]


def test_inspects_own_package_lists_and_reads_the_log_of_a_run(measured, tmp_path, monkeypatch):
    """What `inspect view` does first: find the logs of a folder, and read them."""
    reader = pytest.importorskip("inspect_ai.log", reason="`pip install inspect-ai`")
    monkeypatch.setattr("quintain.commands.inspecting.read_evaluation", lambda path: measured)
    export_inspect(Path("runs/mine/tuned"), tmp_path / "logs")
    (found,) = reader.list_eval_logs(str(tmp_path / "logs"))
    read = reader.read_eval_log(found)
    assert (found.task, read.status) == ("tuned", "success")
    assert read.results.scores[0].metrics["accuracy"].value == 0.75
    assert [sample.scores["verdict"].value for sample in read.samples[:3]] == ["C", "I", "C"]


def test_the_command_names_the_file_so_that_inspect_view_lists_it(recipe_file, tmp_path, capsys):
    text = recipe_file.read_text()
    start, stop = text.index('[[stages]]\nkind = "rollout"'), text.index('[[stages]]\nkind = "eval"\nname = "tuned"')
    recipe_file.write_text(text[:start] + text[stop:].replace('model = "sft"', 'model = "base"'))
    run(recipe_file, tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--format", "inspect", "--out", str(tmp_path / "logs")]) == 0
    assert "8 samples; `inspect view --log-dir" in capsys.readouterr().out
    (file,) = (tmp_path / "logs").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00_run_[0-9a-f]{22}\.json", file.name)
    assert json.loads(file.read_text())["eval"]["dataset"]["samples"] == 4
