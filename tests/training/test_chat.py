"""Chat beside trajectories: what of it carries loss, in which order it is learnt, and thoughts cut to their summary."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from quintain.interface.dialects import get
from quintain.interface.episode import Digests
from quintain.interface.example import Example
from quintain.interface.messages import Action, Call, message
from quintain.interface.sample import Sample
from quintain.training.chat import chat_examples, summarised
from quintain.training.sft import in_order, shuffled

THOUGHT = "Two areas are compared. Chad has 1284000. Mali has 1240192. So it is Chad."
REASONING = Sample(
    "r", "reasoning", "en", "c", messages=(message("user", "Chad or Mali?"), Action(THOUGHT, answer="Chad"))
)
PLAN = Sample(
    "p",
    "planning",
    "en",
    "c",
    messages=(message("user", "Chad or Mali?"), Action("I search.", calls=(Call("c0", "search", {"query": "Chad"}),))),
)
DIGESTS = Digests(toolset="sha256:11")


@pytest.mark.parametrize("dialect", ["lines", "hermes-compact"])
def test_loss_lies_on_what_the_agent_says_and_nowhere_else(codec, dialect):
    (one,) = chat_examples([REASONING], get(dialect, codec), DIGESTS)
    learnt = codec.decode([token for token, weight in zip(one.ids, one.weights, strict=True) if weight])
    context = codec.decode([token for token, weight in zip(one.ids, one.weights, strict=True) if not weight])
    assert THOUGHT in learnt
    assert "Chad or Mali?" in context
    assert "Chad or Mali?" not in learnt
    assert one.digests == DIGESTS


def test_plans_and_plain_texts_are_no_chat(codec):
    text = Sample("t", "general", "en", "c", text="Some text.")
    assert list(chat_examples([PLAN, text], get("lines", codec), DIGESTS)) == []


def test_summarised_chat_keeps_the_answer(codec):
    (one,) = chat_examples([REASONING], get("lines", codec), DIGESTS, summarise=True)
    text = codec.decode(one.ids)
    assert "Two areas are compared. So it is Chad." in text
    assert "1284000" not in text


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("", ""),
        ("Found it.", "Found it."),
        ("First this. Then that.", "First this. Then that."),
        ("One. Two. Three.", "One. Three."),
        ("It is 3.5 km. It is 4.5 km. So 8.", "It is 3.5 km. So 8."),
        ("先看面积。乍得一百二十八万。所以是乍得。", "先看面积。所以是乍得。"),
        ("Is it? No! So not.", "Is it? So not."),
    ],
)
def test_a_summary_is_the_first_and_the_last_sentence(text, short):
    assert summarised(text) == short


def examples(name, count):
    return [Example((number, 1), (0.0, 1.0), source=name) for number in range(count)]


def test_both_orders_learn_from_the_same_examples_in_as_many_steps():
    chat, own = shuffled(examples("chat", 7), 2, 1, 0), shuffled(examples("own", 9), 2, 2, 0)
    first, steps = in_order(chat, own, mixed=False, seed=3)
    mixed, as_many = in_order(chat, own, mixed=True, seed=3)
    assert steps == as_many == chat[1] + own[1]
    seen = {name: [one for step in range(steps) for one in run(step)] for name, run in (("a", first), ("b", mixed))}
    assert Counter(seen["a"]) == Counter(seen["b"])
    assert [one.source for one in seen["a"]] == ["chat"] * 7 + ["own"] * 18
    assert [one.source for one in seen["b"]] != [one.source for one in seen["a"]]
    assert max(len(mixed(step)) for step in range(steps)) - min(len(mixed(step)) for step in range(steps)) <= 1


def test_an_order_is_a_function_of_the_step():
    run, steps = in_order(shuffled(examples("c", 5), 2, 1, 0), shuffled(examples("o", 5), 2, 1, 0), mixed=True, seed=1)
    order = random.Random(0).sample(range(steps), steps)
    assert {step: run(step) for step in order} == {step: run(step) for step in range(steps)}
