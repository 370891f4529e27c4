"""Agent programs through the gateway: what they do is one episode, and its tokens are the engine's own."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import openai
import pytest
from gateway_play import TASK, Scripted, Till, assert_exact, call, calls, play, say

import tiny
from quintain import Budget, Harness
from quintain.agents.gateway.agent import GatewayAgent
from quintain.agents.gateway.program import Assignment, Command, Function
from quintain.agents.oracle import OracleAgent
from quintain.harness.journal import Journal, read_journal
from quintain.inference.local import LocalEngine
from quintain.interface.dialects import get
from quintain.interface.episode import Outcome
from quintain.interface.errors import InfraError
from quintain.interface.generation import Generation, Sampling
from quintain.interface.messages import Action
from quintain.interface.tasks import load_tasks
from quintain.training.examples import episode_examples

TILL = Path(__file__).parents[2] / "examples" / "till"


@pytest.fixture(params=["hermes", "hermes-compact", "lines"])
def dialect(request, codec):
    return get(request.param, codec)


@pytest.fixture
def compact(codec):
    return get("hermes-compact", codec)


def client(given: Assignment) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=given.base_url, api_key=given.api_key, max_retries=0, timeout=60)


async def ask(api: openai.AsyncOpenAI, messages: list[Any], **options: Any) -> dict[str, Any]:
    """One request; its reply as the message to send back."""
    made = await api.chat.completions.create(model="gpt-4o", messages=messages, **options)
    said = made.choices[0].message
    return said.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})


async def in_the_world(api: openai.AsyncOpenAI, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Carries out a reply's calls in the world."""
    told = []
    for one in message.get("tool_calls", ()):
        body = json.loads(one["function"]["arguments"])
        seen: Any = await api.post(f"/tools/{one['function']['name']}", body=body, cast_to=object)
        told.append({"role": "tool", "tool_call_id": one["id"], "content": seen["content"]})
    return told


async def worker(given: Assignment) -> str:
    """The usual loop: ask, carry out, tell, until there are no calls."""
    async with client(given) as api:
        tools: Any = await api.get("/tools", cast_to=object)
        messages: list[Any] = [{"role": "system", "content": "Be quick."}, {"role": "user", "content": given.prompt}]
        while True:
            reply = await ask(api, messages, tools=tools, temperature=0.0)
            if "tool_calls" not in reply:
                return str(reply["content"])
            messages += [reply, *await in_the_world(api, reply)]


async def test_a_program_plays_with_the_worlds_tools(dialect):
    engine = Scripted(dialect, calls(call("price", item="tea")), say("6"))
    episode = await play(engine, dialect, worker)
    assert (episode.outcome, episode.success, episode.agent) == (Outcome("answered"), True, "mine")
    first, last = episode.turns
    (seen,) = first.observations
    assert (seen.tool, seen.value, seen.content) == ("price", 3, "3")
    assert last.action.answer == "6"
    assert [one.reason for one in episode.segments] == ["start"]
    assert (episode.usage.turns, episode.usage.tool_calls) == (2, 1)
    assert first.action.generation.version == 3
    assert_exact(episode, engine)


async def test_a_turn_adds_tokens_as_the_built_in_loop_would(compact):
    engine = Scripted(compact, calls(call("price", item="tea")), say("6"))
    episode = await play(engine, compact, worker)
    (seen,) = episode.turns[0].observations
    assert episode.turns[1].action.context == tuple(compact.observe([seen]))


async def test_a_stream_says_what_a_whole_reply_says(compact):
    script = (calls(call("price", item="tea"), call("sell", 1, item="茶")), Action(thought="Sum.", answer="6"))
    seen: list[tuple[list[Any], list[Any]]] = []

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            for text in ("tea?", "sum?"):
                said: Any = [{"role": "user", "content": text}]
                chunks = await api.chat.completions.create(
                    model="m", messages=said, stream=True, stream_options={"include_usage": True}
                )
                pieces = [one async for one in chunks]
                deltas = [one.choices[0].delta for one in pieces if one.choices]
                found = [part for delta in deltas for part in delta.tool_calls or ()]
                assert "".join(delta.content or "" for delta in deltas) == ("6" if text == "sum?" else "")
                seen.append((found, [one.choices[0].finish_reason for one in pieces if one.choices]))
                assert pieces[-1].usage.completion_tokens == len(engine.made[-1])

    engine = Scripted(compact, *script)
    episode = await play(engine, compact, program)
    (parts, ends), (none, last) = seen
    assert [(one.index, one.function.name, json.loads(one.function.arguments)) for one in parts] == [
        (0, "price", {"item": "tea"}),
        (1, "sell", {"item": "茶"}),
    ]
    assert (ends[-1], none, last[-1]) == ("tool_calls", [], "stop")
    assert episode.turns[1].action.thought == "Sum."


async def test_a_rewritten_history_starts_a_segment_whose_old_replies_keep_their_tokens(compact):
    engine = Scripted(compact, calls(call("price", item="tea")), say("So far 3."), say("6"))

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            first: list[Any] = [{"role": "user", "content": given.prompt}]
            reply = await ask(api, first)
            told = await in_the_world(api, reply)
            second = await ask(api, [*first, reply, *told])
            shortened = [{**told[0], "content": "(cleared)"}]
            await ask(api, [*first, reply, *shortened, second, {"role": "user", "content": "And two?"}])

    episode = await play(engine, compact, program)
    # the first reply is still in its place, so the second segment branches off behind it
    assert [(one.parent, one.reason) for one in episode.segments] == [(-1, "start"), (0, "branch")]
    assert engine.asked[2][: len(engine.asked[0] + engine.made[0])] == engine.asked[0] + engine.made[0]
    assert engine.made[1] == tuple(compact.write(say("So far 3.")))
    assert_exact(episode, engine)


async def test_messages_dropped_from_the_front_start_a_segment_with_a_parent(compact):
    engine = Scripted(compact, say("One."), say("Two."), say("6"))

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            said: list[Any] = [{"role": "user", "content": "a"}]
            said.append(await ask(api, said))
            said.append({"role": "user", "content": "b"})
            said.append(await ask(api, said))
            said.append({"role": "user", "content": "c"})
            await ask(api, said[2:])

    episode = await play(engine, compact, program)
    assert [(one.parent, one.reason) for one in episode.segments] == [(-1, "start"), (0, "discard")]
    assert_exact(episode, engine)


async def test_parallel_branches_and_conversations_of_their_own(compact):
    engine = Scripted(compact, *(say(text) for text in ("Plan.", "Left.", "Right.", "Aside.", "6")))

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            first: list[Any] = [{"role": "user", "content": given.prompt}]
            plan = await ask(api, first)
            ways = [[*first, plan, {"role": "user", "content": one}] for one in ("left", "right")]
            await asyncio.gather(*(ask(api, one) for one in ways))
            await ask(api, [{"role": "user", "content": "something else"}])
            await ask(api, first)  # the same question again: drawn anew

    episode = await play(engine, compact, program)
    found = [(one.parent, one.reason) for one in episode.segments]
    assert found == [(-1, "start"), (0, "branch"), (-1, "start"), (0, "branch")]
    assert [span.segment for span in episode.spans] == [0, 0, 1, 2, 3]
    assert_exact(episode, engine)


async def test_an_agent_as_a_tool_plays_its_turns_inside_its_callers(compact):
    engine = Scripted(compact, calls(call("helper", question="tea?")), say("3"), say("6"))

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            said: list[Any] = [{"role": "user", "content": given.prompt}]
            reply = await ask(api, said)
            helped = await ask(api, [{"role": "user", "content": "tea?"}])
            told = {"role": "tool", "tool_call_id": reply["tool_calls"][0]["id"], "content": helped["content"]}
            await ask(api, [*said, reply, told])

    episode = await play(engine, compact, program)
    assert [span.segment for span in episode.spans] == [0, 1, 0], "in the order in which they were generated"
    (seen,) = episode.turns[0].observations
    assert (seen.content, seen.error, seen.format_kind) == ("3", "format", "unknown_tool"), (
        "the request offered no tool"
    )
    assert_exact(episode, engine)


async def test_tools_of_the_programs_own_are_recorded_as_it_tells_them(compact):
    offered = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
    engine = Scripted(compact, calls(call("clock")), say("noon"))

    async def program(given: Assignment) -> str:
        async with client(given) as api:
            said: list[Any] = [{"role": "user", "content": given.prompt}]
            reply = await ask(api, said, tools=[offered])
            renamed = {**reply, "tool_calls": [{**reply["tool_calls"][0], "id": "other"}]}
            told = {"role": "tool", "tool_call_id": "other", "content": "12:00"}
            await ask(api, [*said, renamed, told], tools=[offered])
            return "6"

    episode = await play(engine, compact, program)
    (seen,) = episode.turns[0].observations
    assert (seen.tool, seen.content, seen.value, seen.error) == ("clock", "12:00", None, "")
    assert [turn.action.answer for turn in episode.turns] == [None, "noon", "6"], (
        "the program's answer is the episode's"
    )
    assert (episode.spans[2], episode.success, len(episode.segments)) == (None, True, 1)
    assert_exact(episode, engine)


async def test_what_a_program_does_in_the_world_unasked_is_a_turn_without_tokens(compact):
    engine = Scripted(compact, say("6"))

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            await api.post("/tools/sell", body={"item": "tea"}, cast_to=object)
            await ask(api, [{"role": "user", "content": given.prompt}])

    episode = await play(engine, compact, program)
    assert episode.calls() == [("sell", {"item": "tea"})]
    assert [span is None for span in episode.spans] == [True, False]
    assert episode.verdict.reasons == ("tea",), "the world keeps what was done"


async def test_calls_the_program_does_not_carry_out_do_not_happen(compact):
    engine = Scripted(compact, calls(call("sell", item="tea"), call("sell", 1, item="gin")), say("6"))

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            said: list[Any] = [{"role": "user", "content": given.prompt}]
            reply = await ask(api, said)
            tea, gin = reply["tool_calls"]
            seen: Any = await api.post("/tools/sell", body={"item": "tea"}, cast_to=object)
            said += [reply, {"role": "tool", "tool_call_id": tea["id"], "content": seen["content"]}]
            await ask(api, [*said, {"role": "tool", "tool_call_id": gin["id"], "content": "not allowed"}])

    episode = await play(engine, compact, program)
    assert episode.verdict.reasons == ("tea",)
    assert [one.content for one in episode.turns[0].observations] == ['["tea"]', "not allowed"]


async def test_a_turn_cut_at_its_bound_is_closed_without_loss(compact):
    engine = Scripted(compact, say("a long answer, longer than that"), say("6"))

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            said: list[Any] = [{"role": "user", "content": given.prompt}]
            made = await api.chat.completions.create(model="m", messages=said, max_completion_tokens=3)
            assert made.choices[0].finish_reason == "length"
            said += [{"role": "assistant", "content": made.choices[0].message.content}]
            await ask(api, [*said, {"role": "user", "content": "shorter"}])

    episode = await play(engine, compact, program)
    cut = episode.turns[0]
    assert (len(cut.action.generation.ids), cut.action.closing, cut.malformed) == (3, compact.stop[:1], True)
    assert len(episode.segments) == 1, "the text went back as it was returned"
    assert_exact(episode, engine)


@pytest.mark.parametrize(
    ("budget", "limit", "turns"),
    [(Budget(turns=2), "turns", 2), (Budget(tokens=40), "tokens", 3), (Budget(tool_calls=3), "tool_calls", 3)],
)
async def test_a_budget_ends_the_program(compact, budget, limit, turns):
    engine = Scripted(compact, *[calls(call("price", item="tea"))] * 9)
    ended = []

    async def program(given: Assignment) -> str:
        try:
            return await worker(given)
        finally:
            ended.append(True)

    episode = await play(engine, compact, program, budget=budget)
    assert (episode.outcome, len(episode.turns), ended) == (Outcome("limit", limit), turns, [True])
    assert episode.verdict is not None


async def test_a_call_that_is_under_way_when_the_program_ends_is_part_of_the_episode(compact):
    engine = Scripted(compact, calls(call("slow", item="tea")))

    async def program(given: Assignment) -> str:
        async with client(given) as api:
            await ask(api, [{"role": "user", "content": given.prompt}])
            job = asyncio.ensure_future(api.post("/tools/slow", body={"item": "tea"}, cast_to=object))
            await begun.wait()
            job.cancel()
            go_on.set()
            return "6"

    begun, go_on = asyncio.Event(), asyncio.Event()
    Till.gates = (begun, go_on)
    episode = await play(engine, compact, program)
    assert (episode.turns[0].observations[0].content, episode.verdict.reasons) == ("sold", ("tea",))


async def test_requests_at_once_share_the_budget(compact):
    engine = Scripted(compact, *[say("6")] * 5)

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            await asyncio.gather(*(ask(api, [{"role": "user", "content": str(n)}]) for n in range(5)))

    episode = await play(engine, compact, program, budget=Budget(turns=2))
    assert (episode.outcome, len(engine.made)) == (Outcome("limit", "turns"), 2)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages.0: user message: part of type",
        ),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "must be said after an assistant's message"),
        ({"messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]}, "must follow the assistant's call"),
        ({"messages": [{"role": "user", "content": "x"}], "n": 2}, "n: Input should be less than or equal to 1"),
    ],
)
async def test_a_request_that_cannot_be_served_is_refused_and_fails_the_program(compact, body, detail):
    async def program(given: Assignment) -> None:
        async with client(given) as api:
            await api.chat.completions.create(model="m", **body)

    episode = await play(Scripted(compact), compact, program)
    assert episode.outcome.kind == "agent_error"
    assert detail in episode.outcome.detail


async def test_a_wrong_key_is_refused(compact):
    async def program(given: Assignment) -> str:
        async with openai.AsyncOpenAI(base_url=given.base_url, api_key="guessed", max_retries=0) as api:
            with pytest.raises(openai.AuthenticationError, match="names no episode"):
                await api.models.list()
        return "6"

    assert (await play(Scripted(compact), compact, program)).success


async def test_errors_are_told_apart(compact):
    async def quiet(given: Assignment) -> None:
        return None

    async def raises(given: Assignment) -> str:
        raise ValueError("oops")

    broken = [InfraError("no memory"), InfraError("no memory")]
    outcomes = [
        (await play(Scripted(compact), compact, quiet)).outcome,
        (await play(Scripted(compact), compact, raises)).outcome,
        (await play(Scripted(compact, *broken), compact, worker)).outcome,
        (await play(Scripted(compact, broken[0], say("6")), compact, worker)).outcome,
        (await play(Scripted(compact), compact, worker)).outcome,
    ]
    assert [one.kind for one in outcomes] == ["agent_error", "agent_error", "infra_error", "answered", "infra_error"]
    assert [one.detail for one in outcomes[:3]] == [
        "the program ended without an answer",
        "ValueError: oops",
        "engine failed twice: no memory",
    ]
    assert "gateway: " in outcomes[4].detail, "what goes wrong in the gateway itself is no fault of the program"


SCRIPT = """
import json, os, sys, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": sys.stdin.read()}]}).encode()
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
said = json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"]
print(said if os.environ["QUINTAIN_INSTRUCTIONS"] == "Sell." else "")
"""


async def test_a_command_line_gets_the_task_and_says_the_answer(compact, tmp_path):
    engine = Scripted(compact, say("6"))
    episode = await play(engine, compact, Command([sys.executable, "-c", SCRIPT], tmp_path))
    assert (episode.outcome, episode.answer, len(episode.turns)) == (Outcome("answered"), "6", 1)
    assert "How much are two teas?" in compact.codec.decode(engine.asked[0])


STUBBORN = f"""
import contextlib, os, pathlib, subprocess, sys, time
pathlib.Path("pids").write_text(f"{{os.getpid()}} {{subprocess.Popen(['sleep', '600']).pid}}")
sys.stdin = open("task")
for _ in range(2):
    with contextlib.suppress(Exception):
        exec({SCRIPT!r})
    sys.stdin = open("task")
time.sleep(600)
"""


async def test_a_command_line_that_goes_on_past_its_budget_is_ended_with_all_it_started(compact, tmp_path):
    (tmp_path / "task").write_text(TASK.prompt)
    engine = Scripted(compact, say("6"))
    command = Command([sys.executable, "-c", STUBBORN], tmp_path)
    episode = await play(engine, compact, command, budget=Budget(turns=1))
    assert (episode.outcome, len(engine.made)) == (Outcome("limit", "turns"), 1)
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        while running(pid):  # a killed process ends when it is next scheduled; the test's own limit bounds the wait
            await asyncio.sleep(0.01)


def running(pid: int) -> bool:
    """Whether a process still computes; one that nobody has waited for yet does not."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.parametrize(
    ("words", "detail"),
    [
        ([sys.executable, "-c", "import sys; sys.exit('no luck')"], "exit code 1: no luck"),
        (["no-such-program"], "no-such-program: No such file or directory"),
    ],
)
async def test_a_command_line_that_fails_is_the_agents_error(compact, tmp_path, words, detail):
    episode = await play(Scripted(compact), compact, Command(words, tmp_path))
    assert episode.outcome.kind == "agent_error"
    assert episode.outcome.detail.endswith(detail)


async def test_the_journal_holds_the_tree(compact, tmp_path):
    engine = Scripted(compact, say("a"), say("b"), say("6"))

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            first: list[Any] = [{"role": "user", "content": given.prompt}]
            plan = await ask(api, first)
            await ask(api, [*first, plan, {"role": "user", "content": "left"}])
            await ask(api, [*first, plan, {"role": "user", "content": "right"}])

    journal = Journal(tmp_path)
    episode = await play(engine, compact, program, journal=journal)
    journal.close()
    (read,), unfinished = read_journal(tmp_path)
    assert (read.segments, read.spans, unfinished) == (episode.segments, episode.spans, [])
    assert [one.reason for one in read.segments] == ["start", "branch"]


async def test_an_interrupted_episode_of_a_program_begins_again(compact, tmp_path):
    journal = Journal(tmp_path)
    await play(Scripted(compact, say("1"), say("6")), compact, worker, journal=journal)
    journal.close()
    lines = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(b"".join(lines[:-1]))
    _, unfinished = read_journal(tmp_path)
    assert [len(one.turns) for one in unfinished] == [1]

    agent = GatewayAgent(Scripted(compact, say("6")), compact, Sampling(max_tokens=64), Function(worker), "mine")
    journal = Journal(tmp_path)
    try:
        (episode,) = await Harness(Till, journal=journal).rollout([TASK], agent, unfinished=unfinished)
    finally:
        await agent.close()
        journal.close()
    assert (len(episode.turns), episode.success) == (1, True)
    assert read_journal(tmp_path)[0] == [episode]


async def test_the_example_sees_and_writes_the_very_tokens_that_its_reference_solution_teaches(compact):
    names = [runpy.run_path(str(TILL / f"{name}.py")) for name in ("till_world", "agent_program")]
    world, program = names[0]["TaughtTill"], names[1]["run"]
    (task, *_) = load_tasks(TILL / "train.jsonl")
    harness = Harness(world, dialect=compact.digest)
    gold = await harness.run(task, OracleAgent(world().solution, {task.id: task}))
    engine = Scripted(compact, *(turn.action for turn in gold.turns))
    agent = GatewayAgent(engine, compact, Sampling(max_tokens=64), Function(program), "mine")
    try:
        episode = await harness.run(task, agent)
    finally:
        await agent.close()
    assert episode.success
    assert episode.calls() == gold.calls()
    taught = episode_examples(gold, window_turns=9, dialect=compact, toolset=world().toolset())
    assert [(one.ids, one.weights) for one in episode_examples(episode, window_turns=9)] == [
        (one.ids, one.weights) for one in taught
    ]


async def test_captured_tokens_and_log_probabilities_are_a_real_engines(compact):
    engine = LocalEngine(tiny.tiny_model())
    made: list[tuple[tuple[int, ...], Generation]] = []

    class Watched:
        """The engine; what it makes is noted."""

        version = 0

        async def generate(self, ids, **how):
            made.append((tuple(ids), await engine.generate(ids, **how)))
            return made[-1][1]

        async def release(self, session):
            await engine.release(session)

    async def program(given: Assignment) -> None:
        async with client(given) as api:
            said: list[Any] = [{"role": "user", "content": given.prompt}]
            for text in ("more", "and more"):
                reply = await api.chat.completions.create(model="m", messages=said, max_tokens=6)
                said.append({"role": "assistant", "content": reply.choices[0].message.content})
                said.append({"role": "user", "content": text})

    try:
        episode = await play(Watched(), compact, program, budget=Budget(format_errors=9))
    finally:
        engine.close()
    assert [turn.action.generation for turn in episode.turns][:2] == [one for _, one in made]
    for span, (asked, one) in zip(episode.spans, made, strict=False):
        ids = episode.segments[span.segment].ids
        assert (ids[: span.start], ids[span.start : span.stop]) == (asked, one.ids)
