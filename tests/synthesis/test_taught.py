"""Alternatives from a teacher behind a real server on loopback: asked without what came of a step, checked, counted."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from contextlib import closing

import pytest
from told_episodes import answer, episode, turn

from loopback import serve
from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.config import EndpointConfig
from quintain.interface.errors import InputError
from quintain.interface.tools import Tool, Toolset
from quintain.synthesis.choices import Step, option_text
from quintain.synthesis.config import TeacherConfig
from quintain.synthesis.endpoint import PATIENCE, EndpointTeacher
from quintain.synthesis.fas import Spent
from quintain.synthesis.taught import TaughtActions
from quintain.synthesis.teacher import Prompts

TEXT = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
TOOLS = Toolset([Tool("search", "Find a book.", TEXT), Tool("open", "Read a book.", TEXT)])
EPISODE = episode(
    "e",
    (turn("search", "Emma", "Found: Emma.", "Let me see."), turn("open", "Emma", "By Jane Austen."), answer("J. A.")),
)


def option(thought="I try another way.", tool="open", title="Faust", answer=""):
    calls = [{"tool": tool, "arguments": {"title": title}}] if tool else []
    return {"thought": thought, "calls": calls, "answer": answer}


def ask(tmp_path, reply, steps, times=1):
    """What a teacher's replies become; its counts; what was spent; the prompts it was sent."""
    with serve(reply) as server:
        config = TeacherConfig(endpoint=EndpointConfig(model="m", url=server.url, tries=1))
        counts, spent = Counter(), Spent()
        taught = TaughtActions({EPISODE.world: TOOLS}, counts, spent)

        async def work():
            with closing(ReplyCache(tmp_path / "replies.sqlite")) as replies:
                teacher = EndpointTeacher(config, replies, Prompts())
                try:
                    await taught.ask(teacher, steps, 3, 2, lambda: None)
                finally:
                    await teacher.close()

        for _ in range(times):
            asyncio.run(work())
        return taught, counts, spent, [one["messages"][0]["content"] for one in server.requests]


def replies(*options):
    return lambda request: {"content": json.dumps({"steps": options})}


STEPS = [Step(EPISODE, index) for index in range(3)]


def test_the_prompt_shows_what_the_agent_knew_and_did_but_not_what_came_of_it(tmp_path):
    _, _, _, (prompt,) = ask(tmp_path, replies(option()), [STEPS[1]])
    assert "Who wrote Emma?" in prompt
    assert "Found: Emma." in prompt
    assert 'open {"title": "Emma"}' in prompt
    assert "By Jane Austen." not in prompt
    assert "Write 3 OTHER steps" in prompt


def test_options_are_what_was_written_each_once_and_never_the_step_itself(tmp_path):
    written = [
        option(title="Faust"),
        option("I TRY another  way.", title="Faust"),
        option("Let me see.", "search", "Emma"),
        option("I know it.", tool="", answer="Goethe"),
    ]
    taught, counts, _, _ = ask(tmp_path, replies(*written), [STEPS[0]])
    found = taught(STEPS[0], 3, random.Random(0))
    assert sorted(option_text(one, "en") for one in found) == [
        "I know it.\nAnswer: Goethe",
        'I try another way.\nopen {"title": "Faust"}',
    ]
    assert counts == {"alternatives left out: read like another option": 2}
    assert len(taught(STEPS[0], 1, random.Random(0))) == 1


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (option(tool="browse"), "a call does not fit the toolset"),
        ({**option(), "calls": [{"tool": "open", "arguments": {"page": 3}}]}, "a call does not fit the toolset"),
        (option(answer="Goethe"), "neither calls nor an answer, or both"),
        (option(tool=""), "neither calls nor an answer, or both"),
        (option("我再找一找这本书。"), "in the wrong language"),
    ],
)
def test_what_is_no_step_in_these_tools_and_this_language_is_counted(tmp_path, written, reason):
    taught, counts, _, _ = ask(tmp_path, replies(written), [STEPS[0]])
    assert taught(STEPS[0], 3, random.Random(0)) == []
    assert counts == {f"alternatives left out: {reason}": 1}


def test_a_refusal_leaves_a_step_without_alternatives_and_is_counted(tmp_path):
    taught, counts, spent, _ = ask(tmp_path, lambda request: {"content": None, "refusal": "No."}, STEPS)
    assert taught(STEPS[2], 3, random.Random(0)) == []
    assert counts == {"alternatives requests: refused": 3}
    assert spent.requests == 3


def test_what_was_asked_before_is_not_asked_again(tmp_path):
    taught, _, spent, prompts = ask(tmp_path, replies(option()), STEPS, times=2)
    assert len(prompts) == 3
    assert (spent.requests, spent.cached) == (6, 3)
    assert taught(STEPS[0], 1, random.Random(0))[0].thought == "I try another way."


def test_a_server_that_is_down_is_one_error(tmp_path):
    many = [Step(episode(f"e{number}", EPISODE.turns, question=f"Question {number}?"), 0) for number in range(PATIENCE)]
    with pytest.raises(InputError, match="requests in a row failed"):
        ask(tmp_path, lambda request: (500, {"error": {"message": "oops"}}), many)
