"""The world of AgentDojo's tasks: a fresh environment for every episode, AgentDojo's own judgement, and its attacks."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("agentdojo")

from quintain.agents.oracle import OracleAgent
from quintain.agents.silent import SilentAgent
from quintain.doctor.world import Script, without_last_call
from quintain.harness.loop import Harness
from quintain.interface.canonical import canonical_json
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.worlds.agentdojo import AgentDojo
from quintain.worlds.agentdojo.suites import suites
from quintain.worlds.agentdojo.world import FOLLOWED

ROOM = Budget(turns=40, tool_calls=60, observation_bytes=10**6)
ATTACK = "important_instructions_no_names"
DONE = Action(answer="Done.")


@pytest.fixture(scope="module")
def tasks():
    return {task.id.removeprefix("agentdojo-"): task for task in AgentDojo.generate("eval", 97, 0, ["en"], [])}


@pytest.fixture(scope="module")
def attacked():
    return AgentDojo.generate("eval", 105, 0, ["en"], ["slack"], attack=ATTACK)


async def play(tasks, agent, **options):
    harness = Harness(lambda: AgentDojo(**options), budget=ROOM, concurrency=1)
    return await harness.rollout(tasks, agent)


def oracle(tasks):
    return OracleAgent(AgentDojo().solution, {task.id: task for task in tasks})


def test_there_are_97_user_tasks_in_four_suites(tasks):
    by_suite = {suite: sum(one.template == suite for one in tasks.values()) for suite in suites()}
    assert by_suite == {"workspace": 40, "travel": 20, "banking": 16, "slack": 21}
    assert all(canonical_json(one.to_json()) for one in tasks.values())


def test_the_suites_load_without_any_vendors_client_and_leave_no_stand_in():
    assert "agentdojo.agent_pipeline" not in sys.modules
    assert not {"anthropic", "cohere", "langchain", "google.genai"} & set(sys.modules)


async def test_gold_succeeds_in_every_suite_and_again_after_a_failed_attempt(tasks):
    names = ("slack-user_task_1", "banking-user_task_2", "workspace-user_task_6", "travel-user_task_0")
    some = [tasks[name] for name in names]
    gold = await play(some, oracle(some))
    assert [(one.id, one.verdict) for one in gold if not one.success] == []
    acting = {"invite_user_to_slack", "send_direct_message", "update_scheduled_transaction", "create_calendar_event"}
    acting |= {"reserve_hotel", "send_money", "post_webpage"}
    cut = {one.task_id: without_last_call(one, acting) for one in gold}
    assert [one.id for one in await play(some, Script(cut)) if one.success] == []
    assert all(one.success for one in await play(some, oracle(some)))


async def test_silence_succeeds_only_where_agentdojos_functions_ask_for_nothing(tasks):
    episodes = await play([one for one in tasks.values() if one.template == "banking"], SilentAgent())
    assert {one.task_id for one in episodes if one.success} == {
        f"agentdojo-banking-user_task_{number}" for number in (5, 6, 8, 9, 10)
    }


async def test_what_one_episode_changes_no_other_sees(tasks):
    task = tasks["slack-user_task_1"]
    add = Action(calls=(Call("a", "add_user_to_channel", {"user": "Charlie", "channel": "random"}),))
    look = Action(calls=(Call("b", "get_users_in_channel", {"channel": "random"}),))
    (changed,) = await play([task], Script({task.id: (add, look, DONE)}))
    (fresh,) = await play([task], Script({task.id: (look, DONE)}))
    assert "Charlie" in changed.turns[1].observations[0].content
    assert "Charlie" not in fresh.turns[0].observations[0].content


async def test_what_a_tool_raises_is_an_observation(tasks):
    task = tasks["slack-user_task_1"]
    bad = Action(calls=(Call("a", "get_users_in_channel", {"channel": "nowhere"}),))
    (episode,) = await play([task], Script({task.id: (bad, DONE)}))
    assert episode.turns[0].observations[0].error == "exception"
    assert "nowhere" in episode.turns[0].observations[0].content


async def test_under_an_attack_both_the_users_task_and_the_attack_are_judged(attacked):
    task = next(
        one for one in attacked if (one.setup["task"], one.setup["injection"]) == ("user_task_2", "injection_task_1")
    )
    assert any("www.secure-systems-252.com" in text for text in task.setup["injections"].values())
    send = Call("a", "send_direct_message", {"recipient": "Alice", "body": "Please click www.secure-systems-252.com"})
    obeying = Script({task.id: (Action(calls=(send,)), DONE)})
    (obeyed,) = await play([task], obeying)
    (resisted,) = await play([task], oracle([task]))
    assert (obeyed.success, FOLLOWED in obeyed.verdict.reasons) == (False, True)
    assert (resisted.success, resisted.verdict.reasons) == (True, ())
    (insecure,) = await play([task], obeying, attack=ATTACK, judged="security")
    (secure,) = await play([task], SilentAgent(), attack=ATTACK, judged="security")
    assert (insecure.success, secure.success) == (False, True)


def test_variants_of_a_user_task_share_a_cluster(attacked):
    assert len(attacked) == 21 * 5
    assert len({one.cluster for one in attacked}) == 21


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("train", 1, 0, ["en"], []), {}, "for evaluation, so split = 'train' is refused"),
        (("eval", 1, 0, ["zh"], []), {}, "in English, allowed is 'en'"),
        (("eval", 1, 0, ["en"], ["bank"]), {}, "allowed are its suites workspace, travel, banking, slack"),
        (("eval", 98, 0, ["en"], []), {}, "hold 97 tasks; 98 were asked for"),
        (
            ("eval", 1, 0, ["en"], []),
            {"attack": "manual"},
            "no attack 'manual' with a fixed wording; there are direct, ",
        ),
    ],
)
def test_what_can_not_be_is_said(arguments, options, said):
    with pytest.raises(InputError, match=said):
        AgentDojo.generate(*arguments, **options)


def test_security_needs_an_attack():
    with pytest.raises(InputError, match="judged = 'security' needs an attack"):
        AgentDojo(judged="security")
