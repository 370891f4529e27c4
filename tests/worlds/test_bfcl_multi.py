"""The world of BFCL's multi-turn tasks: fresh APIs for every episode, state and responses judged at every request."""

from __future__ import annotations

import pytest

pytest.importorskip("bfcl_eval")

from quintain.agents.oracle import OracleAgent
from quintain.agents.silent import SilentAgent
from quintain.doctor.world import Script, without_last_call
from quintain.harness.isolated import end_idle
from quintain.harness.loop import Harness
from quintain.interface.canonical import canonical_json
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.worlds.bfcl import MultiTurn, apis
from quintain.worlds.bfcl.multi import CATEGORIES

ROOM = Budget(turns=40, tool_calls=100, observation_bytes=10**6)
SAMPLE = 40


class Here(MultiTurn):
    """In this process, which is faster."""

    isolated = False


@pytest.fixture(scope="module")
def tasks():
    return {task.id: task for task in MultiTurn.generate("eval", 800, 0, ["en"], [])}


@pytest.fixture(scope="module")
def some():
    return MultiTurn.generate("eval", SAMPLE, 5, ["en"], [])


async def play(tasks, agent, world=Here, budget=ROOM):
    return await Harness(world, budget=budget, concurrency=2).rollout(tasks, agent)


async def script(task, *actions, budget=ROOM):
    (episode,) = await play([task], Script({task.id: actions}), budget=budget)
    return episode


def oracle(tasks):
    return OracleAgent(Here().solution, {task.id: task for task in tasks})


def calls(task, *written, first="a"):
    made = apis.steps(written, task.setup["classes"])
    return Action(calls=tuple(Call(f"{first}{at}", name, arguments) for at, (name, arguments) in enumerate(made)))


DONE = Action(answer="Done.")


def test_there_are_200_tasks_of_every_category_and_variants_share_a_cluster(tasks):
    assert [sum(one.template == name for one in tasks.values()) for name in CATEGORIES] == [200] * 4
    assert len({one.cluster for one in tasks.values()}) == 200
    assert tasks["multi_turn_base_7"].cluster == tasks["multi_turn_miss_func_7"].cluster
    assert all(canonical_json(one.to_json()) for one in tasks.values())


async def test_gold_succeeds_fails_without_its_last_call_and_succeeds_again(some):
    gold = await play(some, oracle(some))
    assert {one.template for one in gold} == set(CATEGORIES)
    assert [(one.id, one.verdict) for one in gold if not one.success] == []
    cut = {one.task_id: without_last_call(one, set()) for one in gold}
    assert [one.id for one in await play(some, Script(cut)) if one.success] == []
    again = await play(some[:10], oracle(some))
    assert [seen(one) for one in again] == [seen(one) for one in gold[:10]]


def seen(episode):
    return [[observation.content for observation in turn.observations] for turn in episode.turns], episode.success


async def test_every_episode_may_have_a_process_of_its_own(some):
    try:
        episodes = await play(some[:2], oracle(some), MultiTurn)
    finally:
        end_idle()
    assert [seen(one) for one in episodes] == [seen(one) for one in await play(some[:2], oracle(some))]
    assert all(one.success for one in episodes)


async def test_silence_fails_with_the_reason(some):
    episodes = await play(some[:20], SilentAgent())
    assert not any(one.success for one in episodes)
    assert "request 1: no call" in {reason for one in episodes for reason in one.verdict.reasons}


async def test_the_state_is_judged_after_every_request_and_the_first_wrong_one_ends_the_episode(tasks):
    task = tasks["multi_turn_base_0"]
    first = ["cd(folder='document')", "mkdir(dir_name='temp')", "mv(source='final_report.pdf', destination='temp')"]
    assert list(task.answer[0]) == first
    right, wrong = calls(task, *first), calls(task, *first, "touch(file_name='junk.txt')")
    episode = await script(task, wrong, DONE, DONE)
    assert episode.verdict.reasons == ("request 1: GorillaFileSystem.root is not as it should be",)
    assert len(episode.turns) == 2
    episode = await script(task, right, DONE, DONE)
    assert episode.verdict.reasons == ("request 2: no call",)
    assert episode.milestones == ("request 1",)


async def test_a_state_that_is_right_is_not_enough_where_a_response_is_asked_for(tasks):
    task = tasks["multi_turn_base_0"]
    look = calls(task, "cd(folder='temp')", "ls()", first="b")
    episode = await script(task, calls(task, *task.answer[0]), DONE, look, DONE)
    (reason,) = episode.verdict.reasons
    assert reason.startswith('request 2: no call gave {"matching_lines"')


async def test_more_calls_than_the_reference_has_are_no_fault(tasks):
    task = tasks["multi_turn_base_0"]
    actions = [calls(task, "ls()", "pwd()", first="x")]
    for number, written in enumerate(task.answer):
        actions += [calls(task, *written, first=f"t{number}_"), DONE]
    assert (await script(task, *actions)).success


async def test_an_episode_cut_off_before_its_last_answer_fails(tasks):
    task = tasks["multi_turn_base_0"]
    actions = list(Here().solution(task))
    episode = await script(task, *actions, budget=Budget(turns=len(actions) - 1, tool_calls=100))
    assert episode.verdict.reasons == (f"ended in request {len(task.answer)} of {len(task.answer)}",)


async def test_functions_held_out_come_with_a_request_that_says_them(tasks):
    task = tasks["multi_turn_miss_func_0"]
    assert task.setup["later"] == {"3": ["sort"]}
    offered = []

    class Watching(OracleAgent):
        async def act(self, view):
            offered.append(("sort" in view.toolset, len(view.user_messages)))
            return await super().act(view)

    (episode,) = await play([task], Watching(Here().solution, {task.id: task}))
    assert episode.success
    assert {known for known, said in offered if said < 3} == {False}
    assert {known for known, said in offered if said >= 3} == {True}
    said = episode.user_messages[sorted(episode.user_messages)[2]].text
    assert said.startswith("sort(file_name: string) - ")
    assert said.endswith("I have updated some more functions you can choose from. What about now?")


def test_a_function_its_own_reference_needs_before_is_not_held_out(tasks):
    assert tasks["multi_turn_miss_func_49"].setup["later"] == {"3": ["wc", "cat"]}


async def test_an_argument_of_another_type_goes_back_but_one_document_is_corrected(tasks):
    task = next(one for one in tasks.values() if "TicketAPI" in one.setup["classes"])
    bad = Action(calls=(Call("a", "get_ticket", {"ticket_id": "x"}), Call("b", "close_ticket", {"ticket_id": "x"})))
    episode = await script(task, bad, DONE)
    assert [one.error for one in episode.turns[0].observations] == ["format", ""]


async def test_what_an_api_raises_is_an_error_the_agent_sees_and_a_response(tasks, monkeypatch):
    task = tasks["multi_turn_base_0"]

    def broken(apis, step):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("quintain.worlds.bfcl.apis.run", broken)
    world = Here()
    world.reset(task)
    episode = await script(task, calls(task, "pwd()"), DONE)
    assert episode.turns[0].observations[0].error == "exception"
    assert apis.play(world.apis, [("pwd", {})]) == ["Error during execution: by zero"]


def test_training_on_it_is_refused():
    with pytest.raises(InputError, match="its tasks are for evaluation, so split = 'train' is refused"):
        MultiTurn.generate("train", 1, 0, ["en"], [])


@pytest.mark.parametrize("written", ["open('x').read()", "f(g())", "__import__('os').system('x')", "1 + 1"])
def test_only_plain_calls_with_literals_are_read(written):
    class Owner:
        def f(self, x):
            raise AssertionError("never called")

    with pytest.raises((ValueError, StopIteration)):
        apis._step(written, [Owner])
