"""A recipe runs to a report; a run resumes, notices change, and loses nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from quintain.commands.commands import check_tools, evaluate, lock_tools, run
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError, InterfaceDrift
from quintain.pipeline.reporting import report


def test_a_recipe_runs_every_stage_and_writes_a_report(recipe_file, folder):
    result = run(recipe_file, folder)
    assert list(result["stages"]) == ["base", "demos", "sft", "tuned"]
    assert result["stages"]["demos"]["successes"] == 12
    assert result["stages"]["sft"]["steps"] == 3
    record = json.loads((folder / "report.json").read_text())
    names = [stage["name"] for stage in record["stages"]]
    assert names == ["base", "demos", "sft", "tuned"]
    assert record["stages"][3]["evaluation"]["overall"]["counts"]["planned"] == 8
    assert (folder / "report.html").stat().st_size > 10_000
    manifest = json.loads((folder / "sft" / "manifest.json").read_text())
    assert manifest["status"] == "done"
    assert manifest["digests"]["toolset"].startswith("sha256:")


def test_a_second_run_does_nothing_again(recipe_file, folder):
    run(recipe_file, folder)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/journal/*")}
    weights = (folder / "sft" / "model" / "model.safetensors").read_bytes()
    run(recipe_file, folder)
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/journal/*")} == before
    assert (folder / "sft" / "model" / "model.safetensors").read_bytes() == weights


def test_a_changed_stage_runs_again_and_the_old_result_is_kept(recipe_file, folder):
    run(recipe_file, folder)
    recipe_file.write_text(recipe_file.read_text().replace("learning_rate = 1e-3", "learning_rate = 2e-3"))
    run(recipe_file, folder)
    aside = sorted(path.name for path in folder.glob("*.old*"))
    assert aside == ["sft.old1", "tuned.old1"]
    assert (folder / "sft.old1" / "model" / "model.safetensors").exists()


def test_a_run_killed_in_any_stage_goes_on_and_ends_as_if_never_killed(recipe_file, folder, tmp_path):
    whole = tmp_path / "whole"
    run(recipe_file, whole)
    command = [sys.executable, "-m", "quintain", "run", str(recipe_file), "--out", str(folder)]
    for stage in ("base", "sft", "tuned"):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        manifest = folder / stage / "manifest.json"
        for _ in range(3000):
            if manifest.exists() or process.poll() is not None:
                break
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    run(recipe_file, folder)
    killed = (folder / "sft" / "model" / "model.safetensors").read_bytes()
    assert killed == (whole / "sft" / "model" / "model.safetensors").read_bytes()
    for stage in ("base", "demos", "tuned"):
        resumed, _ = read_journal(folder / stage / "journal")
        direct, _ = read_journal(whole / stage / "journal")
        assert sorted(one.id for one in resumed) == sorted(one.id for one in direct)


def test_two_processes_cannot_work_in_one_folder(recipe_file, folder):
    import fcntl

    folder.mkdir()
    with (folder / ".lock").open("a+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="in use by process"):
            run(recipe_file, folder)


def test_changed_tools_stop_a_run_with_the_difference_in_words(recipe_file, folder):
    run(recipe_file, folder)
    world = recipe_file.parent / "counter.py"
    world.write_text(world.read_text().replace("a: int, b: int", "a: int, b: int, c: int = 0"))
    drifted = subprocess.run(
        [sys.executable, "-m", "quintain", "run", str(recipe_file), "--out", str(folder)],
        capture_output=True,
        text=True,
    )
    assert drifted.returncode == 2
    assert "parameter" in drifted.stderr
    assert '"c"' in drifted.stderr
    assert (folder / "sft" / "model" / "model.safetensors").exists()


def test_a_lock_is_written_and_holds_until_the_tools_change(recipe_file):
    assert "1 tools, 1 probe calls" in lock_tools(recipe_file, None)
    assert check_tools(recipe_file, None) == []


def test_a_lock_beside_the_recipe_guards_the_run(recipe_file, folder):
    lock_tools(recipe_file, None)
    lock = recipe_file.parent / "tools.lock"
    other = recipe_file.parent / "other"
    other.mkdir()
    shutil.copy(recipe_file, other)
    world = (recipe_file.parent / "counter.py").read_text().replace("Adds two numbers", "Adds numbers")
    (other / "counter2.py").write_text(world)
    moved = other / "recipe.toml"
    moved.write_text(moved.read_text().replace("counter:Counter", "counter2:Counter"))
    shutil.copy(lock, other)
    with pytest.raises(InterfaceDrift, match="add: description changed"):
        run(moved, folder)


def test_eval_measures_any_model_folder_on_a_recipes_pool(recipe_file, folder, model_folder):
    result = evaluate(recipe_file, str(model_folder), "eval", 3, folder)
    record = json.loads((folder / "eval" / "evaluation.json").read_text())
    assert record["overall"]["counts"]["planned"] == 12
    assert list(result["stages"]) == ["eval"]


def test_every_evaluation_leaves_a_sheet_of_trajectories_for_a_person(recipe_file, folder, model_folder):
    evaluate(recipe_file, str(model_folder), "eval", 3, folder)
    lines = (folder / "eval" / "sheet.md").read_text().splitlines()
    assert lines[0] == "# Evaluation eval"
    heads = [line for line in lines if line.startswith("## ")]
    assert len(heads) == 8
    played = {episode.id: episode for episode in read_journal(folder / "eval" / "journal")[0]}
    for head in heads:
        identity, _, judged = head.removeprefix("## ").partition(": ")
        assert judged.split(",")[0] == ("success" if played[identity].success else "failure")


def test_a_trained_model_carries_its_interface_and_is_not_measured_on_another_one(recipe_file, folder, tmp_path):
    run(recipe_file, folder)
    manifest = json.loads((folder / "sft" / "manifest.json").read_text())
    model = folder / "sft" / "model"
    assert json.loads((model / "training.json").read_text())["digests"] == [manifest["digests"]]
    assert (model / "tools.lock").read_bytes() == (folder / "tools.lock").read_bytes()
    evaluate(recipe_file, str(model), "eval", 1, tmp_path / "same")
    recipe_file.write_text(recipe_file.read_text().replace('"hermes-compact"', '"hermes"'))
    with pytest.raises(
        InterfaceDrift, match=r"trained on another interface: dialect changed to 'hermes'\. .*--accept-drift"
    ):
        evaluate(recipe_file, str(model), "eval", 1, tmp_path / "other")


def test_a_report_can_be_written_again_from_the_folder_alone(recipe_file, folder):
    run(recipe_file, folder)
    first = json.loads((folder / "report.json").read_text())
    (folder / "report.json").unlink()
    report(folder)
    again = json.loads((folder / "report.json").read_text())
    assert again["stages"] == first["stages"]


def test_a_folder_without_a_run_has_no_report(tmp_path):
    with pytest.raises(InputError, match="is no run"):
        report(tmp_path)


def test_the_report_says_which_targets_were_reached(recipe_file, folder):
    reach = '[[targets]]\nmeasure = "pass1"\nstage = "tuned"\nat_least = 0.5\n\n'
    targets = reach + '[[targets]]\nmeasure = "minutes"\nat_most = 60\n'
    recipe_file.write_text(recipe_file.read_text().replace("[[stages]]", targets + "\n[[stages]]", 1))
    run(recipe_file, folder)
    record = json.loads((folder / "report.json").read_text())
    assert [(one["name"], one["target"], one["met"]) for one in record["targets"]] == [
        ("pass@1 of tuned", "at least 0.5", False),
        ("minutes of all stages", "at most 60", True),
    ]


def test_a_lora_stage_leaves_a_model_anyone_can_load(recipe_file, folder):
    text = recipe_file.read_text()
    recipe_file.write_text(text.replace("batch_trajectories", "lora_rank = 2, batch_trajectories"))
    run(recipe_file, folder)
    assert (folder / "sft" / "adapter" / "adapter_config.json").is_file()
    result = evaluate(recipe_file, str(folder / "sft" / "model"), "eval", 1, folder.with_name("again"))
    assert list(result["stages"]) == ["eval"]


def test_evaluations_are_compared_on_their_own_pool_whatever_runs_between_them(recipe_file, folder):
    text = recipe_file.read_text().replace("[[stages]]", '[pools.other]\nsplit = "eval"\ncount = 2\n\n[[stages]]', 1)
    between = '[[stages]]\nkind = "eval"\nname = "elsewhere"\npool = "other"\nsampling = { max_tokens = 4 }\n\n'
    start = text.index('[[stages]]\nkind = "rollout"')
    recipe_file.write_text(text[:start] + between + text[start:])
    run(recipe_file, folder)
    record = json.loads((folder / "report.json").read_text())
    assert [(one["before"], one["after"], one["tasks"]) for one in record["comparisons"]] == [("base", "tuned", 4)]


def test_two_evaluations_without_a_common_scored_task_are_not_compared():
    from quintain.interface.episode import Episode, Outcome, Usage, Verdict
    from quintain.pipeline.reporting import _comparisons

    def scored(task: str) -> Episode:
        return Episode(task, task, task, "w", "a", (), (), Outcome("answered"), Verdict(True), Usage())

    done = [{"name": name, "kind": "eval", "stage": {"pool": "eval"}} for name in ("base", "tuned")]
    assert _comparisons(done, {"base": [scored("x")], "tuned": [scored("y")]}) == []
    assert len(_comparisons(done, {"base": [scored("x")], "tuned": [scored("x"), scored("y")]})) == 1
