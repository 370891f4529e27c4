"""What the maths world promises of its tasks, for every template and language."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from fractions import Fraction

import pytest

from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.doctor.world import Script
from quintain.harness.loop import Harness
from quintain.harness.sandbox import CannotConfine
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import Task
from quintain.worlds.drawing import LANGUAGES
from quintain.worlds.maths import Maths, generate
from quintain.worlds.maths import procedural as rg
from quintain.worlds.maths.algebra import ready
from quintain.worlds.maths.problems import HELD_OUT, SEEN
from quintain.worlds.maths.procedural import GENERATORS, PREFIX
from quintain.worlds.maths.wordings import GOODS, PEOPLE, QUESTIONS

EVERY = [*SEEN, *HELD_OUT, *(PREFIX + name for name in GENERATORS)]


@pytest.fixture(autouse=True)
async def _confines():
    try:
        await ready()
    except CannotConfine as error:
        pytest.skip(str(error))


def some(name, count=4, languages=LANGUAGES, split="eval"):
    return generate(split, count, 5, ("en",) if name.startswith(PREFIX) else languages, (name,))


def calculated(expression):
    return Action(calls=(Call("c", "calculate", {"expression": expression}),))


def solved(operation, expression):
    return Action(calls=(Call("a", "algebra", {"operation": operation, "expression": expression}),))


async def play(task, *actions):
    return await Harness(Maths).run(task, Script({task.id: actions}))


def riddle(**answer):
    return Task("riddle", "maths", "Two numbers, what is it?", answer=answer)


@pytest.mark.parametrize("name", EVERY)
async def test_the_tools_alone_lead_to_the_answer_that_was_computed_without_them(name):
    tasks = some(name)
    episodes = await Harness(Maths).rollout(tasks, OracleAgent(Maths().solution, {task.id: task for task in tasks}))
    assert [one.verdict.reasons for one in episodes if not one.success] == []
    assert len(episodes) == 4


async def test_neither_silence_nor_chance_solves_a_task():
    tasks = [task for name in EVERY for task in some(name, 3)]
    assert len(tasks) >= 50
    for agent in (SilentAgent(), RandomAgent()):
        episodes = await Harness(Maths).rollout(tasks, agent)
        assert [one.task_id for one in episodes if one.success] == []


@pytest.mark.parametrize("name", [*SEEN, *HELD_OUT])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_word_problem_holds_every_number_its_solution_uses(name, language):
    for task in some(name, 6, (language,)):
        asked = set(re.findall(r"\d+", task.prompt))
        first = task.setup["plan"][0][1]["expression"]
        small = {"1", "2", "4", "5", "100"}  # of the wording: pairs, legs, coins, per cent
        counts = {str(int(n) * (int(n) - 1) // 2) for n in asked} if name == "consecutive" else set()
        counts |= {str(len(first.split(" + ")))} if name == "average" else set()
        assert set(re.findall(r"\d+", first.replace("{0}", ""))) <= asked | small | counts


def test_train_and_eval_share_no_question_person_good_or_main_number():
    train, test = (generate(split, 1500, 1, LANGUAGES) for split in ("train", "eval"))
    assert {task.prompt for task in train}.isdisjoint(task.prompt for task in test)
    assert {task.cluster for task in train}.isdisjoint(task.cluster for task in test)
    for kind in (PEOPLE, GOODS):
        for language in LANGUAGES:
            assert set(kind["train"][language]).isdisjoint(kind["eval"][language])
            assert not any(word in task.prompt for word in kind["eval"][language] for task in train)


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("language", LANGUAGES)
def test_evaluation_has_a_wording_of_its_own(name, language):
    wordings = QUESTIONS[name][language]
    assert len(set(wordings)) == 3


def test_questions_of_reasoning_gym_have_other_numbers_in_training_than_in_evaluation():
    train, test = (generate(split, 210, 1, ("en",), ("reasoning_gym",)) for split in ("train", "eval"))
    assert {task.prompt for task in train}.isdisjoint(task.prompt for task in test)

    def largest(tasks, name):
        found = (n for task in tasks if task.template == name for n in re.findall(r"\d+", task.prompt))
        return max(map(int, found))

    for name in ("rg_gcd", "rg_lcm", "rg_chain_sum", "rg_products"):
        assert largest(train, name) < largest(test, name)


def test_held_out_templates_are_evaluated_apart_and_never_trained_on():
    held = set(HELD_OUT)
    train, test = generate("train", 300, 0), generate("eval", 300, 0)
    assert held.isdisjoint(task.template for task in train)
    assert {task.template for task in test if "held_out_template" in task.tags} == held
    with pytest.raises(InputError, match="allowed for 'train'"):
        generate("train", 1, 0, templates=("tank",))


@pytest.mark.parametrize("split", ["train", "eval"])
def test_there_are_thousands_of_different_tasks_at_three_levels(split):
    tasks = generate(split, 3000, 0, LANGUAGES)
    assert len({task.prompt for task in tasks}) == 3000
    assert len({task.cluster for task in tasks}) > 1000
    assert {tag for task in tasks for tag in task.tags if tag.startswith("level:")} == {"level:1", "level:2", "level:3"}
    assert {tag for task in tasks for tag in task.tags if tag.startswith("lang:")} == {"lang:en", "lang:zh"}


def test_the_same_seed_gives_the_same_tasks_in_another_process():
    code = (
        "import json; from quintain.worlds.maths import generate; "
        "print(json.dumps([t.to_json() for t in generate('eval', 60, 9, ('en', 'zh'), ('seen', 'reasoning_gym'))]))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONIOENCODING": "utf-8"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    here = generate("eval", 60, 9, ("en", "zh"), ("seen", "reasoning_gym"))
    assert json.loads(out) == json.loads(json.dumps([task.to_json() for task in here]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("test", 1, 0), "maths split 'test'"),
        (("eval", 1, 0, ("fr",)), "maths languages"),
        (("eval", 1, 0, ("en",), ("poem",)), "maths template 'poem'"),
        (("eval", 9000, 0, ("en",), ("coins",)), r"only \d+ different eval tasks"),
        (("eval", 1, 0, ("zh",), ("reasoning_gym",)), "only 0 different"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        generate(*arguments)
    assert "\n" not in str(caught.value)


def test_without_reasoning_gym_its_templates_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    with pytest.raises(InputError, match=r"pip install 'quintain\[reasoning-gym\]'"):
        rg.draw("gcd", "train", 1, random.Random(0))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("12", ""),
        ("It is 12.", ""),
        ("12 or 13", "2 numbers"),
        ("13", "the number is wrong"),
        ("", "no answer"),
        ("twelve", "0 numbers"),
    ],
)
async def test_a_number_is_right_if_it_is_the_only_one_and_a_tool_gave_it(answer, reason):
    episode = await play(riddle(number="12"), calculated("3 * 4"), Action(answer=answer))
    assert episode.success == (not reason)
    assert reason in " ".join(episode.verdict.reasons)


async def test_a_right_answer_that_no_tool_gave_is_no_success():
    for before in ((), (calculated("3 * 5"),), (solved("solve", "x = 11"),)):
        episode = await play(riddle(number="12"), *before, Action(answer="12"))
        assert episode.verdict.reasons == ("no tool gave this value in the episode",)
    assert (await play(riddle(number="12"), solved("solve", "2*x = 24"), Action(answer="12"))).success


async def test_an_expression_may_be_written_otherwise_than_the_tool_writes_it():
    task = riddle(expression="(x + 1)**2")
    expand = solved("expand", "(x + 1)**2")
    assert (await play(task, expand, Action(answer="(1 + x)*(1 + x)"))).success
    assert not (await play(task, expand, Action(answer="x**2 + 1"))).success
    assert not (await play(task, expand, Action(answer="__import__('os')._exit(0)"))).success
    assert not (await play(task, solved("expand", "(x + 2)**2"), Action(answer="x**2 + 2*x + 1"))).success


async def test_milestones_show_that_a_tool_gave_the_number():
    episode = await play(riddle(number="12"), calculated("3 * 5"), calculated("3 * 4"), Action(answer="13"))
    assert dict(zip(episode.milestones, episode.milestone_turns, strict=True)) == {"used a tool": 0, "computed": 1}


async def test_a_failing_tool_is_an_observation_and_the_episode_goes_on():
    actions = (calculated("x"), solved("solve", "import os"), calculated("3 * 4"), Action(answer="12"))
    episode = await play(riddle(number="12"), *actions)
    assert [turn.observations[0].error for turn in episode.turns[:3]] == ["exception", "exception", ""]
    assert episode.success


def test_a_price_after_a_discount_is_exact_to_the_cent():
    for task in generate("eval", 9, 3, ("en",), ("discount",)):
        percent, price, count = (Fraction(found) for found in re.findall(r"\d+", task.prompt))
        assert Fraction(task.answer["number"]) == count * price * (1 - percent / 100)
