"""A world of ours as an MCP server: the official client and our own bridge use it, and it keeps state per session."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp import Client, MCPError, StdioServerParameters

from quintain import Budget, Harness, Task
from quintain.agents.oracle import OracleAgent
from quintain.cli.main import main
from quintain.commands.mcp_serve import WorldServer
from quintain.doctor.world import Script
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import load_tasks
from quintain.pipeline.workshop import Workshop
from quintain.recipe import load_recipe
from quintain.recipe.user_code import load_world
from quintain.worlds.bridges.mcp import MCPWorld

HERE = Path(__file__).parent
TILL = HERE.parents[1] / "examples" / "till"
SERVE = ["-c", "import sys; from quintain.cli import main; sys.exit(main())", "mcp-serve"]
PATH = {"PYTHONPATH": os.pathsep.join(sys.path)}
"""A server started by a client inherits little of the environment."""

LADDER = """
name = "ladder"

[world]
world = "ladder:Ladder"

[pools.all]
file = "tasks.jsonl"

[[stages]]
kind = "eval"
name = "base"
pool = "all"
"""
TASKS = """
{"id": "low", "world": "ladder", "prompt": "Climb two rungs.", "setup": {"start": 0}}
{"id": "high", "world": "ladder", "prompt": "Climb on.", "setup": {"start": 10}}
"""


@pytest.fixture
def ladder(tmp_path):
    """The recipe of a world that keeps state."""
    shutil.copy(HERE / "ladder.py", tmp_path)
    (tmp_path / "tasks.jsonl").write_text(TASKS.strip())
    path = tmp_path / "recipe.toml"
    path.write_text(LADDER)
    return path


def over_stdio(recipe, *more):
    return StdioServerParameters(command=sys.executable, args=[*SERVE, str(recipe), *more], env=PATH)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def over_http(recipe):
    port = free_port()
    process = subprocess.Popen([sys.executable, *SERVE, str(recipe), "--port", str(port)])
    try:
        while True:
            assert process.poll() is None, "the server ended"
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


async def climb(client, rungs=1):
    result = await client.call_tool("climb", {"rungs": rungs})
    return result.content[0].text, result.is_error


def test_the_official_client_plays_a_world_over_stdio(ladder):
    async def play():
        async with Client(over_stdio(ladder, "--task", "high")) as client:
            tools = (await client.list_tools()).tools
            prompt = await client.get_prompt("task")
            climbed = [await climb(client), await climb(client, 4)]
            refused = [await climb(client, 99), await climb(client, "many")]
            return tools, prompt.messages[0].content.text, client.instructions, climbed, refused

    tools, prompt, instructions, climbed, refused = asyncio.run(play())
    assert [one.name for one in tools] == ["climb", "look"]
    assert [bool(one.annotations.read_only_hint) for one in tools] == [False, True]
    assert (prompt, instructions) == ("Climb on.", "Hold on.")
    assert climbed == [("11", False), ("15", False)]
    assert refused[0] == ("Error (exception): ValueError: the ladder has 20 rungs", True)
    assert "rungs: 'many' is not of type 'integer'" in refused[1][0]


def test_every_http_session_has_a_world_of_its_own(ladder):
    async def play(url):
        async with Client(url) as one, Client(url) as other:
            return [await climb(one), await climb(one), await climb(other)]

    with over_http(ladder) as url:
        assert asyncio.run(play(url)) == [("1", False), ("2", False), ("1", False)]
        asyncio.run(_without_handshake(url))


async def _without_handshake(url):
    async with Client(url, mode="2026-07-28") as client:
        with pytest.raises(MCPError, match="connect with the initialize handshake"):
            await climb(client)


def test_our_bridge_plays_a_world_over_http(ladder):
    low = Task("t", "mcp", "Climb two rungs.", {"calls": [{"tool": "climb", "arguments": {"rungs": 2}}]})
    actions = (Action(calls=(Call("a", "climb", {"rungs": 2}), Call("b", "climb", {"rungs": 3}))), Action(answer="up"))
    with over_http(ladder) as url:
        harness = Harness(lambda: MCPWorld(url=url, seconds=60), budget=Budget(call_seconds=90))
        episodes = asyncio.run(harness.rollout([low], Script({"t": actions}), samples=2))
    for episode in episodes:
        assert [seen.value for seen in episode.turns[0].observations] == [2, 5]
        assert episode.success


def test_a_world_served_and_bridged_back_is_the_same_world(tmp_path):
    recipe = TILL / "train.toml"
    original = load_world("till_world:TaughtTill", TILL)

    def bridged():
        args = [*SERVE, str(recipe), "--task", "train-shop-0-2"]
        return MCPWorld(command=sys.executable, args=args, env=PATH, seconds=60)

    harness = Harness(bridged, budget=Budget(call_seconds=90))
    assert harness.digests.toolset == original().toolset().digest
    served = next(task for task in load_tasks(TILL / "train.jsonl") if task.id == "train-shop-0-2")
    episode = asyncio.run(harness.run(served, OracleAgent(original().solution, {served.id: served})))
    local = asyncio.run(Harness(original).run(served, OracleAgent(original().solution, {served.id: served})))
    assert [turn.observations[0].value for turn in episode.turns[:-1]] == [
        turn.observations[0].value for turn in local.turns[:-1]
    ]
    assert episode.answer == served.answer


def test_a_call_that_hangs_is_given_up_and_the_state_before_it_comes_back(ladder):
    recipe = ladder.read_text().replace("[pools.all]", "[budget]\ncall_seconds = 2\n\n[pools.all]")
    ladder.write_text(recipe)

    async def play():
        workshop = Workshop(load_recipe(ladder), ladder.parent, ladder.parent)
        (one,) = workshop.worlds.values()
        world = WorldServer(one, workshop.pools.sample(one.name))
        async with world.alone(), Client(world.server()) as client:
            return [await climb(client), await climb(client, 7), await climb(client)]

    first, hung, after = asyncio.run(play())
    assert (first, after) == (("1", False), ("2", False))
    assert hung == ("Error (timeout): climb ran past 2 s and was abandoned", True)


def test_wrong_input_is_one_line(ladder, capsys):
    assert main(["mcp-serve", str(ladder), "--task", "none"]) == 2
    assert "no task 'none' in the pools all" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["mcp-serve", str(ladder), "--port", str(port)]) == 2
    assert f"port {port} of 127.0.0.1 can't be opened" in capsys.readouterr().err
