"""What the shop world promises of its tasks, for every template, language and level."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.evaluation.depth import goal_keeping
from quintain.harness.faults import FaultPlan
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.worlds.drawing import LANGUAGES
from quintain.worlds.orders import TEMPLATES, Orders, generate
from quintain.worlds.orders.names import NAMES
from quintain.worlds.orders.phrases import REQUESTS
from quintain.worlds.orders.tasks import LEVELS

EVERY = [(name, language) for name in TEMPLATES for language in LANGUAGES]
ROOM = Budget(turns=70, tool_calls=70)
"""Enough for the longest conversation."""


def some(name, language, count=6, split="eval", levels=()):
    return generate(split, count, 5, (language,), (name, *levels))


def oracle(tasks):
    return OracleAgent(Orders().solution, {task.id: task for task in tasks})


def texts_before(episode):
    """For each turn, everything the agent had read by then."""
    text = " ".join(one.text for one in episode.messages)
    for number, turn in enumerate(episode.turns):
        said = episode.user_messages.get(number)
        text += f" {said.text}" if said else ""
        yield turn, text
        text += " ".join(one.content for one in turn.observations)


@pytest.mark.parametrize(("name", "language"), EVERY)
async def test_the_oracle_solves_every_task_through_the_tools_and_reads_every_argument_before_it_uses_it(
    name, language
):
    tasks = some(name, language)
    episodes = await Harness(Orders, budget=ROOM).rollout(tasks, oracle(tasks))
    assert [episode.verdict.reasons for episode in episodes if not episode.success] == []
    for episode in episodes:
        for turn, text in texts_before(episode):
            assert not any(one.error for one in turn.observations)
            for call in turn.action.calls:
                said = [str(value) for key, value in call.arguments.items() if key not in ("topic", "euros")]
                assert [value for value in said if value not in text] == []


@pytest.mark.parametrize(("name", "language"), EVERY)
@pytest.mark.parametrize("agent", [SilentAgent(), RandomAgent()], ids=["silent", "random"])
async def test_neither_silence_nor_chance_solves_a_task(name, language, agent):
    episodes = await Harness(Orders).rollout(some(name, language, 4), agent, samples=2)
    assert [episode.task_id for episode in episodes if episode.success] == []


@pytest.mark.parametrize(("name", "language"), EVERY)
async def test_milestones_come_true_one_after_the_other_along_the_reference_solution(name, language):
    (task,) = some(name, language, 1)
    episode = await Harness(Orders, budget=ROOM).run(task, oracle([task]))
    world = Orders()
    world.reset(task)
    assert not any(world.milestones(task).values())
    assert set(episode.milestones) == set(world.milestones(task))
    assert sorted(episode.milestone_turns) == list(episode.milestone_turns)


@pytest.mark.parametrize("language", LANGUAGES)
def test_train_and_eval_share_no_name_product_address_or_policy_text(language):
    sides = [NAMES[split, language] for split in ("train", "eval")]
    for field in ("first", "last", "streets", "colours"):
        assert set(getattr(sides[0], field)).isdisjoint(getattr(sides[1], field))
    assert set(sides[0].goods).isdisjoint(sides[1].goods)
    train, test = (generate(split, 150, 1, (language,)) for split in ("train", "eval"))
    assert {task.cluster for task in train}.isdisjoint(task.cluster for task in test)
    assert {task.prompt for task in train}.isdisjoint(task.prompt for task in test)


def test_no_wording_is_on_both_sides_of_the_split():
    for wordings in REQUESTS.values():
        for sides in wordings.values():
            assert set(sides["train"]).isdisjoint(sides["eval"])


def test_held_out_templates_are_evaluated_apart_and_never_trained_on():
    held = {name for name, template in TEMPLATES.items() if template.held_out}
    train, test = generate("train", 60, 0), generate("eval", 60, 0)
    assert held.isdisjoint(task.template for task in train)
    kinds = {one["kind"] for task in train for one in task.answer["requests"]}
    assert held.isdisjoint(kinds)
    assert {task.template for task in test if "held_out_template" in task.tags} == held
    with pytest.raises(InputError, match="allowed for 'train'"):
        generate("train", 1, 0, templates=sorted(held)[:1])


def test_a_thousand_tasks_are_different_and_spread_over_many_shops():
    tasks = generate("eval", 1000, 0, LANGUAGES)
    assert len({task.id for task in tasks}) == 1000
    assert len({(task.prompt, json.dumps(task.answer, sort_keys=True)) for task in tasks}) == 1000
    assert len({task.cluster for task in tasks}) >= 300


def test_each_level_asks_for_more_and_can_be_asked_for_alone():
    turns = []
    for level in LEVELS:
        tasks = some("refund", "en", 12, levels=(f"level:{level}",))
        assert {f"level:{level}" in task.tags for task in tasks} == {True}
        turns.append(sum(len(task.setup["plan"]) for task in tasks) / len(tasks))
    assert turns[0] < turns[1] < turns[2]
    (first, *_), (second, *_) = (some("refund", "en", 1, levels=(f"level:{level}",)) for level in (1, 2))
    assert first.setup["requests"][0]["facts"]["postcode"] in first.prompt
    assert second.setup["requests"][0]["facts"]["postcode"] not in second.prompt


@pytest.mark.parametrize("language", LANGUAGES)
async def test_long_conversations_take_20_to_60_turns_and_their_reference_keeps_the_goal_to_the_end(language):
    tasks = some("conversation", language, 9)
    episodes = await Harness(Orders, budget=ROOM).rollout(tasks, oracle(tasks))
    assert all(20 <= len(one.turns) <= 60 and one.success for one in episodes)
    assert all(len(one.user_messages) >= 8 for one in episodes)
    kept = goal_keeping(episodes)
    assert kept.episodes == kept.successes == 9
    assert min(kept.profile) > 0.3, "in every quarter, turns serve the task"


def test_long_conversations_are_made_only_where_they_are_asked_for():
    usual = {task.template for split in ("train", "eval") for task in generate(split, 60, 0)}
    assert "conversation" not in usual
    assert {task.template for task in generate("train", 2, 0, templates=("long",))} == {"conversation"}


async def test_under_faults_the_oracle_is_struck_and_no_episode_breaks():
    tasks = generate("train", 24, 3, LANGUAGES)
    plan = FaultPlan(episodes=1.0, rate=0.5, permanent=0.0)
    episodes = await Harness(Orders, budget=ROOM, faults=plan).rollout(tasks, oracle(tasks))
    assert {str(one.outcome) for one in episodes} <= {"answered", "declined"}
    struck = [one for one in episodes if any(seen.fault for turn in one.turns for seen in turn.observations)]
    assert len(struck) > len(episodes) / 2
    assert any(not one.success for one in struck), "a refused call is missing at the end"


def test_the_same_seed_gives_the_same_tasks_and_shops_in_another_process():
    code = (
        "import json; from quintain.worlds.orders import Orders, generate; "
        "print(json.dumps([[t.to_json() for t in generate('eval', 20, 9, ('en', 'zh'))], Orders().data_digest()]))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONIOENCODING": "utf-8"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    here = [task.to_json() for task in generate("eval", 20, 9, ("en", "zh"))]
    assert json.loads(out) == json.loads(json.dumps([here, Orders().data_digest()]))
    assert [task.id for task in generate("eval", 20, 10, ("en", "zh"))] != [record["id"] for record in here]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("test", 1, 0), "orders split 'test'"),
        (("eval", 1, 0, ("fr",)), "orders languages"),
        (("eval", 1, 0, ("en",), ("riddle",)), "orders template"),
        (("eval", 1, 0, ("en",), ("level:9",)), "orders template"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        generate(*arguments)
    assert "\n" not in str(caught.value)
