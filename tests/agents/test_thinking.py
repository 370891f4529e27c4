"""Thoughts stay in view across tool turns, and are forgotten at the next user message by formats that say so."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_words import Scripted, Words

import tiny
from harness.till import Script
from quintain import Task, Verdict, World, tool
from quintain.agents.model import ModelAgent
from quintain.agents.written import WrittenAgent
from quintain.harness.loop import Harness
from quintain.interface.dialects import get
from quintain.interface.episode import Budget
from quintain.interface.generation import Sampling
from quintain.interface.messages import Action, Call, message
from quintain.training.examples import episode_examples

ROLES = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")
DEEPSEEK = (*ROLES, "<think>", "</think>", "｜DSML｜")
QWEN = (
    *tiny.CHATML_TOKENS,
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "<tool_response>",
    "</tool_response>",
)
BUDGET = Budget(turns=99, tool_calls=99, tokens=9999)


class Desk(World):
    """A user who asks as often as the task says."""

    name = "desk2"

    @tool
    def look(self) -> str:
        """Looks."""
        return "dust"

    def reset(self, task):
        self.questions = task.setup["questions"]

    def user(self, view):
        asked = len(view.user_messages)
        return message("user", f"q{asked + 1}") if asked + 1 < self.questions else None

    def verify(self, task, episode):
        return Verdict(True)


def task(questions):
    return Task("t", "desk2", "q0", {"questions": questions})


async def play(dialect, lines, questions):
    engine = Scripted(dialect, *lines)
    agent = ModelAgent(engine, dialect, Sampling(max_tokens=9))
    return await Harness(Desk, budget=BUDGET).run(task(questions), agent), engine


async def test_thoughts_stay_across_tool_turns_and_go_at_the_next_question():
    """By hand: the second question is read after call, result and answer of the first, without their thoughts."""
    lines = ["(a call look .", "(b yes .", "(c call look .", "(d no ."]
    episode, engine = await play(Words(forgets=True), lines, 2)
    assert engine.asked == [
        "q0 >",
        "q0 > (a call look . dust >",
        "q0 > call look . dust > yes . q1 >",
        "q0 > call look . dust > yes . q1 > (c call look . dust >",
    ]
    assert [(one.reason, one.parent) for one in episode.segments] == [("start", -1), ("new_user", 0)]
    assert [turn.action.thought for turn in episode.turns] == ["(a", "(b", "(c", "(d"], "the record keeps all"


async def test_a_format_that_does_not_forget_goes_on_in_one_segment():
    episode, engine = await play(Words(), ["(a call look .", "(b yes .", "(d no ."], 2)
    assert engine.asked[2] == "q0 > (a call look . dust > (b yes . q1 >"
    assert len(episode.segments) == 1


async def test_where_nothing_was_thought_nothing_is_rewritten():
    episode, _ = await play(Words(forgets=True), ["call look .", "yes .", "(d no ."], 2)
    assert len(episode.segments) == 1


QUESTIONS = st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1, max_size=4)
"""For each question its turns, the last an answer; True for a turn with a thought."""


@settings(max_examples=60)
@given(QUESTIONS)
def test_whatever_was_asked_each_thought_is_read_until_the_next_question_and_never_after(questions):
    lines, thoughts, owner = [], {}, []
    for number, turns in enumerate(questions):
        for place, thinks in enumerate(turns):
            word = f"(t{len(lines)}"
            last = place == len(turns) - 1
            lines.append(f"{word + ' ' if thinks else ''}{f'a{number}' if last else 'call look'} .")
            thoughts[len(owner)] = word if thinks else None
            owner.append(number)
    episode, engine = asyncio.run(play(Words(forgets=True), [*lines, "unused ."], len(questions)))
    assert len(episode.turns) == len(lines)
    for now, asked in enumerate(engine.asked):
        read = asked.split()
        expected = [thoughts[at] for at in range(now) if thoughts[at] and owner[at] == owner[now]]
        assert [word for word in read if word.startswith("(")] == expected
        assert read.count("call") == sum("call" in lines[at] for at in range(now)), "calls stay"
        assert [word for word in read if word[0] == "a"] == [f"a{n}" for n in range(owner[now])], "answers stay"
        assert [word for word in read if word[0] == "q"] == [f"q{n}" for n in range(owner[now] + 1)]
        if now and owner[now] == owner[now - 1]:
            assert asked.startswith(f"{engine.asked[now - 1]} {lines[now - 1]}"), "within a question all is appended"
    generated = Counter((span.segment, at) for span in episode.spans for at in range(span.start, span.stop))
    assert sum(generated.values()) == sum(len(line.split()) for line in lines)
    assert set(generated.values()) == {1}
    examples = episode_examples(episode, window_turns=99)
    assert sum(sum(one.weights) for one in examples) == sum(generated.values()), "each learnt exactly once"


async def test_a_question_asked_later_through_a_branch_forgets_too():
    """As `quintain serve` goes on with a conversation."""
    words = Words(forgets=True)
    first, _ = await play(words, ["(a call look .", "(b yes .", "unused ."], 1)
    asked = replace(first, user_messages={2: message("user", "more")})
    engine = Scripted(words, "no .")
    agent = ModelAgent(engine, words, Sampling(max_tokens=9))
    state = Desk()
    state.reset(task(1))
    harness = Harness(Desk, budget=BUDGET)
    talk = await harness.branch(asked, 2, task(1), agent, state=state.snapshot(), name="-1")
    assert engine.asked == ["q0 > call look . dust > yes . more >"]
    assert [one.reason for one in talk.segments] == ["start", "new_user"]


ACTIONS = [
    Action(thought="I look.", calls=(Call("c0", "look", {}),)),
    Action(thought="So.", answer="yes"),
    Action(thought="Again.", calls=(Call("c1", "look", {}),)),
    Action(answer="no"),
]


@pytest.mark.parametrize(
    ("name", "tokens", "second"),
    [
        (
            "deepseek",
            DEEPSEEK,
            '<｜User｜>q0<｜Assistant｜></think>\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="look">\n'
            "</｜DSML｜invoke>\n</｜DSML｜function_calls><｜end▁of▁sentence｜>\n\n<function_results>\n<result>dust</result>\n"
            "</function_results>\n\n</think>yes<｜end▁of▁sentence｜><｜User｜>q1<｜Assistant｜><think>",
        ),
        (
            "hermes",
            QWEN,
            "<|im_start|>user\nq0<|im_end|>\n<|im_start|>assistant\n<tool_call>\n"
            '{"name": "look", "arguments": {}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\ndust\n'
            "</tool_response><|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n<|im_start|>user\nq1<|im_end|>\n"
            "<|im_start|>assistant\n",
        ),
    ],
)
async def test_published_formats_word_for_word_played_and_rendered_for_training(name, tokens, second):
    """The history before the second question, as `encoding_dsv32.py` and Qwen3's chat template write it."""
    dialect = get(name, tiny.tiny_codec(tokens))
    harness = Harness(Desk, budget=BUDGET)
    played = await harness.run(task(2), WrittenAgent(Script(ACTIONS), dialect))
    assert [one.reason for one in played.segments] == ["start", "new_user"]
    start = played.spans[2].start
    read = dialect.codec.decode(played.segments[1].ids[:start])
    assert read.endswith(second)
    assert "I look." not in read
    plain = await harness.run(task(2), Script(ACTIONS))
    rendered = episode_examples(plain, window_turns=9, dialect=dialect, toolset=Desk().toolset())
    expected = episode_examples(played, window_turns=9)
    assert [(one.ids, one.weights) for one in rendered] == [(one.ids, one.weights) for one in expected]
    assert len(expected) == 2
