"""`quintain doctor` finds what would make a result worthless, before any compute is spent."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from quintain.cli.main import main
from quintain.commands.commands import recipes_folder
from quintain.doctor.doctor import examine, some_tasks
from quintain.doctor.model import contexts
from quintain.doctor.world import EPISODES, WorldExam
from quintain.harness.loop import Harness
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.recipe import load_recipe


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def doctor(recipe_file):
    """Examines the recipe with an edited world; returns the checks by name."""

    def with_world(*edits: tuple[str, str], recipe: tuple[tuple[str, str], ...] = ()) -> dict[str, tuple[str, str]]:
        text = (Path(__file__).parent / "counter.py").read_text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        (recipe_file.parent / "examined.py").write_text(text)
        content = recipe_file.read_text().replace("counter:Counter", "examined:Counter")
        for old, new in recipe:
            assert old in content
            content = content.replace(old, new)
        recipe_file.write_text(content)
        sys.modules.pop("examined", None)
        return {one["name"]: (one["state"], one["detail"]) for one in examine(recipe_file)["checks"]}

    yield with_world
    sys.modules.pop("examined", None)


def test_a_sound_recipe_passes_every_check_and_writes_nothing(doctor, tmp_path):
    found = doctor()
    assert {name: detail for name, (state, detail) in found.items() if state == "fail"} == {}
    assert found["gold passes"] == ("ok", "12 of 12 reference solutions succeed")
    assert found["tokens round trip"][0] == "ok"
    assert found["loss mask"][1].endswith("24 end tokens in 24 turns")
    assert "12 calls of 12 episodes" in found["a call fires and parses"][1]
    assert list(tmp_path.glob("runs")) == []


def test_an_answer_from_memory_is_a_warning_where_the_last_call_leaves_no_trace(doctor):
    assert doctor()["gold without its last call"] == (
        "warn",
        "12 of 12 succeed without their last call: the verdict rests on the answer alone",
    )


def test_a_verdict_that_ignores_a_call_which_leaves_a_trace_is_a_failure(doctor):
    found = doctor(("return a + b", "self.calls = [a, b]; return a + b"))
    assert found["gold without its last call"][0] == "fail"


WRONG_GOLD = ("yield Action(answer=seen.content)", "yield Action(answer='7')")
ALWAYS = ("return Verdict(episode.answer == task.answer)", "return Verdict(True)")
FROM_A_FILE = (
    "return Verdict(episode.answer == task.answer)",
    "import pathlib, json; file = pathlib.Path('verdict.json'); "
    "return Verdict(file.exists() and json.loads(file.read_text())['success'] or episode.answer == task.answer)",
)
COUNTS = ("return a + b", "Counter.total = getattr(Counter, 'total', 0) + 1; return a + b + (Counter.total > 40)")
CLOCK = ("return a + b", "import time; return str(time.perf_counter_ns())")


@pytest.mark.parametrize(
    ("edits", "check"),
    [
        ([WRONG_GOLD], "gold passes"),
        ([ALWAYS], "silent fails"),
        ([ALWAYS], "random fails"),
        ([FROM_A_FILE], "planted verdict"),
        ([COUNTS], "order does not matter"),
        ([CLOCK, ('-> int:\n        """Adds', '-> str:\n        """Adds')], "three repeats agree"),
    ],
)
def test_every_kind_of_broken_world_is_found(doctor, edits, check):
    state, detail = doctor(*edits)[check]
    assert state == "fail"
    assert detail


def test_a_world_without_a_reference_solution_is_examined_as_far_as_possible(doctor):
    found = doctor(("    def solution(self, task)", "    def other(self, task)"))
    assert found["gold passes"][0] == "skip"
    assert found["silent fails"][0] == "ok"


def test_both_contexts_of_the_published_recipe_have_positions():
    recipe = load_recipe(recipes_folder() / "agentfounder-30b.toml")
    assert contexts(recipe, 32768).detail == "cpt1 32768 of 32768, cpt2 131072 of 131072 positions"
    with pytest.raises(InputError, match="context 32768 tokens > the model's 16384 positions"):
        contexts(recipe, 16384)


def test_a_second_yarn_counts_from_the_positions_before_the_first(tmp_path):
    text = (recipes_folder() / "agentfounder-30b.toml").read_text(encoding="utf-8")
    short = "\ncontext = 32768\n"
    assert text.count(short) == 1
    text = text.replace(short, "\ncontext = 32768\nrope = { yarn = 4.0 }\n")
    (tmp_path / "twice.toml").write_text(text)
    with pytest.raises(InputError, match="context 131072 tokens > 8192 positions x yarn = 4; set yarn = 16"):
        contexts(load_recipe(tmp_path / "twice.toml"), 8192)


def test_a_sealed_pool_stays_shut(recipe_file):
    home = recipe_file.parent
    where = ["--out", str(home / "eval.sealed"), "--key", str(home / "eval.key")]
    assert main(["pool", "seal", str(recipe_file), "eval", *where]) == 0
    before = {path.name: path.read_bytes() for path in home.glob("eval.sealed*")}
    text = recipe_file.read_text()
    recipe_file.write_text(text.replace('split = "eval"\ncount = 4', 'sealed = "eval.sealed"\nkey = "eval.key"'))
    found = {one["name"]: one["detail"] for one in examine(recipe_file)["checks"]}
    assert found["gold passes"] == "8 of 8 reference solutions succeed"
    assert {path.name: path.read_bytes() for path in home.glob("eval.sealed*")} == before
    assert len(before) == 2, "the pool and its log"


def test_a_budget_too_small_for_the_reference_solution_is_found(doctor):
    state, detail = doctor(recipe=(("turns = 3", "turns = 1"),))["gold passes"]
    assert state == "fail"
    assert "limit(turns)" in detail


def test_a_budget_of_tokens_too_small_for_the_gold_turns_is_found(doctor):
    found = doctor(recipe=(("tokens = 60", "tokens = 5"),))
    assert found["context and budget"][0] == "fail"
    assert found["a call fires and parses"][0] == "fail"


def test_tools_that_changed_since_they_were_locked_are_found(doctor, recipe_file):
    doctor()
    assert main(["tools", "lock", str(recipe_file)]) == 0
    state, detail = doctor(("a: int, b: int", "a: int, b: int = 1"))["tools as locked"]
    assert (state, "no longer required" in detail) == ("fail", True)


def test_a_start_model_whose_groups_do_not_vary_is_found(doctor):
    stage = '[[stages]]\nkind = "grpo"\nname = "learn"\npool = "train"\nmax_tokens = 8\ntrain = { group_size = 4 }\n'
    rollout = '[[stages]]\nkind = "rollout"'
    found = doctor(recipe=((rollout, stage + rollout),))
    assert found["groups of learn vary"] == ("fail", "0 of 4 groups of 4 vary; 0 of 16 episodes succeed")


def test_a_target_in_minutes_below_the_bare_arithmetic_is_found(doctor):
    target = '[[targets]]\nmeasure = "minutes"\nat_most = 1e-9\n\n[pools.train]'
    assert doctor(recipe=(("[pools.train]", target),))["time fits"][0] == "fail"


def test_the_exit_code_is_1_on_a_failure_and_0_without(recipe_file, capsys):
    assert main(["doctor", str(recipe_file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    recipe_file.write_text(recipe_file.read_text().replace("turns = 3", "turns = 1"))
    assert main(["doctor", str(recipe_file)]) == 1
    seen = capsys.readouterr()
    assert "checks fail: mend them before you train or measure" in seen.out
    assert len(seen.out.splitlines()) <= 25, "one screen"


def test_a_world_whose_episodes_take_long_is_examined_on_fewer_tasks(doctor, monkeypatch):
    monkeypatch.setattr(WorldExam, "seconds", lambda self: 0.8)
    found = doctor()
    # 60 s hold 75 episodes of 0.8 s: 12 more of each of 6 tasks, 3 of either pool
    assert found["time of an episode"][0] == "warn"
    assert found["time of an episode"][1].startswith("0.8 s; tasks of each pool in the other checks: 3, not 8")
    assert found["gold passes"] == ("ok", "12 of 12 reference solutions succeed")
    assert found["three repeats agree"] == ("ok", "6 of 6 episodes are the same three times")
    assert found["silent fails"] == ("ok", "6 of 6 silent episodes fail")


def test_all_checks_play_as_many_episodes_of_a_task_as_is_counted_on(recipe_file, monkeypatch):
    played = []
    rollout = Harness.rollout

    async def counted(self, tasks, agent, **more):
        episodes = await rollout(self, tasks, agent, **more)
        played.extend(one.task_id for one in episodes)
        return episodes

    monkeypatch.setattr(Harness, "rollout", counted)
    monkeypatch.setattr(WorldExam, "seconds", lambda self: 0.01)
    examine(recipe_file)
    assert set(Counter(played).values()) == {EPISODES}


def test_tasks_of_every_template_are_examined_before_a_second_of_any():
    tasks = [Task(f"{template}{number}", "w", "?", template=template) for template in "aab" for number in range(9)]
    assert [task.template for task in some_tasks(tasks)][:3] == ["a", "b", "a"]
