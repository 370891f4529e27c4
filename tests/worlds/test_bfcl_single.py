"""The world of BFCL's single-turn tasks: what it judges, what it refuses, what it needs."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.till import Script
from quintain.agents.oracle import OracleAgent
from quintain.agents.silent import SilentAgent
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.errors import FormatError, InputError
from quintain.interface.messages import Action, Call
from quintain.worlds.bfcl import SingleTurn, wheel

ONE_TURN = Budget(turns=1)
FEW = 60


def some(count=FEW, *templates):
    pytest.importorskip("bfcl_eval")
    return SingleTurn.generate("eval", count, 3, ["en"], templates)


async def judged(action, task, budget=ONE_TURN):
    return await Harness(SingleTurn, budget=budget).run(task, Script([action]))


def test_there_are_1240_tasks_of_five_categories():
    tasks = some(1240)
    assert Counter(task.template for task in tasks) == {
        "simple_python": 400,
        "multiple": 200,
        "parallel": 200,
        "parallel_multiple": 200,
        "irrelevance": 240,
    }
    assert len({task.id for task in tasks}) == 1240


def test_the_same_seed_draws_the_same_tasks_of_the_categories_asked_for():
    tasks = some(20, "parallel", "irrelevance")
    assert {task.template for task in tasks} == {"parallel", "irrelevance"}
    assert tasks == some(20, "parallel", "irrelevance")


async def test_gold_succeeds_and_gold_without_a_call_or_with_a_call_twice_fails():
    tasks = some()
    episodes = await Harness(SingleTurn, budget=ONE_TURN).rollout(
        tasks, OracleAgent(SingleTurn().solution, {task.id: task for task in tasks})
    )
    assert [one.id for one in episodes if not one.success] == []
    calling = [(one, task) for one, task in zip(episodes, tasks, strict=True) if one.calls()]
    assert len(calling) > FEW / 2
    for one, task in calling[:20]:
        calls = one.turns[0].action.calls
        short = Action(calls=calls[:-1]) if calls[1:] else Action(answer="Done.")
        twice = Action(calls=(*calls, Call("again", calls[-1].tool, calls[-1].arguments)))
        assert not (await judged(short, task)).success
        assert not (await judged(twice, task)).success


async def test_silence_succeeds_only_where_no_function_helps():
    tasks = some()
    episodes = await Harness(SingleTurn, budget=ONE_TURN).rollout(tasks, SilentAgent())
    assert {one.template for one in episodes if one.success} == {"irrelevance"}
    assert all(one.success == (one.template == "irrelevance") for one in episodes)


async def test_a_text_that_cannot_be_understood_is_no_call():
    garbled = Action(error=FormatError("json", "broken"), text="<call>")
    (without,), (needed,) = some(1, "irrelevance"), some(1, "multiple")
    assert (await judged(garbled, without)).success
    assert not (await judged(garbled, needed)).success


async def test_where_no_function_helps_any_call_fails_also_of_a_function_there_is_not():
    (task,) = some(1, "irrelevance")
    assert not (await judged(Action(calls=(Call("c", "nonsense", {}),)), task)).success


async def test_only_the_first_turn_counts():
    (task,) = some(1, "simple_python")
    gold, *_ = SingleTurn().solution(task)

    late = Script([Action(error=FormatError("json", "broken"), text="<call>"), gold])
    episode = await Harness(SingleTurn, budget=Budget(turns=2)).run(task, late)
    assert len(episode.turns) == 2
    assert not episode.success
    assert (await judged(gold, task, Budget(turns=2))).success


async def test_a_function_is_called_by_the_name_it_was_offered_under():
    task = next(one for one in some(400, "simple_python") if "." in next(iter(one.answer[0])))
    gold, *_ = SingleTurn().solution(task)
    (call,) = gold.calls
    assert "." not in call.tool
    dotted = Call("c", next(iter(task.answer[0])), call.arguments)
    assert (await judged(gold, task)).success
    assert not (await judged(Action(calls=(dotted,)), task)).success


@pytest.mark.parametrize(
    ("split", "count", "languages", "templates", "line"),
    [
        ("train", 1, ["en"], [], "its tasks are for evaluation, so split = 'train' is refused"),
        ("eval", 1, ["zh"], [], "its tasks are in English"),
        ("eval", 1, ["en"], ["seen"], "template 'seen': allowed are its categories simple_python, multiple"),
        ("eval", 241, ["en"], ["irrelevance"], "irrelevance hold 240 tasks; 241 were asked for"),
    ],
)
def test_what_it_does_not_have_is_refused_in_one_line(split, count, languages, templates, line):
    pytest.importorskip("bfcl_eval")
    with pytest.raises(InputError, match=line) as caught:
        SingleTurn.generate(split, count, 0, languages, templates)
    assert "\n" not in str(caught.value)


def test_without_the_package_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(wheel, "PACKAGE", "bfcl_eval_that_is_not_there")
    for use in (SingleTurn, lambda: SingleTurn.generate("eval", 1, 0, ["en"], [])):
        with pytest.raises(InputError) as caught:
            use()
        assert str(caught.value) == (
            "the worlds of BFCL need the package bfcl-eval: "
            "pip install 'quintain[bfcl]' && pip install --no-deps bfcl-eval"
        )


def test_a_version_without_a_file_is_named(monkeypatch):
    pytest.importorskip("bfcl_eval")
    with pytest.raises(InputError, match=r"bfcl-eval [\d.]+ has no BFCL_v4_nothing.json; Quintain reads BFCL v4"):
        wheel.read("nothing")
