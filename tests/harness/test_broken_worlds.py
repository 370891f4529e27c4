"""What a world's or an agent's own code may get wrong: one line or a typed record, never a traceback."""

from __future__ import annotations

import pytest

from harness.till import ANSWER, Script, Till, do, task
from quintain import Harness, Journal, Verdict, tool
from quintain.harness.journal import read_journal
from quintain.interface.errors import ContextFull, InputError
from quintain.interface.messages import Action

SURROGATE = "\ud800"


async def play(world, *actions):
    return await Harness(world).run(task(), Script(actions or [do("put", item="tea"), ANSWER]))


@pytest.mark.parametrize("base", [Exception, BaseException])
async def test_a_tool_may_raise_an_error_whose_message_cannot_be_read(base):
    class Unreadable(base):
        def __str__(self):
            raise ValueError

    class Odd(Till):
        @tool
        def fail(self) -> int:
            """Fails."""
            raise Unreadable

    episode = await play(Odd, do("fail"), ANSWER)
    (seen,) = episode.turns[0].observations
    assert seen.error == "exception"
    assert "Unreadable (its message can't be read)" in seen.content
    assert episode.success


def _raise(*_):
    raise ValueError("no database")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"milestones": _raise}, r"^world 'till': milestones\(\) fails: ValueError: no database$"),
        ({"milestones": lambda *_: 7}, r"milestones\(\) fails: TypeError: 'int' object is not iterable"),
        ({"snapshot": _raise}, r"^world 'till': snapshot\(\) fails: ValueError: no database$"),
        ({"snapshot": lambda _: "text"}, r"snapshot\(\) must return bytes, found str"),
    ],
)
async def test_a_world_that_no_episode_can_go_on_without_stops_the_run_with_one_line(attributes, message):
    with pytest.raises(InputError, match=message):
        await play(type("Broken", (Till,), attributes))


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (None, "must return a Verdict, found NoneType"),
        (Verdict("no"), "success must be True or False, found 'no'"),
        (Verdict(True, float("nan")), "score must be a number from 0 to 1, found nan"),
        (Verdict(True, 7), "score must be a number from 0 to 1, found 7"),
        (Verdict(True, reasons="text"), "reasons must be a tuple of texts, found 'text'"),
    ],
)
async def test_a_verdict_that_is_none_gives_no_score_and_says_why(verdict, message):
    class Judge(Till):
        def verify(self, task, episode):
            return verdict

    episode = await play(Judge)
    assert episode.outcome.kind == "infra_error"
    assert message in episode.outcome.detail


async def test_a_user_who_says_no_message_gives_no_score_and_says_why():
    class Chatty(Till):
        def user(self, view):
            return "text"

    episode = await play(Chatty)
    assert episode.outcome.kind == "infra_error"
    assert "user() must return a Message or None, found str" in episode.outcome.detail


async def test_an_agent_that_returns_no_action_is_an_agent_error():
    episode = await play(Till, "text")
    assert episode.outcome.kind == "agent_error"
    assert episode.outcome.detail == "the agent must return an Action, found 'text'"


async def test_a_full_context_ends_the_episode_as_a_limit_with_the_arithmetic():
    def full(view):
        raise ContextFull("generate: 2048 tokens + 1 to generate > 2048, the model's context")

    episode = await play(Till, do("put", item="tea"), full)
    assert str(episode.outcome) == "limit(context)"
    assert "2048 + 1" in episode.outcome.detail.replace(" tokens", "")
    assert episode.scored
    assert len(episode.turns) == 1


async def test_text_without_a_utf8_form_is_replaced_in_the_journal(tmp_path):
    class Judge(Till):
        def verify(self, task, episode):
            return Verdict(False, reasons=(SURROGATE,))

    journal = Journal(tmp_path)
    agent = Script([Action(thought=SURROGATE, answer=SURROGATE)])
    await Harness(Judge, journal=journal).run(task(), agent)
    journal.close()
    ((episode,), unfinished) = read_journal(tmp_path)
    assert unfinished == []
    assert episode.answer == "?"
    assert episode.verdict.reasons == ("?",)
