"""The episode loop: what the agent does, what it sees, and how an episode ends."""

from __future__ import annotations

import asyncio

import pytest

from harness.till import ANSWER, Script, Till, call, do, task
from quintain import Budget, Harness, Verdict
from quintain.interface.errors import FormatError, InfraError
from quintain.interface.generation import Generation
from quintain.interface.messages import Action, message


async def play(*actions, budget: Budget | None = None, world=Till, **options):
    agent = Script(actions)
    episode = await Harness(world, budget=budget, **options).run(task(), agent)
    return episode, agent


def only(episode, turn: int = 0):
    (observation,) = episode.turns[turn].observations
    return observation


async def test_an_episode_is_judged_by_the_world_and_keeps_everything_in_order():
    episode, agent = await play(do("price", item="tea"), ANSWER)
    assert episode.success
    assert str(episode.outcome) == "answered"
    assert [type(turn.action.answer) for turn in episode.turns] == [type(None), str]
    assert only(episode).value == 3
    assert only(episode).content == "3"
    assert [one.role for one in episode.messages] == ["system", "user"]
    assert len(agent.views[1].turns) == 1


async def test_the_view_shows_neither_setup_nor_gold_answer():
    _, agent = await play(ANSWER)
    view = agent.views[0]
    assert not hasattr(view, "task")
    assert "prices" not in repr(view.messages)
    assert view.task_id == "t"


async def test_an_honest_decline_is_an_outcome_of_its_own():
    episode, _ = await play(Action(answer="Cannot answer: no tea here"))
    assert episode.outcome.kind == "declined"
    assert not episode.success


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(turns=3), "turns"),
        (Budget(tool_calls=2), "tool_calls"),
        (Budget(seconds=0.05), "seconds"),
    ],
)
async def test_reaching_a_bound_ends_the_episode_with_that_limit(budget, limit):
    episode, _ = await play(do("wait", seconds=0.02), budget=budget)
    assert episode.outcome.kind == "limit"
    assert episode.outcome.limit == limit
    assert episode.scored


async def test_a_limit_is_scored_as_the_verdict_says():
    class Filled(Till):
        def verify(self, task, episode):
            return Verdict(success=len(self.basket) == 2)

    episode, _ = await play(do("put", item="tea"), budget=Budget(turns=2), world=Filled)
    assert str(episode.outcome) == "limit(turns)"
    assert episode.success


async def test_generated_tokens_count_and_end_the_episode():
    def speak(view):
        made = Generation((1, 2, 3, 4), (-1.0,) * 4, (-1.0,) * 4, "stop")
        return Action(calls=(call("price", item="tea"),), context=(9,), generation=made)

    episode, agent = await play(speak, budget=Budget(tokens=10))
    assert str(episode.outcome) == "limit(tokens)"
    assert [view.remaining.tokens for view in agent.views] == [10, 6, 2]
    assert episode.segments[0].ids == (9, 1, 2, 3, 4) * 3
    assert [(span.start, span.stop) for span in episode.spans] == [(1, 5), (6, 10), (11, 15)]


async def test_three_malformed_turns_end_the_episode():
    nonsense = Action(error=FormatError("json", "trailing comma"), text="{,}")
    episode, _ = await play(nonsense)
    assert str(episode.outcome) == "limit(format_errors)"
    assert len(episode.turns) == 3
    assert only(episode).content == "Format error (json): trailing comma"


async def test_an_unknown_tool_and_wrong_arguments_are_observations_that_say_what_is_allowed():
    episode, _ = await play(do("buy", item="tea"), do("price", itme="tea"), ANSWER)
    assert "no tool named 'buy'" in only(episode, 0).content
    assert "price(item: string)" in only(episode, 1).content
    assert [turn.malformed for turn in episode.turns] == [True, True, False]
    assert episode.usage.tool_calls == 0


@pytest.mark.parametrize(
    ("action", "kind", "text"),
    [
        (do("price", item="gold"), "exception", "KeyError"),
        (do("wrong_type"), "result_type", "valid integer"),
        (do("raw"), "result_type", "no JSON"),
        (do("flood", megabytes=100), "too_large", "100000000 bytes > 16384 allowed"),
        (do("leave"), "exception", "SystemExit"),
    ],
)
async def test_a_tool_that_misbehaves_becomes_a_typed_observation_and_the_episode_goes_on(action, kind, text):
    episode, _ = await play(action, ANSWER)
    assert only(episode).error == kind
    assert text in only(episode).content
    assert len(only(episode).content) < 400
    assert episode.success


@pytest.mark.parametrize("name", ["hang", "wait"])
async def test_a_hanging_tool_is_abandoned_and_its_half_done_work_is_gone(name):
    budget = Budget(call_seconds=0.1)
    episode, _ = await play(do("put", item="tea"), do(name, seconds=3), do("put", item="tea"), ANSWER, budget=budget)
    assert only(episode, 1).error == "timeout"
    assert only(episode, 2).value == 2


async def test_a_timeout_keeps_what_earlier_calls_of_the_same_turn_did():
    both = Action(calls=(call("put", "a", item="tea"), call("hang", "b", seconds=3)))
    episode, _ = await play(both, do("put", item="tea"), ANSWER, budget=Budget(call_seconds=0.1))
    assert [one.error for one in episode.turns[0].observations] == ["", "timeout"]
    assert only(episode, 1).value == 2


async def test_an_infra_error_is_retried_once_from_the_snapshot():
    Till.infra_failures = 1
    episode, _ = await play(do("flaky"), ANSWER)
    assert only(episode).value == "1 in the basket"


async def test_an_infra_error_that_comes_back_is_the_agents_doing():
    Till.infra_failures = 2
    episode, _ = await play(do("flaky"), do("flaky"), ANSWER)
    assert only(episode, 0).error == "infra"
    assert only(episode, 1).value == "1 in the basket"
    assert episode.scored


async def test_an_infra_error_of_a_world_that_can_not_go_back_says_what_broke():
    class Outside(Till):
        snapshots = "none"

    Till.infra_failures = 1
    episode, _ = await play(do("flaky"), ANSWER, world=Outside)
    assert episode.outcome.kind == "infra_error"
    assert episode.outcome.detail == (
        "the till's cable fell out; the world keeps no snapshots, so it can't go back and try again"
    )


async def test_an_engine_that_fails_twice_leaves_the_episode_without_a_score():
    def broken(view):
        raise InfraError("engine gone")

    episode, agent = await play(do("price", item="tea"), broken)
    assert episode.outcome.kind == "infra_error"
    assert episode.verdict is None
    assert not episode.scored
    assert len(agent.views) == 3


async def test_an_agent_program_that_raises_is_an_agent_error():
    def broken(view):
        raise ZeroDivisionError("oops")

    episode, _ = await play(broken)
    assert episode.outcome.kind == "agent_error"
    assert "oops" in episode.outcome.detail
    assert episode.scored


async def test_a_verifier_that_raises_twice_gives_no_score():
    class Broken(Till):
        def verify(self, task, episode):
            raise OSError("disk gone")

    episode, _ = await play(ANSWER, world=Broken)
    assert episode.outcome.kind == "infra_error"
    assert "disk gone" in episode.outcome.detail


async def test_read_only_calls_of_one_turn_run_at_the_same_time():
    episode, _ = await play(Action(calls=(call("meet", "a"), call("meet", "b"))), ANSWER)
    assert [one.value for one in episode.turns[0].observations] == ["met", "met"]


async def test_calls_that_may_change_something_run_in_order():
    episode, _ = await play(Action(calls=tuple(call("put", str(n), item="tea") for n in range(5))), ANSWER)
    assert [one.value for one in episode.turns[0].observations] == [1, 2, 3, 4, 5]


async def test_calls_beyond_the_budget_are_not_run_but_answered():
    many = Action(calls=tuple(call("put", str(n), item="tea") for n in range(4)))
    episode, _ = await play(many, budget=Budget(tool_calls=2))
    assert [one.error for one in episode.turns[0].observations] == ["", "", "exception", "exception"]
    assert str(episode.outcome) == "limit(tool_calls)"


async def test_milestones_are_kept_once_reached():
    episode, _ = await play(do("put", item="tea"), ANSWER)
    assert (episode.milestones, episode.milestone_turns) == (("filled",), (0,))


async def test_a_world_can_play_a_user_after_an_answer():
    class Chatty(Till):
        def user(self, view):
            return message("user", "Are you sure?") if not view.user_messages else None

    episode, agent = await play(Action(answer="4"), ANSWER, world=Chatty)
    assert episode.success
    assert episode.user_messages[1].text == "Are you sure?"
    assert agent.views[1].user_messages[1].text == "Are you sure?"


async def test_nothing_leaks_between_concurrent_episodes():
    agent = Script([do("put", item="tea"), do("put", item="tea"), ANSWER])
    tasks = [task(f"t{number}") for number in range(40)]
    episodes = await Harness(Till, concurrency=16).rollout(tasks, agent, samples=2)
    assert [episode.id for episode in episodes[:3]] == ["t0#0", "t0#1", "t1#0"]
    assert {only(episode, 1).value for episode in episodes} == {2}


async def test_episode_seeds_differ_by_sample_and_repeat_by_run():
    agent = Script([ANSWER])
    first = await Harness(Till, seed=1).rollout([task()], agent, samples=3)
    again = await Harness(Till, seed=1).rollout([task()], agent, samples=3)
    assert len({episode.seed for episode in first}) == 3
    assert [episode.seed for episode in first] == [episode.seed for episode in again]


async def test_concurrency_bounds_how_many_episodes_run_at_once():
    running, most = 0, 0

    async def count(view):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        return ANSWER

    class Counting(Script):
        async def act(self, view):
            return await count(view)

    await Harness(Till, concurrency=3).rollout([task(str(n)) for n in range(12)], Counting([]))
    assert most == 3
