"""A model behind an OpenAI-compatible server acts in a world like any other agent."""

from __future__ import annotations

import json

import pytest

import loopback
from quintain import Task, Verdict, World, tool
from quintain.agents.chat import ChatAgent
from quintain.endpoint.config import EndpointConfig, ExampleSection, PromptConfig
from quintain.harness.journal import Journal, read_journal
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.interface.generation import Sampling
from quintain.interface.messages import message

SAMPLING = Sampling(max_tokens=50, temperature=0.0)
TASK = Task("t", "sum", "What is 2 + 3?")


class Sum(World):
    name = "sum"
    instructions = "Use the tool."

    @tool
    def add(self, a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    def verify(self, task, episode):
        return Verdict(episode.answer == "5")


def solve(request):
    """Calls the tool once, then says what it returned."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return {"content": last["content"]}
    return {"content": "I add.", "tool_calls": [loopback.call("add", {"a": 2, "b": 3})]}


async def play(respond, *, prompt=None, budget=None, journal=None, **options):
    with loopback.serve(respond) as server:
        config = EndpointConfig(model="m", url=server.url, key="TEST_KEY", **options)
        agent = ChatAgent(config, SAMPLING, prompt or PromptConfig())
        try:
            episode = await Harness(Sum, budget=budget, journal=journal).run(TASK, agent)
        finally:
            await agent.close()
    return episode, server


async def test_it_calls_a_tool_reads_the_observation_and_answers(monkeypatch):
    monkeypatch.setenv("TEST_KEY", "secret")
    episode, server = await play(solve)
    assert (episode.success, episode.outcome.kind) == (True, "answered")
    assert episode.turns[0].action.thought == "I add."
    first, second = server.requests
    assert [one["role"] for one in first["messages"]] == ["system", "user"]
    assert first["tools"][0]["function"]["parameters"]["required"] == ["a", "b"]
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "5"}
    assert second["messages"][-2]["tool_calls"][0]["function"]["arguments"] == '{"a": 2, "b": 3}'
    assert server.keys == ["Bearer secret"] * 2


async def test_tokens_and_price_are_counted_once_each():
    """The server counts words: 3 + 5 in the first prompt, 2 and a call written; the second prompt adds 2 + 1."""
    episode, _ = await play(solve, price_in=1_000_000, price_out=10_000_000)
    assert [turn.action.spent.tokens for turn in episode.turns] == [3, 1]
    assert (episode.usage.tokens, episode.usage.context_tokens) == (4, 8)
    assert episode.usage.price == pytest.approx(8 + 11 + 10 * 4), "every request pays for its whole prompt"


async def test_the_price_survives_the_journal(tmp_path):
    journal = Journal(tmp_path)
    episode, _ = await play(solve, journal=journal, price_out=1_000_000)
    journal.close()
    (read,) = read_journal(tmp_path)[0]
    assert read.usage == episode.usage
    assert [turn.action.spent for turn in read.turns] == [turn.action.spent for turn in episode.turns]


async def test_the_token_budget_ends_an_episode():
    def calls_for_ever(request):
        return {"content": "again and again", "tool_calls": [loopback.call("add", {"a": 1, "b": 1})]}

    episode, server = await play(calls_for_ever, budget=Budget(tokens=10))
    assert str(episode.outcome) == "limit(tokens)"
    assert [one["max_tokens"] for one in server.requests] == [10, 6, 2]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"tool_calls": [loopback.call("add", "{oops")]}, "json"),
        ({"tool_calls": [loopback.call("add", "[1]")]}, "json"),
        ({"content": "  "}, "empty"),
        ({"content": "I would", "finish": "length"}, "cut"),
        ({"tool_calls": [loopback.call("subtract", {})]}, "unknown_tool"),
        ({"tool_calls": [loopback.call("add", {"a": "two", "b": 3})]}, "arguments"),
    ],
)
async def test_what_can_not_be_understood_comes_back_as_a_format_error(message, kind):
    def once(request):
        return message if len(request["messages"]) == 2 else {"content": "5"}

    episode, server = await play(once)
    assert episode.turns[0].observations[0].format_kind == kind
    assert episode.usage.format_errors == 1
    assert f"Format error ({kind})" in server.requests[1]["messages"][-1]["content"]
    assert episode.success


class Asks(Sum):
    """A user with a second question."""

    def user(self, view):
        return None if view.user_messages else message("user", "And 1 + 1?")


async def test_reasoning_is_given_back_across_tool_turns_and_dropped_once_the_user_speaks_again():
    """As the servers of DeepSeek and of vLLM have it; one that sends none is sent none."""

    def thinks(request):
        last = request["messages"][-1]
        if last["role"] == "tool":
            return {"content": last["content"], "reasoning_content": "So that is it."}
        calls = [loopback.call("add", {"a": 2, "b": 3})]
        return {"content": None, "tool_calls": calls, "reasoning_content": f"On {last['content']}"}

    with loopback.serve(thinks) as server:
        agent = ChatAgent(EndpointConfig(model="m", url=server.url), SAMPLING)
        try:
            episode = await Harness(Asks).run(TASK, agent)
        finally:
            await agent.close()
    sent = [[one.get("reasoning_content") for one in request["messages"]] for request in server.requests]
    first, second = "On What is 2 + 3?", "On And 1 + 1?"
    assert sent == [
        [None] * 2,
        [None, None, first, None],
        [None] * 6,
        [*[None] * 6, second, None],
    ]
    assert [turn.action.thought for turn in episode.turns] == [first, "So that is it.", second, "So that is it."]
    assert server.requests[1]["messages"][2]["content"] == "", "what was said beside the call stays apart from it"
    _, plain = await play(solve)
    assert "reasoning_content" not in json.dumps(plain.requests)


async def test_calls_without_ids_or_with_one_id_twice_get_their_own():
    def twice(request):
        if request["messages"][-1]["role"] == "tool":
            return {"content": "5"}
        return {"tool_calls": [loopback.call("add", {"a": 2, "b": 3}, ""), loopback.call("add", {"a": 1, "b": 1}, "")]}

    episode, _ = await play(twice)
    assert [call.id for call in episode.turns[0].action.calls] == ["call_0_0", "call_0_1"]
    assert [seen.content for seen in episode.turns[0].observations] == ["5", "2"]


async def test_a_prompt_replaces_instructions_and_descriptions_and_shows_examples():
    prompt = PromptConfig(
        instructions="Be brief.",
        examples=[ExampleSection(user="1 + 1?", assistant="2")],
        tools={"add": "Sums."},
    )
    _, server = await play(solve, prompt=prompt)
    request = server.requests[0]
    assert [(one["role"], one["content"]) for one in request["messages"]] == [
        ("system", "Be brief."),
        ("user", "1 + 1?"),
        ("assistant", "2"),
        ("user", "What is 2 + 3?"),
    ]
    assert request["tools"][0]["function"]["description"] == "Sums."


async def test_describing_a_tool_that_is_not_there_names_those_that_are():
    with pytest.raises(InputError, match="has no tool 'sub'; tools: add"):
        await play(solve, prompt=PromptConfig(tools={"sub": "Subtracts."}))


@pytest.mark.parametrize(
    ("status", "error", "remedy"),
    [
        (401, "bad key", "set TEST_KEY to a valid key"),
        (404, "no such model", "check the address and the model's name"),
        (400, "tools are not supported", "the server refuses the request"),
    ],
)
async def test_a_refused_request_is_one_line_with_the_remedy(status, error, remedy):
    with pytest.raises(InputError) as caught:
        await play(lambda request: (status, {"error": {"message": error}}))
    assert error in str(caught.value)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_full_context_is_a_limit():
    body = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    episode, _ = await play(lambda request: (400, body))
    assert str(episode.outcome) == "limit(context)"


async def test_a_server_error_is_tried_again_and_then_counts_as_infra():
    left = [1]

    def fails_once(request):
        if left:
            left.pop()
            return 500, {"error": {"message": "busy"}}
        return solve(request)

    episode, _ = await play(fails_once)
    assert episode.success
    episode, server = await play(lambda request: (500, {"error": {"message": "down"}}), tries=1)
    assert (episode.outcome.kind, episode.scored) == ("infra_error", False)
    assert len(server.requests) == 2, "the harness asks once more"


async def test_what_is_no_chat_server_is_an_infra_error():
    episode, _ = await play(lambda request: (200, {"hello": json.dumps(request["model"])}), tries=1)
    assert "has no choices" in episode.outcome.detail


def test_top_k_is_refused_because_the_protocol_has_none():
    with pytest.raises(InputError, match="no top_k"):
        ChatAgent(EndpointConfig(model="m"), Sampling(top_k=5))
