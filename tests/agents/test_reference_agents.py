"""Agents without a model: what worlds are measured with."""

from __future__ import annotations

import pytest

from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call, Observation, Turn, message
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset, tool
from quintain.interface.view import Agent, View


@tool
def look(place: str, depth: int, fast: bool = False) -> str:
    """Looks somewhere."""
    return place


def view(turns=(), seed=0, task="t"):
    said = (message("system", "Work."), message("user", "open the red door"))
    return View("e", task, said, Toolset.of(look), tuple(turns), Budget(), seed)


def echo(task):
    """Looks once, then answers what it saw."""
    (seen,) = yield Action(calls=(Call("1", "look", {"place": "here", "depth": 1}),))
    yield Action(answer=seen.content)


def turn_of(action, content):
    return Turn(action, tuple(Observation(call.id, call.tool, content) for call in action.calls))


@pytest.mark.parametrize("agent", [OracleAgent(echo, {}), SilentAgent(), RandomAgent()])
def test_each_is_an_agent(agent):
    assert isinstance(agent, Agent)


async def test_the_oracle_feeds_observations_to_the_solution_and_keeps_nothing_between_turns():
    agent = OracleAgent(echo, {"t": Task("t", "w", "p")})
    first = await agent.act(view())
    assert first.calls[0].tool == "look"
    for content in ("a door", "a window"):
        assert (await agent.act(view([turn_of(first, content)]))).answer == content


async def test_the_oracle_names_an_unknown_task_and_a_solution_that_stops_short():
    agent = OracleAgent(echo, {"t": Task("t", "w", "p")})
    with pytest.raises(InputError, match="no task 'other' among the 1"):
        await agent.act(view(task="other"))
    first = await agent.act(view())
    turns = [turn_of(first, "x"), Turn(Action(answer="x"))]
    with pytest.raises(InputError, match="ends after 2 turns"):
        await agent.act(view(turns))


async def test_the_silent_agent_answers_the_empty_text():
    assert await SilentAgent().act(view()) == Action(answer="")


async def test_the_random_agent_makes_valid_calls_and_repeats_itself_for_a_seed():
    agent, tools = RandomAgent(), Toolset.of(look)
    actions = [await agent.act(view(seed=seed)) for seed in range(200)]
    calls = [call for action in actions for call in action.calls]
    assert all(tools.check(call.tool, call.arguments) is None for call in calls)
    assert {call.arguments["place"] for call in calls} == {"open", "the", "red", "door"}
    assert 100 < len(calls) < 200
    assert actions == [await agent.act(view(seed=seed)) for seed in range(200)]
