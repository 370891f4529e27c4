"""A teacher behind a real server on loopback goes on with an episode and is told what happened."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing

from harness.till import Script, Till, do, task
from loopback import serve
from quintain import Harness
from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.config import EndpointConfig
from quintain.interface.messages import Action, Call
from quintain.synthesis.config import TeacherConfig
from quintain.synthesis.endpoint import EndpointTeacher
from quintain.synthesis.teacher import Prompts
from quintain.synthesis.tutor import Tutor

CALL = {"analysis": "I correct the name.", "tool": "price", "arguments": {"item": "tea"}, "answer": ""}
DONE = {"analysis": "Found it.", "tool": "", "arguments": {}, "answer": "3"}


def play(tmp_path, reply, *actions, first=None):
    """The actions, then the tutor; the episode and what the server was asked."""
    with serve(reply) as server:
        config = TeacherConfig(endpoint=EndpointConfig(model="m", url=server.url, tries=1))

        async def work():
            with closing(ReplyCache(tmp_path / "cache")) as replies:
                teacher = EndpointTeacher(config, replies, Prompts())
                tutor = Tutor(teacher, first, len(actions))

                class Then(Script):
                    async def act(self, view):
                        return actions[len(view.turns)] if len(view.turns) < len(actions) else await tutor.act(view)

                try:
                    return await Harness(Till).run(task(), Then(actions))
                finally:
                    await teacher.close()

        episode = asyncio.run(work())
        return episode, [one["messages"][0]["content"] for one in server.requests]


def steps(request):
    done = "it answered: 3" in request["messages"][0]["content"]
    return {"content": json.dumps(DONE if done else CALL)}


def test_it_is_told_the_trouble_and_goes_on_through_the_world(tmp_path):
    episode, asked = play(tmp_path, steps, do("price", item="teh"))
    assert episode.success
    assert [turn.action.thought for turn in episode.turns] == ["", "I correct the name.", "Found it."]
    assert 'you called price {"item": "teh"}' in asked[0]
    assert "it answered: Error (exception): KeyError: 'teh'" in asked[0]
    assert "How much is tea?" in asked[0]
    assert "Cannot answer:" in asked[0]


def test_what_a_person_wrote_comes_first(tmp_path):
    by_hand = Action(thought="By hand.", calls=(Call("0", "price", {"item": "tea"}),))
    episode, asked = play(tmp_path, steps, first=by_hand)
    assert [turn.action.thought for turn in episode.turns] == ["By hand.", "Found it."]
    assert len(asked) == 1


def test_a_reply_that_is_no_step_ends_the_continuation(tmp_path):
    both = {**CALL, "answer": "3"}
    episode, _ = play(tmp_path, lambda request: {"content": json.dumps(both)}, do("price", item="teh"))
    assert episode.outcome.kind == "agent_error"
    assert "neither a call nor an answer" in episode.outcome.detail
