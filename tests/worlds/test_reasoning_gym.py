"""reasoning-gym as an outside benchmark: its own scorer, the full score, and no answer that reaches this process."""

from __future__ import annotations

import sys

import pytest

from quintain.doctor.world import Script
from quintain.harness.loop import Harness
from quintain.harness.sandbox import CannotConfine
from quintain.interface.errors import InputError
from quintain.interface.messages import Action
from quintain.worlds.maths import Maths
from quintain.worlds.maths.algebra import ready
from quintain.worlds.reasoning_gym import ReasoningGym
from quintain.worlds.reasoning_gym.world import EVALUATED, EXCLUDED, SIZE, chosen

pytest.importorskip("reasoning_gym")


@pytest.fixture(autouse=True)
async def _confines():
    try:
        await ready()
    except CannotConfine as error:
        pytest.skip(str(error))


def one(name):
    (task,) = ReasoningGym.generate("eval", 1, 3, ["en"], [name])
    return task


async def verdict(task, answer):
    episode = await Harness(ReasoningGym).run(task, Script({task.id: (Action(answer=answer),)}))
    return episode.verdict


async def test_only_the_full_score_succeeds():
    task = one("gcd")
    assert (await verdict(task, task.answer)).success
    partly = await verdict(task, f"The answer is {task.answer}.")
    assert not partly.success
    assert 0 < partly.score < 1
    assert not (await verdict(task, "")).success


async def test_a_puzzle_with_many_solutions_accepts_another_than_the_stored_one():
    task = one("countdown")
    assert (await verdict(task, f"({task.answer})")).success
    assert not (await verdict(task, "1")).success


@pytest.mark.parametrize(
    "answer",
    [
        "__import__('os').system('touch /tmp/quintain-was-here')",
        "[__import__('sys').exit(0)]",
        "__import__('os')._exit(0)",
        "__import__('builtins').print('{\"score\": 1.0}') or __import__('os')._exit(0)",
        "getattr(print, 'x')",
        "eval\\\n('1')",
        "ｅval('1')",
        "(" * 5000,
        "[" * 5000 + "]" * 5000,
    ],
)
@pytest.mark.parametrize("name", ["string_insertion", "countdown"])
async def test_an_answer_that_is_a_program_gains_nothing(name, answer):
    task = one(name)
    found = await verdict(task, answer)
    assert not found.success
    assert found.score < 0.1  # some scorers give a little for any text


@pytest.mark.parametrize("name", sorted(EVALUATED))
async def test_what_is_an_answer_is_no_program(name):
    task = one(name)
    assert (await verdict(task, task.answer)).success


def test_the_toolset_is_that_of_maths_so_that_its_agents_can_be_measured():
    assert ReasoningGym().toolset().digest == Maths().toolset().digest


async def test_a_question_that_is_drawn_otherwise_now_has_no_score():
    task = one("gcd")
    other = type(task)(**{**task.to_json(), "prompt": "Another question", "tags": task.tags})
    episode = await Harness(ReasoningGym).run(other, Script({task.id: (Action(answer=task.answer),)}))
    assert episode.outcome.kind == "infra_error"
    assert "make the tasks again" in episode.outcome.detail


def test_every_data_set_is_used_or_excluded_with_a_reason():
    from reasoning_gym.factory import DATASETS

    assert set(chosen(())) | set(EXCLUDED) == set(DATASETS)
    assert len(chosen(())) == 97
    assert all(EXCLUDED.values())


def test_tasks_are_spread_over_the_named_data_sets_which_are_their_clusters():
    tasks = ReasoningGym.generate("eval", 5, 1, ["en"], [], datasets=["gcd", "lcm"])
    assert [task.template for task in tasks] == ["gcd"] * 3 + ["lcm"] * 2
    assert {task.cluster for task in tasks} == {"reasoning_gym:gcd", "reasoning_gym:lcm"}


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("train", 1, 0, ["en"], ["gcd"]), {}, "measures only"),
        (("eval", 1, 0, ["zh"], ["gcd"]), {}, "questions are English"),
        (("eval", 1, 0, ["en"], ["riddles"]), {}, "no data set 'riddles'"),
        (("eval", 1, 0, ["en"], []), {"datasets": ["word_ladder"]}, "PYTHONHASHSEED"),
        (("eval", SIZE + 1, 0, ["en"], ["gcd"]), {}, f"1 data sets have {SIZE} each"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, options, message):
    with pytest.raises(InputError, match=message) as caught:
        ReasoningGym.generate(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(InputError, match=r"pip install 'quintain\[reasoning-gym\]'"):
        ReasoningGym()
