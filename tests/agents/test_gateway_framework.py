"""An agent of the OpenAI Agents SDK through the gateway: its loop, its tools, its streams, its handoffs."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from gateway_play import Scripted, assert_exact, call, calls, play, say

from quintain.agents.gateway.program import Assignment
from quintain.interface.dialects import get
from quintain.interface.episode import Outcome

agents = pytest.importorskip("agents", reason="needs the OpenAI Agents SDK: pip install openai-agents")

QUIET = agents.RunConfig(tracing_disabled=True)


@pytest.fixture
def dialect(codec):
    return get("hermes", codec)


@asynccontextmanager
async def seller(given: Assignment, **more: Any):
    """An agent whose tool asks the world."""
    async with openai.AsyncOpenAI(base_url=given.base_url, api_key=given.api_key, max_retries=0) as api:

        @agents.function_tool
        async def price(item: str) -> str:
            """Price of an item."""
            seen: Any = await api.post("/tools/price", body={"item": item}, cast_to=object)
            return str(seen["content"])

        model = agents.OpenAIChatCompletionsModel("any", api)
        yield agents.Agent("seller", instructions=given.instructions, tools=[price], model=model, **more)


def script(dialect: Any) -> Scripted:
    tea = call("price", item="tea")
    return Scripted(dialect, calls(tea, call("price", 1, item="gin")), calls(tea), say("6"))


async def whole(given: Assignment) -> str:
    async with seller(given) as agent:
        return str((await agents.Runner.run(agent, given.prompt, run_config=QUIET)).final_output)


async def streamed(given: Assignment) -> str:
    async with seller(given) as agent:
        run = agents.Runner.run_streamed(agent, given.prompt, run_config=QUIET)
        async for _ in run.stream_events():
            pass
        return str(run.final_output)


@pytest.mark.parametrize("program", [whole, streamed])
async def test_its_loop_is_one_segment_and_its_calls_run_in_the_world(dialect, program):
    engine = script(dialect)
    episode = await play(engine, dialect, program)
    assert (episode.outcome, episode.answer, episode.success) == (Outcome("answered"), "6", True)
    assert [one.reason for one in episode.segments] == ["start"]
    assert [[one.error for one in turn.observations] for turn in episode.turns] == [["", "exception"], [""], []]
    assert episode.turns[0].observations[0].value == 3
    assert len(episode.turns) == 3, "its final output is the model's last words"
    assert_exact(episode, engine)


async def test_a_handoff_to_another_agent_starts_a_segment_that_keeps_what_was_written(dialect):
    engine = Scripted(dialect, calls(call("price", item="tea")), calls(call("transfer_to_clerk")), say("6"))

    async def program(given: Assignment) -> str:
        async with seller(given) as agent:
            clerk = agents.Agent("clerk", instructions="Add.", model=agent.model)
            agent.handoffs.append(clerk)
            return str((await agents.Runner.run(agent, given.prompt, run_config=QUIET)).final_output)

    episode = await play(engine, dialect, program)
    assert episode.success
    assert [(one.parent, one.reason) for one in episode.segments] == [(-1, "start"), (0, "discard")]
    prompt = engine.asked[2]
    for written in engine.made[:2]:
        assert any(prompt[place : place + len(written)] == written for place in range(len(prompt)))
    assert_exact(episode, engine)
