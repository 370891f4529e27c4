"""The teacher behind a server that misbehaves: retries, a cache that pays once, counted problems, resume."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from contextlib import closing

import pytest
from synthesis_runs import collect

from loopback import Cut, serve
from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.config import EndpointConfig
from quintain.endpoint.structured import parse
from quintain.interface.errors import InputError
from quintain.synthesis.config import FASConfig, TeacherConfig
from quintain.synthesis.endpoint import PATIENCE, EndpointTeacher
from quintain.synthesis.memory import Excerpt
from quintain.synthesis.planning import MadePlan
from quintain.synthesis.statements import Statement
from quintain.synthesis.teacher import Prompts, Request
from quintain.worlds.desk import Desk

PLAN = {"analysis": "I look it up.", "tool": "search", "arguments": {"query": "Chad"}, "answer": ""}
GOOD = {"content": json.dumps(PLAN)}


def ask(server, cache, requests, **changes):
    """Replies to requests asked at once."""
    endpoint = EndpointConfig(model="m", url=server.url, tries=3, price_in=1e6, price_out=2e6)
    config = TeacherConfig(**{"endpoint": endpoint, "concurrency": 4, **changes})

    async def work():
        with closing(ReplyCache(cache)) as replies:
            teacher = EndpointTeacher(config, replies, Prompts())
            try:
                return await asyncio.gather(*map(teacher.ask, requests))
            finally:
                await teacher.close()

    return asyncio.run(work())


def plan_of(question="What is the capital of Chad?", variant=0):
    return Request("plan", "en", {"question": question, "tools": ["search(query: string)"]}, MadePlan, variant=variant)


def test_a_reply_is_read_and_its_tokens_and_price_are_counted(tmp_path):
    with serve(lambda request: GOOD) as server:
        (reply,) = ask(server, tmp_path / "c", [plan_of()])
    assert reply.value == MadePlan(**PLAN)
    assert reply.completion_tokens == len(GOOD["content"].split())
    assert reply.price == reply.prompt_tokens + 2 * reply.completion_tokens
    sent = server.requests[0]
    assert "What is the capital of Chad?" in sent["messages"][0]["content"]
    schema = sent["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == {"analysis", "tool", "arguments", "answer"}


def test_asking_again_costs_nothing(tmp_path):
    with serve(lambda request: GOOD) as server:
        ask(server, tmp_path / "c", [plan_of()])
        (again,) = ask(server, tmp_path / "c", [plan_of()])
        assert (again.value, again.cached, again.price) == (MadePlan(**PLAN), True, 0.0)
        assert len(server.requests) == 1
        ask(server, tmp_path / "c", [plan_of(variant=1), plan_of("Another?")])
        ask(server, tmp_path / "c", [plan_of()], temperature=0.5)
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {"error": {"message": "slow down"}, "retry-after": 0.05}),
        (500, {"error": {"message": "oops"}}),
        (503, {"error": {"message": "busy"}}),
        Cut(GOOD),
        {"content": "Sure! Here is the plan: {"},
        {"content": '{"analysis": 3}'},
    ],
    ids=["429", "500", "503", "cut", "invalid JSON", "wrong shape"],
)
def test_what_passes_is_tried_again(tmp_path, trouble):
    answers = iter([trouble])
    with serve(lambda request: next(answers, GOOD)) as server:
        (reply,) = ask(server, tmp_path / "c", [plan_of()])
    assert reply.value == MadePlan(**PLAN)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("message", "problem", "asked"),
    [
        ({"content": None, "refusal": "I can't help with that."}, "refused", 1),
        ({"content": "", "finish": "content_filter"}, "refused", 1),
        ({"content": "no JSON here"}, "no JSON of the right shape", 3),
        ({"content": '{"analysis": "I', "finish": "length"}, "cut at its token limit", 3),
    ],
)
def test_what_fails_for_good_is_a_problem_and_is_not_paid_for_again(tmp_path, message, problem, asked):
    with serve(lambda request: message) as server:
        (reply,) = ask(server, tmp_path / "c", [plan_of()])
        (again,) = ask(server, tmp_path / "c", [plan_of()])
    assert (reply.value, reply.problem) == (None, problem)
    assert (again.problem, again.cached) == (problem, True)
    assert len(server.requests) == asked


def test_a_request_without_an_answer_is_counted_and_asked_again_by_the_next_run(tmp_path):
    down = True

    def respond(request):
        return (500, {"error": {"message": "oops"}, "retry-after": 0.01}) if down else GOOD

    with serve(respond) as server:
        (reply,) = ask(server, tmp_path / "c", [plan_of()])
        assert reply.problem == "no answer from the server after all tries"
        assert len(server.requests) == 3
        down = False
        (reply,) = ask(server, tmp_path / "c", [plan_of()])
    assert reply.value == MadePlan(**PLAN)


def test_a_server_that_is_down_stops_the_run_in_one_line(tmp_path):
    requests = [plan_of(variant=number) for number in range(PATIENCE + 3)]
    with (
        serve(lambda request: (500, {"error": {"message": "oops"}, "retry-after": 0.01})) as server,
        pytest.raises(InputError, match=f"teacher: {PATIENCE} requests in a row failed, the last with: .*oops"),
    ):
        ask(server, tmp_path / "c", requests)


def test_a_wrong_key_stops_the_run_at_once(tmp_path):
    with (
        serve(lambda request: (401, {"error": {"message": "bad key"}})) as server,
        pytest.raises(InputError, match="set OPENAI_API_KEY to a valid key"),
    ):
        ask(server, tmp_path / "c", [plan_of()])
    assert len(server.requests) == 1


def test_no_more_requests_are_in_flight_than_allowed(tmp_path):
    lock, now, most = threading.Lock(), 0, 0
    full = threading.Event()

    def respond(request):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            if now == 4:
                full.set()
        full.wait(10)
        with lock:
            now -= 1
        return GOOD

    with serve(respond) as server:
        ask(server, tmp_path / "c", [plan_of(variant=number) for number in range(12)])
    assert most == 4


def test_an_interrupted_run_asks_only_for_what_is_missing(tmp_path):
    said = [Statement("Chad", "The capital of Chad is N'Djamena.", "en", attribute="capital", value="N'Djamena")]
    excerpts = [Excerpt(f"en:{number}", "Chad", "en", tuple(said)) for number in range(1)]
    question = {
        "style": "factual",
        "question": "What is the capital of Chad?",
        "answer": ["N'Djamena"],
        "statements": [1],
    }
    replies = {
        "You write questions": {"questions": [question]},
        "You are an agent": PLAN,
        "An agent was asked": {"right": True},
        "Answer this question": {"steps": [{"question": "Where?", "answer": "Africa"}], "answer": "unknown"},
        "Somebody thought": {
            "reasoning": "Chad is in Africa. Its capital is N'Djamena, a city.",
            "answer": "N'Djamena",
        },
    }
    failing = {"Answer this question"}

    def respond(request):
        prompt = request["messages"][0]["content"]
        start = next(start for start in replies if prompt.startswith(start))
        return (400, {"error": {"message": "no"}}) if start in failing else {"content": json.dumps(replies[start])}

    def run(server):
        config = TeacherConfig(endpoint=EndpointConfig(model="m", url=server.url))
        with closing(ReplyCache(tmp_path / "c")) as cache:
            teacher = EndpointTeacher(config, cache, Prompts())
            return collect(teacher, Desk().toolset(), FASConfig(styles=["factual"]), excerpts)

    with serve(respond) as server:
        with pytest.raises(InputError, match="the server refuses the request"):
            run(server)
        assert len(server.requests) == 4
        failing.clear()
        output = run(server)
        assert len(server.requests) == 6
    assert [one.source for one in output.kept] == ["planning", "reasoning"]
    assert output.counts["plans kept en"] == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"analysis": "a", "tool": "t"}',
        'Here it is:\n```json\n{"analysis": "a", "tool": "t"}\n```\nDone.',
        '{"analysis": "a", "tool": "t", "fault": "search_necessity", "more": 1}',
    ],
)
def test_json_is_found_whatever_stands_around_it(text):
    assert parse(text, MadePlan) == MadePlan(analysis="a", tool="t")


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"tool": "t"}', '{"analysis": "a", "arguments": []}', "{" * 9999])
def test_other_texts_are_no_reply(text):
    assert parse(text, MadePlan) is None


def test_half_characters_a_teacher_writes_as_escapes_are_replaced():
    assert parse('{"analysis": "a\\ud83d", "tool": "t\\ud83d\\ude00"}', MadePlan) == MadePlan(
        analysis="a?", tool="t\U0001f600"
    )


def test_a_folder_in_place_of_a_cache_is_named(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path}: unable to open database file; mend that"):
        ReplyCache(tmp_path)


def test_a_file_that_is_no_cache_is_named(tmp_path):
    (tmp_path / "c").write_text("no database" * 500)
    with pytest.raises(InputError, match="no cache of replies"):
        ReplyCache(tmp_path / "c")


def test_counts_name_every_problem_of_a_run(tmp_path):
    excerpt = Excerpt("en:Chad", "Chad", "en", (Statement("Chad", "Chad is large and dry.", "en"),))
    with serve(lambda request: {"content": None, "refusal": "no"}) as server:
        config = TeacherConfig(endpoint=EndpointConfig(model="m", url=server.url))
        with closing(ReplyCache(tmp_path / "c")) as cache:
            output = collect(EndpointTeacher(config, cache, Prompts()), Desk().toolset(), FASConfig(), [excerpt])
    assert output.counts == Counter(
        {"memories en": 1, "memories with one statement": 1, "question requests: refused": 1}
    )
