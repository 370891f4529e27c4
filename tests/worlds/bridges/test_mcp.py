"""MCP servers as worlds: one that misbehaves in every way, and a real one from the registry."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quintain import Budget, Harness, Task
from quintain.agents.oracle import OracleAgent
from quintain.agents.silent import SilentAgent
from quintain.doctor.world import Script
from quintain.interface.errors import InputError, InterfaceDrift
from quintain.interface.messages import Action, Call
from quintain.worlds.bridges import session
from quintain.worlds.bridges.mcp import MCPWorld

STRANGE = str(Path(__file__).parent / "strange_server.py")
ADD = {"tool": "add", "arguments": {"a": 2, "b": 3}}
TASK = Task("t", "mcp", "How much is 2 + 3?", {"calls": [ADD], "plan": [ADD]}, 5)


def strange(way="well", *more, **options):
    """A factory of worlds on the strange server; Python without its site packages starts fast."""
    return lambda: MCPWorld(command=sys.executable, args=["-I", "-S", STRANGE, way, *map(str, more)], **options)


def call(tool, **arguments):
    return Action(calls=(Call("c", tool, arguments),))


def play(world, *actions, task=TASK, **budget):
    """The episode of an agent that takes these actions."""
    harness = Harness(world, budget=Budget(**budget))
    return asyncio.run(harness.run(task, Script({task.id: (*actions, Action(answer="5"))})))


def observations(episode):
    return [(seen.content, seen.error) for turn in episode.turns for seen in turn.observations]


def test_the_tools_of_all_pages_are_the_agents_tools():
    tools = strange()().toolset()
    assert tools.names == ["add", "count", "say", "trouble"]
    assert tools["add"].result == {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    }
    assert [one.name for one in tools if one.read_only] == ["add"]


def test_parameters_are_draft_2020_12_whatever_they_came_as():
    tools = strange()().toolset()
    assert tools["say"].parameters == {"type": "object", "properties": {"text": {"type": "string"}, "tone": {}}}
    assert tools["trouble"].parameters == {"type": "object", "properties": {}}
    assert "text: 3 is not of type 'string'" in tools.check("say", {"text": 3}).message


def test_structured_results_are_values_and_texts_are_texts():
    episode = play(strange(), call("add", a=2, b=3), call("say", text="bon jour\n你好"))
    assert observations(episode) == [('{"sum": 5}', ""), ("bon jour\n你好", "")]
    assert episode.turns[0].observations[0].value == {"sum": 5}


def test_an_episode_succeeds_if_the_calls_were_made_and_the_answer_is_right():
    harness = Harness(strange())
    oracle = OracleAgent(harness.factory().solution, {"t": TASK})
    assert asyncio.run(harness.run(TASK, oracle)).success
    assert not asyncio.run(harness.run(TASK, SilentAgent())).success
    from_memory = play(strange())
    assert from_memory.verdict.reasons == ("add was not called as asked",)
    other_numbers = play(strange(), call("add", a=1, b=4))
    assert other_numbers.verdict.reasons == ("add was not called as asked",)


def test_a_task_that_nothing_can_judge_stops_the_run_in_one_line():
    with pytest.raises(InputError, match=r"task 't' can't be judged: give it an answer"):
        play(strange(), task=Task("t", "mcp", "Go."))


def test_every_episode_has_a_server_of_its_own():
    async def two():
        harness = Harness(strange())
        tasks = [Task(name, "mcp", "Count.", {"calls": [{"tool": "count"}]}) for name in "ab"]
        actions = (call("count"), call("count"), Action(answer="done"))
        return await harness.rollout(tasks, Script({"a": actions, "b": actions}))

    assert [observations(one) for one in asyncio.run(two())] == [[("1", ""), ("2", "")]] * 2


def test_episodes_of_a_stateless_server_share_one(tmp_path):
    starts = tmp_path / "starts"
    world = strange("well", starts, stateless=True)
    assert observations(play(world, call("count"))) == [("1", "")]
    assert observations(play(world, call("count"))) == [("2", "")]
    assert len(starts.read_text()) == 1


def test_a_session_in_which_only_read_only_tools_were_called_goes_on_to_the_next_episode(tmp_path):
    starts = tmp_path / "starts"
    world = strange("well", starts)
    for _ in range(3):
        assert observations(play(world, call("add", a=2, b=3))) == [('{"sum": 5}', "")]
    assert len(starts.read_text()) == 1
    for _ in range(2):
        assert observations(play(world, call("count"), call("count"))) == [("1", ""), ("2", "")]
    assert len(starts.read_text()) == 2, "the first to count had the session that was as new"


def test_a_server_that_dies_is_started_again_and_the_calls_so_far_are_made_again(tmp_path):
    starts = tmp_path / "starts"
    world = strange("dies at the first start", starts)
    episode = play(world, call("count"), call("count"), call("trouble"), call("count"))
    assert observations(episode) == [("1", ""), ("2", ""), ("all is well", ""), ("3", "")]
    assert len(starts.read_text()) == 2


def test_a_server_that_dies_of_the_same_call_again_is_the_agents_doing():
    episode = play(strange("dies"), call("trouble"), call("count"))
    (content, error), after = observations(episode)
    assert error == "infra"
    assert "ended before it answered trouble; its last words: no memory left" in content
    assert after == ("1", "")


def test_a_server_that_hangs_is_an_infra_error_too():
    ((content, error),) = observations(play(strange("never answers a call", seconds=0.5), call("trouble")))
    assert error == "infra"
    assert "has not answered trouble within 0.5 s" in content


def test_a_call_past_the_budgets_limit_is_a_timeout_and_the_server_is_replaced():
    episode = play(strange("never answers a call"), call("count"), call("trouble"), call("count"), call_seconds=3)
    assert [error for _, error in observations(episode)] == ["", "timeout", ""]
    assert observations(episode)[2] == ("2", "")


def test_results_that_are_not_what_was_declared_are_one_line():
    (content, error), *_ = observations(play(strange("lies"), call("add", a=1, b=2)))
    assert error == "result_type"
    assert "Invalid structured content returned by tool add: 'sum' is a required property" in content


@pytest.mark.parametrize(
    ("way", "error", "words"),
    [
        ("huge", "too_large", "result of 3000000 bytes > 16384 allowed"),
        ("image", "result_type", "trouble returned a part of type 'image'; version 1 accepts text only"),
        ("refuses", "exception", "no such order"),
        ("no result", "infra", "broke the protocol: content: Field required"),
    ],
)
def test_every_strange_result_is_an_observation(way, error, words):
    ((content, found),) = observations(play(strange(way), call("trouble")))
    assert found == error
    assert words in content


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("dies at once", "ended before it answered anything; its last words: cannot open the database"),
        ("twins", "two tools are named 'add'"),
        ("no tools", "has no tools"),
        ("bad schema", "tool 'add': not a JSON Schema: 'whole number' is not valid under any of the given schemas"),
        ("no type", "broke the protocol: tools.0.inputSchema.type: Field required"),
        ("outside reference", "$ref 'http://example.com/schema.json' leads out of the document"),
        ("endless pages", "its list of tools has more than 100 pages"),
        ("knows no tools", "knows no tools does not list its tools: Method not found"),
    ],
)
def test_a_server_that_can_not_be_used_is_wrong_input_in_one_line(way, words):
    with pytest.raises(InputError) as caught:
        strange(way)().toolset()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_last_words_of_a_server_are_whole():
    with pytest.raises(InputError, match=r"its last words: ten words ten words .* ten words") as caught:
        strange("dies with many words")().toolset()
    words = str(caught.value).split("its last words: ")[1].removesuffix(" ...").split()
    assert set(words) == {"ten", "words"}


def test_a_server_that_takes_its_time_is_spoken_of_meanwhile(monkeypatch, capsys):
    monkeypatch.setattr(session, "QUIET_SECONDS", 0.0)
    strange("takes its time")().toolset()
    assert "waiting for MCP server" in capsys.readouterr().err


@pytest.mark.parametrize("way", ["never answers", "garbage"])
def test_a_server_that_does_not_answer_in_the_protocol_is_given_up(way, monkeypatch):
    monkeypatch.setattr(session, "START_SECONDS", 1.0)
    with pytest.raises(InputError, match="has not answered anything within 1 s"):
        strange(way)().toolset()


MUTE = """
import os, sys, time
print(os.getpid(), file=open(sys.argv[1], "w"))
time.sleep(600)
"""
GIVEN_UP = """
import sys
from quintain.interface.errors import InputError
from quintain.worlds.bridges import session
from quintain.worlds.bridges.mcp import MCPWorld
session.START_SECONDS = 1.0
try:
    MCPWorld(command=sys.executable, args=["-I", "-S", "-c", *sys.argv[1:]]).toolset()
except InputError as error:
    print(error)
"""


def test_a_server_that_was_given_up_ends_with_the_program(tmp_path):
    command = [sys.executable, "-c", GIVEN_UP, MUTE, str(tmp_path / "pid")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "has not answered anything within 1 s" in done.stdout
    server = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


def test_a_server_that_may_take_no_time_is_wrong_input():
    with pytest.raises(InputError, match="seconds = 0; a server needs more than 0"):
        MCPWorld(command="python", seconds=0)


def test_a_command_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="no program named 'no-such-program'"):
        MCPWorld(command="no-such-program").toolset()


def test_without_the_sdk_one_line_says_what_to_install(monkeypatch):
    for name in ("quintain.worlds.bridges.mcp", "quintain.worlds.bridges.session"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(InputError, match=r"pip install 'quintain\[mcp\]'"):
        importlib.import_module("quintain.worlds.bridges.mcp")


def test_tools_that_change_between_lists_stop_the_run_in_words(tmp_path):
    world = strange("changes", tmp_path / "starts")
    play(world, call("count"))
    with pytest.raises(InterfaceDrift, match="lists other tools than when this run began: extra: tool added"):
        play(world)


def test_no_secret_stands_in_a_recipe(monkeypatch):
    with pytest.raises(InputError, match="env of the MCP server: the environment has no variable 'MY_TOKEN'"):
        strange(env={"TOKEN": "$MY_TOKEN"})()
    monkeypatch.setenv("MY_TOKEN", "secret")
    assert strange(env={"TOKEN": "$MY_TOKEN"})().data_digest() == strange()().data_digest()


def test_a_session_begins_with_the_files_of_its_task():
    world = strange("files", "{scratch}/notes/a.txt")
    task = Task("t", "mcp", "Read.", {"files": {"notes/a.txt": "bon jour"}, "calls": [{"tool": "trouble"}]})
    assert observations(play(world, call("trouble"), task=task)) == [("bon jour", "")]
    out = Task("t", "mcp", "Read.", {"files": {"../a.txt": ""}, "calls": [{"tool": "trouble"}]})
    assert "'../a.txt' leads out of the scratch folder" in play(world, task=out).outcome.detail


def test_a_real_server_is_played():
    london = {"source_timezone": "Etc/UTC", "time": "14:30", "target_timezone": "Asia/Tokyo"}
    convert = {"tool": "convert_time", "arguments": london}
    task = Task("t", "mcp", "How far ahead of UTC is Tokyo?", {"calls": [convert], "plan": [convert]}, "+9.0h")

    def world():
        return MCPWorld(command=sys.executable, args=["-m", "mcp_server_time"], stateless=True, seconds=60)

    harness = Harness(world, budget=Budget(call_seconds=90))
    assert harness.factory().toolset().names == ["get_current_time", "convert_time"]
    episode = asyncio.run(harness.run(task, OracleAgent(harness.factory().solution, {"t": task})))
    assert episode.success
    assert episode.turns[0].observations[0].value["target"]["datetime"].endswith("T23:30:00+09:00")
