"""With a summariser `visit` shows what a model writes of each page, and passages never stand in for it."""

from __future__ import annotations

import asyncio
import json

import pytest
from web_sites import page, serve

import loopback
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.errors import InfraError, InputError
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import Task
from quintain.worlds.research import Research

HTML = {"Content-Type": "text/html"}
KEEPER = page("Light", '<p>The keeper was <a href="/ana">Ana Velt</a>.</p>').encode()
LONG = b"<p>" + b"word " * 20_000
PAGES = {
    "/": (200, HTML, KEEPER),
    "/long": (200, HTML, LONG),
    "/leak": (200, HTML, b"<p>canary-9"),
    "/none": (404, HTML, b""),
}
TASK = Task("t", "research", "?")


def summary(request):
    asked = request["messages"][0]["content"]
    return {"content": json.dumps({"summary": "Ana Velt [1] kept it." if "Ana" in asked else "Nothing."})}


def world_at(url, port, **changes):
    asked = {"endpoint": {"model": "m", "url": url, "tries": 1}, **changes}
    return Research("searxng", search_url="http://unused", trusted=[f"127.0.0.1:{port}"], summariser=asked)


def test_each_page_is_summed_up_for_the_goal_with_the_links_that_the_summary_keeps():
    with serve(PAGES) as port, loopback.serve(summary) as server:
        home = f"http://127.0.0.1:{port}"
        world = world_at(server.url, port)
        world.reset(Task("t", "research", "?", {"canary": "canary-9"}))
        shown = world.visit([f"{home}/", f"{home}/leak", f"{home}/none", f"{home}/long"], "who was the keeper?")
    first, leak, none, long = shown.split("\n\n")
    assert first == f"Light ({home}/)\nAna Velt [1] kept it.\nLinks:\n[1] {home}/ana"
    assert "canary" in leak
    assert "HTTP 404" in none
    assert long.endswith("Nothing.")
    assert len(server.requests) == 2, "what is not shown to the agent is not sent to the model"
    assert world.visited == [f"{home}/", f"{home}/long"]
    sent = sorted(one["messages"][0]["content"] for one in server.requests)
    assert all('Goal: "who was the keeper?"\nPage: "' in one for one in sent)
    assert max(map(len, sent)) < 62_000
    assert any("more characters]" in one for one in sent)


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        ({"content": "The keeper was Ana."}, "summariser m: no JSON of the right shape"),
        ((500, {"error": {"message": "down"}}), "down after 1 tries"),
        ((401, {"error": {"message": "bad key"}}), "set OPENAI_API_KEY to a valid key"),
    ],
)
def test_a_summariser_that_fails_is_an_infra_error_and_no_page_counts_as_read(reply, detail):
    with serve(PAGES) as port, loopback.serve(lambda request: reply) as server:
        world = world_at(server.url, port)
        world.reset(TASK)
        with pytest.raises(InfraError, match=detail):
            world.visit([f"http://127.0.0.1:{port}/"], "who?")
    assert world.visited == []


async def test_it_is_asked_from_within_an_episode():
    class Visits:
        name, version = "visits", 0

        async def act(self, view):
            if view.turns:
                return Action(answer=view.turns[0].observations[0].content)
            return Action(calls=(Call("c", "visit", {"url": [f"http://127.0.0.1:{port}/"], "goal": "who?"}),))

        async def release(self, episode):
            """Nothing to forget."""

    with serve(PAGES) as port, loopback.serve(summary) as server:
        harness = Harness(lambda: world_at(server.url, port), budget=Budget(call_seconds=100))
        episodes = await asyncio.gather(*(harness.run(TASK, Visits(), sample=n) for n in range(3)))
    assert ["Ana Velt [1] kept it." in one.answer for one in episodes] == [True] * 3


def test_its_options_and_its_prompt_are_checked_and_part_of_the_digest(tmp_path):
    with pytest.raises(InputError, match=r"research: summariser\.endpoint: Field required"):
        Research(summariser={"model": "m"})
    own = tmp_path / "own.md"
    own.write_text("$goal $question")
    asked = {"endpoint": {"model": "m"}, "prompt": str(own)}
    with pytest.raises(InputError, match=r"no value for \$question; allowed: \$goal, \$page"):
        Research(summariser=asked)
    own.write_text("$goal $page")
    digests = {Research().data_digest(), Research(summariser=asked).data_digest()}
    own.write_text("$page $goal")
    assert len(digests | {Research(summariser=asked).data_digest()}) == 3
