"""Injected faults strike every world and adapter alike, and the same call once more goes through."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from loopback import Quiet, listening
from quintain.agents.oracle import OracleAgent
from quintain.harness.faults import FaultPlan
from quintain.harness.isolated import end_idle
from quintain.harness.journal import Journal, read_journal
from quintain.harness.loop import Harness
from quintain.harness.sandbox import CannotConfine
from quintain.interface.episode import Budget
from quintain.interface.messages import Action, Turn
from quintain.interface.tasks import Task
from quintain.worlds.bridges.functions import FunctionsWorld
from quintain.worlds.bridges.mcp import MCPWorld
from quintain.worlds.bridges.openapi import OpenAPIWorld

ROOM = Budget(turns=80, tool_calls=200, observation_bytes=10**6)
PASSES = FaultPlan(episodes=1.0, rate=1.0, most=3, permanent=0.0, kinds={"server_error": 1.0})
DAMAGES = FaultPlan(episodes=1.0, rate=1.0, most=1, permanent=0.0, kinds={"truncated": 1.0})

BUILT_IN = [
    ("desk:Desk", "train", [], ""),
    ("orders:Orders", "train", [], ""),
    ("web:Web", "train", [], "lxml"),
    ("code:Code", "train", ["data"], ""),
    ("maths:Maths", "train", [], "sympy"),
    ("bfcl:MultiTurn", "eval", [], "bfcl_eval"),
    ("bfcl:SingleTurn", "eval", [], "bfcl_eval"),
    ("agentdojo:AgentDojo", "eval", ["banking"], "agentdojo"),
]

STRANGE = str(Path(__file__).parent / "bridges" / "strange_server.py")
STOCK = {
    "openapi": "3.0.3",
    "info": {"title": "Stock", "version": "1"},
    "paths": {
        "/items/{item}": {
            "get": {
                "operationId": "stock_of",
                "parameters": [{"name": "item", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "found"}},
            }
        }
    },
}


class Persistent(OracleAgent):
    """Follows the solution, and makes a call again until no fault strikes it."""

    async def act(self, view):
        turns: list[Turn] = []
        for turn in view.turns:
            if turns and _struck(turns[-1]):
                better = {one.call_id: one for one in turn.observations}
                seen = tuple(better.get(one.call_id, one) for one in turns[-1].observations)
                turns[-1] = replace(turns[-1], observations=seen)
            else:
                turns.append(turn)
        if turns and _struck(turns[-1]):
            return Action(calls=tuple(one for one in turns[-1].action.calls if one.id in _struck(turns[-1])))
        return await super().act(replace(view, turns=tuple(turns)))


def _struck(turn):
    """Calls of a turn that a fault struck."""
    return {one.call_id for one in turn.observations if one.fault}


@contextmanager
def stock_server():
    """A small API: every item's stock is 17."""

    class Handler(Quiet):
        def do_GET(self):
            body = json.dumps({"stock": 17, "item": self.path.split("/")[2]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}"


async def strikes_and_passes(factory, task, folder):
    """Plays a task with faults that pass, and once with a damaged result; the journal tells them from the rest."""
    agent = Persistent(factory().solution, {task.id: task})
    journal = Journal(folder)
    try:
        passed = await Harness(factory, faults=PASSES, budget=ROOM, journal=journal).run(task, agent)
        damaged = await Harness(factory, faults=DAMAGES, budget=ROOM).run(task, agent)
    except CannotConfine as error:
        pytest.skip(str(error))
    finally:
        journal.close()
        end_idle()
    assert passed.success, (passed.outcome, passed.verdict)
    seen = [one for turn in passed.turns for one in turn.observations]
    assert {one.fault for one in seen} == {"server_error", ""}
    assert all(one.error == "exception" for one in seen if one.fault)
    (kept,) = read_journal(folder)[0]
    assert [one.fault for turn in kept.turns for one in turn.observations] == [one.fault for one in seen]
    assert damaged.scored
    struck = [one for turn in damaged.turns for one in turn.observations if one.fault]
    assert [one.error for one in struck] == [""] * len(struck)


@pytest.mark.parametrize(("name", "split", "templates", "needs"), BUILT_IN, ids=[one[0] for one in BUILT_IN])
async def test_of_a_built_in_world(name, split, templates, needs, tmp_path):
    if needs:
        pytest.importorskip(needs)
    module, _, world = name.partition(":")
    factory = getattr(import_module(f"quintain.worlds.{module}"), world)
    (task,) = factory.generate(split, 1, 3, ["en"], templates)
    await strikes_and_passes(factory, task, tmp_path)


async def test_of_an_mcp_server(tmp_path):
    add = {"tool": "add", "arguments": {"a": 2, "b": 3}}
    task = Task("t", "mcp", "How much is 2 + 3?", {"calls": [add], "plan": [add]}, 5)
    await strikes_and_passes(
        lambda: MCPWorld(command=sys.executable, args=["-I", "-S", STRANGE, "well"]), task, tmp_path / "journal"
    )


async def test_of_an_api_over_http(tmp_path):
    described = tmp_path / "api.json"
    described.write_text(json.dumps(STOCK))
    look = {"tool": "stock_of", "arguments": {"item": "tea"}}
    task = Task("t", "api", "How many?", {"calls": [look], "plan": [look]}, 17)
    with stock_server() as url:
        await strikes_and_passes(lambda: OpenAPIWorld(file=str(described), url=url), task, tmp_path / "journal")


async def test_of_a_modules_functions(tmp_path):
    class Maths(FunctionsWorld):
        module = "math_tools_of_faults"

    sys.modules["math_tools_of_faults"] = made = type(sys)("math_tools_of_faults")
    exec('def double(number: int) -> int:\n    """Doubles."""\n    return 2 * number', made.__dict__)
    twice = {"tool": "double", "arguments": {"number": 21}}
    task = Task("t", "functions", "Twice 21?", {"calls": [twice], "plan": [twice]}, 42)
    try:
        await strikes_and_passes(Maths, task, tmp_path)
    finally:
        del sys.modules["math_tools_of_faults"]
