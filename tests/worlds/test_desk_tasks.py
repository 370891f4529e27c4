"""What the desk promises of its tasks, for every template and language."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from harness.till import Script
from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.evaluation.depth import goal_keeping
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.worlds.desk import TEMPLATES, Desk, generate
from quintain.worlds.desk.atlas import entities
from quintain.worlds.desk.phrases import QUESTIONS
from quintain.worlds.drawing import LANGUAGES

EVERY = [(name, language) for name in TEMPLATES for language in LANGUAGES]
ROOM = Budget(turns=70, tool_calls=70)
"""Enough for the longest template."""
KINDS = {entity.key: entity for entity in entities()}


def some(name, language, count=3, seed=5):
    return generate("eval", count, seed, (language,), (name,), Desk.resources(collection="atlas"))


def oracle(tasks):
    return OracleAgent(Desk().solution, {task.id: task for task in tasks})


async def run(actions, task):
    return await Harness(Desk, budget=ROOM).run(task, Script(actions))


def reference(task):
    """The actions of the reference solution."""
    return list(Desk().solution(task))


def without_last_look_up(actions):
    """The actions without their last `search` or `open` call and what is left empty by it."""
    calls = [call for action in actions for call in action.calls if call.tool != "calculate"]
    kept = [
        Action(thought=action.thought, calls=tuple(call for call in action.calls if call is not calls[-1]))
        for action in actions[:-1]
        if any(call is not calls[-1] for call in action.calls)
    ]
    return [*kept, actions[-1]]


@pytest.mark.parametrize(("name", "language"), EVERY)
async def test_the_oracle_solves_every_task_through_the_tools_and_repeats_agree(name, language):
    tasks = some(name, language)
    episodes = await Harness(Desk, budget=ROOM).rollout(tasks, oracle(tasks), samples=3)
    assert [episode.verdict.reasons for episode in episodes if not episode.success] == []
    assert len(episodes) == 3 * len(tasks)
    for first, second, third in zip(*[iter(episodes)] * 3, strict=True):
        seen = [
            [(one.content, one.error) for turn in e.turns for one in turn.observations] for e in (first, second, third)
        ]
        assert seen[0] == seen[1] == seen[2]
        assert not any(error for _, error in seen[0])


@pytest.mark.parametrize(("name", "language"), EVERY)
@pytest.mark.parametrize("agent", [SilentAgent(), RandomAgent()], ids=["silent", "random"])
async def test_neither_silence_nor_chance_solves_a_task(name, language, agent):
    episodes = await Harness(Desk).rollout(some(name, language), agent, samples=3)
    assert [episode.task_id for episode in episodes if episode.success] == []


@pytest.mark.parametrize(("name", "language"), EVERY)
async def test_the_right_answer_without_its_last_look_up_is_no_success(name, language):
    for task in some(name, language):
        episode = await run(without_last_look_up(reference(task)), task)
        assert not episode.success
        assert "in this episode" in episode.verdict.reasons[0]


@pytest.mark.parametrize(("name", "language"), EVERY)
async def test_declining_what_the_collection_holds_fails_and_so_does_answering_what_it_lacks(name, language):
    (task,) = some(name, language, 1)
    actions = reference(task)
    missing = actions[-1].declines
    other = "42" if missing else "Cannot answer: no document." if language == "en" else "无法回答：没有文档。"
    episode = await run([*actions[:-1], Action(answer=other)], task)
    assert not episode.success
    assert episode.outcome.kind == ("answered" if missing else "declined")


@pytest.mark.parametrize(("name", "language"), EVERY)
async def test_after_all_look_ups_neither_an_echo_of_the_question_nor_everything_read_is_an_answer(name, language):
    for task in some(name, language, 8):
        *calls, _ = reference(task)
        read = " ".join(Desk().documents.find(title).text for title in task.setup["documents"])
        for answer in (task.prompt, read, f"{task.prompt} {read}", "Cannot say", "?"):
            episode = await run([*calls, Action(answer=answer)], task)
            assert not episode.success


@pytest.mark.parametrize(("name", "language"), EVERY)
def test_milestones_come_true_one_after_the_other_along_the_reference_solution(name, language):
    (task,) = some(name, language, 1)
    desk = Desk()
    desk.reset(task)
    assert not any(desk.milestones(task).values())
    tools = desk.toolset()
    for call in (call for action in reference(task) for call in action.calls):
        tools[call.tool].function(**call.arguments)
    done = desk.milestones(task)
    assert done
    assert all(done.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_train_and_eval_share_no_entity_fact_question_or_invented_name(language):
    train, test = (generate(split, 600, 1, (language,)) for split in ("train", "eval"))

    def facts(tasks):
        return {(key, attribute) for task in tasks for key, attribute, _ in task.setup["facts"]}

    def read(tasks):
        return {title for task in tasks for title in task.setup["documents"] + task.setup["lookups"]}

    assert facts(train).isdisjoint(facts(test))
    assert {key for key, _ in facts(train)}.isdisjoint(key for key, _ in facts(test))
    assert read(train).isdisjoint(read(test))
    assert {task.cluster for task in train}.isdisjoint(task.cluster for task in test)
    assert {task.prompt for task in train}.isdisjoint(task.prompt for task in test)


def test_an_airport_is_on_the_side_of_its_country():
    airports = [entity for entity in entities() if entity.kind == "airport"]
    assert len(airports) > 300
    assert all(airport.split == KINDS[airport.group].split for airport in airports)


def test_held_out_templates_are_evaluated_apart_and_never_trained_on():
    held = {name for name, template in TEMPLATES.items() if template.held_out}
    train, test = generate("train", 300, 0), generate("eval", 300, 0)
    assert held.isdisjoint(task.template for task in train)
    assert {task.template for task in test if "held_out_template" in task.tags} == held
    with pytest.raises(InputError, match="allowed for 'train'"):
        generate("train", 1, 0, templates=sorted(held)[:1])


def test_there_are_twelve_templates_and_enough_different_tasks_and_clusters():
    assert sum(not template.held_out for template in TEMPLATES.values()) >= 12
    train, test = generate("train", 1500, 0), generate("eval", 600, 0)
    assert len({task.prompt for task in train}) >= 1000
    assert len({task.prompt for task in test}) >= 400
    assert len({task.id for task in train + test}) == 2100
    for language in LANGUAGES:
        assert len({task.cluster for task in generate("eval", 192, 3, (language,))}) >= 100


@pytest.mark.parametrize(("name", "language"), EVERY)
def test_questions_come_in_several_wordings_about_several_entities(name, language):
    wordings = QUESTIONS[name][language]
    assert len(set(wordings)) >= 2
    tasks = some(name, language, 16)
    assert len({task.cluster for task in tasks}) >= 8
    openings = [wording.split("{")[0] for wording in wordings]
    used = {
        next(opening for opening in sorted(openings, key=len, reverse=True) if task.prompt.startswith(opening))
        for task in tasks
    }
    assert len(used) > 1 or len(set(openings)) == 1


async def test_long_tasks_take_20_to_60_turns_and_their_reference_keeps_the_goal_to_the_end():
    tasks = some("running_total", "en", 8)
    episodes = await Harness(Desk, budget=ROOM).rollout(tasks, oracle(tasks))
    assert all(20 <= len(one.turns) <= 60 and one.success for one in episodes)
    assert {f"hops:{len(task.setup['documents'])}" for task in tasks} == {task.tags[1] for task in tasks}
    # one of three turns opens a document: search, open, calculate
    *begun, last = goal_keeping(episodes).profile
    assert begun == pytest.approx([1 / 3] * 3, abs=0.08)
    assert last > 1 / 3, "the last quarter ends with the last sum and the answer"


def test_long_tasks_are_made_only_where_they_are_asked_for():
    usual = {task.template for split in ("train", "eval") for task in generate(split, 60, 0)}
    assert "running_total" not in usual
    assert {task.template for task in generate("train", 4, 0, templates=("long",))} == {"running_total"}


def test_tags_name_language_and_hops():
    (task,) = some("airport_capital", "zh", 1)
    assert task.tags[:2] == ("lang:zh", "hops:2")
    assert task.template == "airport_capital"
    assert task.cluster.startswith("airport:")


def test_the_same_seed_gives_the_same_tasks_in_another_process():
    code = (
        "import json; from quintain.worlds.desk import generate; "
        "print(json.dumps([t.to_json() for t in generate('eval', 40, 9, ('en', 'zh'))]))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONIOENCODING": "utf-8"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    here = json.loads(json.dumps([task.to_json() for task in generate("eval", 40, 9, ("en", "zh"))]))
    assert json.loads(out) == here
    assert [task.id for task in generate("eval", 40, 10, ("en", "zh"))] != [record["id"] for record in here]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("test", 1, 0), "desk split 'test'"),
        (("eval", 1, 0, ("fr",)), "desk languages"),
        (("eval", 1, 0, ("en",), ("riddle",)), "desk template"),
        (("eval", 10_000, 0, ("en",), ("people_per_km2",)), r"only \d+ different eval tasks"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        generate(*arguments)
    assert "\n" not in str(caught.value)


def test_thoughts_and_observations_are_short():
    for name, language in EVERY:
        (task,) = some(name, language, 1)
        desk = Desk()
        for action in reference(task):
            assert len(action.thought.split()) <= 10
            for call in action.calls:
                assert len(desk.toolset()[call.tool].function(**call.arguments)) <= 320


async def test_a_look_up_by_open_counts_for_a_missing_entity_and_another_one_does_not():
    (task,) = some("missing_entity", "en", 1)
    name = task.setup["lookups"][0]
    answer = Action(answer="Cannot answer: no such document.")
    assert (await run([Action(calls=(Call("1", "open", {"title": name}),)), answer], task)).success
    assert not (await run([Action(calls=(Call("1", "search", {"query": "Germany"}),)), answer], task)).success
    assert not (await run([answer], task)).success
