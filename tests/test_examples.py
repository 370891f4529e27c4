"""The examples run as they stand, on a tiny random model and a handful of tasks."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import shutil
from pathlib import Path

import pytest

from harness.till import Script
from quintain import Budget, Harness
from quintain.agents.oracle import OracleAgent
from quintain.commands.commands import run
from quintain.commands.pools import audit_files
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import load_tasks
from quintain.recipe.user_code import load_world

TILL = Path(__file__).parents[1] / "examples" / "till"
ARITHMETIC = TILL.parent / "arithmetic"


def arithmetic(split: str):
    """The arithmetic example's class and some of its tasks."""
    world = load_world("arithmetic_world:Arithmetic", ARITHMETIC)
    return world, world.generate(split, 40, seed=7, languages=["en"], templates=[])


def price(item: str) -> Action:
    return Action(calls=(Call("c", "price", {"item": item}),))


def play(*actions: Action):
    task = next(task for task in load_tasks(TILL / "eval.jsonl") if task.template == "price")
    harness = Harness(load_world("till_world:Till", TILL), budget=Budget(turns=3))
    return task, asyncio.run(harness.run(task, Script(actions)))


def test_the_till_accepts_the_right_number_and_nothing_else():
    task, _ = play(Action(answer="x"))
    _, right = play(price(task.setup["items"][0]), Action(answer=task.answer))
    assert right.success
    assert right.turns[0].observations[0].content == task.answer
    _, wordy = play(Action(answer=f"{task.answer} cents"))
    assert not wordy.success


def test_an_item_the_till_lacks_is_an_observation_and_the_episode_goes_on():
    _, episode = play(price("a yacht"), Action(answer="1"))
    seen = episode.turns[0].observations[0]
    assert (seen.error, seen.content) == ("exception", "Error (exception): KeyError: 'a yacht'")
    assert episode.outcome.kind == "answered"


def test_no_shop_is_both_trained_and_measured():
    train = {task.cluster for task in load_tasks(TILL / "train.jsonl")}
    measured = {task.cluster for task in load_tasks(TILL / "eval.jsonl")}
    assert not train & measured


def test_the_task_files_are_what_their_script_writes(tmp_path):
    runpy.run_path(str(TILL / "make_tasks.py"))["write"](tmp_path)
    for name in ("train.jsonl", "eval.jsonl"):
        assert (tmp_path / name).read_bytes() == (TILL / name).read_bytes()


def test_no_measured_task_is_given_away_by_one_that_is_learnt_from():
    found = audit_files(TILL / "train.toml", [TILL / "train.jsonl"])
    assert found["items"] > 240
    assert found["tasks"] == {}


@pytest.fixture
def small_till(tmp_path, model_folder):
    """The example with its first tasks only and a tiny model as base."""
    home = shutil.copytree(TILL, tmp_path / "till")
    for name, count in (("train.jsonl", 8), ("eval.jsonl", 4)):
        lines = (home / name).read_text().splitlines(keepends=True)[:count]
        (home / name).write_text("".join(lines))
    for recipe in home.glob("*.toml"):
        text = recipe.read_text()
        assert 'base = "smollm2-135m"' in text
        recipe.write_text(text.replace("smollm2-135m", str(model_folder)))
    return home


@pytest.fixture
def dialled(monkeypatch):
    """Hosts and addresses that this process asks for; none is reached."""
    seen: list = []
    monkeypatch.setattr("socket.socket.connect", lambda _, address: seen.append(address))
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *_, **__: seen.append(host) or [])
    return seen


def test_a_model_is_measured_at_the_till_without_a_reference_solution(small_till, tmp_path):
    run(small_till / "measure.toml", tmp_path / "run")
    counts = json.loads((tmp_path / "run" / "base" / "evaluation.json").read_text())["overall"]["counts"]
    assert (counts["planned"], counts["scored"], counts["clusters"]) == (4, 4, 1)
    assert (tmp_path / "run" / "report.html").is_file()


def test_a_model_is_trained_at_the_till_from_its_reference_solution(small_till, tmp_path, dialled):
    result = run(small_till / "train.toml", tmp_path / "run")
    assert result["stages"]["demos"]["successes"] == 8
    assert result["stages"]["sft"]["examples"] == 8
    assert (tmp_path / "run" / "sft" / "model" / "model.safetensors").is_file()
    assert dialled == [], "nothing is reported to anyone"


def test_the_check_of_the_verifier_that_the_documentation_shows_runs(monkeypatch):
    monkeypatch.chdir(TILL)
    monkeypatch.syspath_prepend(TILL)
    page = (TILL.parents[1] / "docs" / "worlds" / "your-own.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(import asyncio.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert len(names["episodes"]) == 48


def test_no_evaluated_expression_of_the_arithmetic_world_is_trained_on():
    (_, train), (_, measured) = arithmetic("train"), arithmetic("eval")
    assert not {task.cluster.partition("-")[2] for task in train} & {
        task.cluster.partition("-")[2] for task in measured
    }
    assert {int(re.search(r"\d+", task.prompt)[0]) % 5 == 0 for task in train} == {False}
    assert {int(re.search(r"\d+", task.prompt)[0]) % 5 == 0 for task in measured} == {True}


def test_arithmetic_is_solved_by_its_tools_and_never_by_a_guess():
    world, tasks = arithmetic("eval")
    for task in tasks:  # the answers agree with Python's own arithmetic
        assert str(eval(task.prompt.removeprefix("What is ").removesuffix("?"))) == task.answer
    harness = Harness(world, budget=Budget(turns=6))
    oracle = OracleAgent(world().solution, {task.id: task for task in tasks})
    assert all(episode.success for episode in asyncio.run(harness.rollout(tasks, oracle)))
    guess = asyncio.run(harness.run(tasks[0], Script([Action(answer=tasks[0].answer)])))
    assert (guess.success, guess.verdict.reasons) == (False, ("right, but no tool gave it",))
