"""A turn drawn under a grammar parses, and its calls fit the tools; nothing a perfect agent writes is shut out."""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quintain.inference import constraint
from quintain.inference.constraint import Grammars
from quintain.inference.grammar import COMPACT, HERMES, turn_grammar, without
from quintain.inference.local import LocalEngine
from quintain.inference.sampler import Ask, draw
from quintain.interface.dialects import get
from quintain.interface.errors import InputError
from quintain.interface.generation import Sampling
from quintain.interface.messages import Action, Call
from quintain.interface.tools import Tool, Toolset
from tiny import tiny_codec, tiny_model, tiny_tokenizer

POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number"}}, "required": ["x"]}
TOOLS = Toolset(
    [
        Tool("search", "", {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}),
        Tool(
            "search_in",
            "",
            {
                "type": "object",
                "properties": {
                    "place": {"enum": ["north", "12", "a\nb"]},
                    "limit": {"type": ["integer", "null"], "default": None},
                    "exact": {"type": "boolean"},
                },
                "required": ["place"],
            },
        ),
        Tool(
            "draw",
            "",
            {
                "type": "object",
                "$defs": {"Point": POINT},
                "properties": {
                    "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
                    "title": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                "required": ["points"],
                "additionalProperties": False,
            },
        ),
        Tool("stop", "", {"type": "object", "properties": {}}),
    ]
)
DIALECTS = ("hermes", "hermes-compact", "lines")
LEADS = ("", "<call>", "hm\n<call>", "hm\n<answer>", "<tool_call>\n", "<think>\nhm\n</think>\n\n<tool_call>\n")
ENOUGH = 120
"""Tokens after which a walk takes whatever brings it to its end."""


@cache
def grammars() -> Grammars:
    return Grammars(tiny_tokenizer(), len(tiny_tokenizer()), get("lines", tiny_codec()).stop)


def walk(dialect: str, rng: random.Random) -> list[int]:
    """Random tokens of a turn, begun with one of the leads; ends itself when it may."""
    codec, stops = tiny_codec(), set(get(dialect, tiny_codec()).stop)
    turn, ids = grammars().begin(turn_grammar(dialect, TOOLS)), []
    closing = [codec.encode(text)[0] for text in ('"', "}", "]", "1", ">", "\n")]
    for token in codec.encode(rng.choice(LEADS)):
        if turn.allowed()[token]:
            turn.advance(token)
            ids.append(token)
    while len(ids) < 2 * ENOUGH:
        allowed = set(turn.allowed().nonzero()[:, 0].tolist())
        if allowed & stops and (len(ids) > ENOUGH or rng.random() < 0.2):
            return [*ids, *list(allowed & stops)[:1]]
        ends = [token for token in closing if token in allowed] if len(ids) > ENOUGH or rng.random() < 0.2 else []
        token = rng.choice(ends or sorted(allowed - stops))
        turn.advance(token)
        ids.append(token)
    return ids


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_turn_drawn_under_a_grammar_parses_and_its_calls_fit_the_tools(dialect: str, seed: int) -> None:
    ids = walk(dialect, random.Random(seed))
    stop = get(dialect, tiny_codec()).stop
    assume(ids[-1] in stop)
    action = get(dialect, tiny_codec()).parse(ids, cut=False, prefix="")
    assert action.error is None, tiny_codec().decode(ids)
    tools = {tool.name: tool for tool in TOOLS}
    assert [tools[call.tool].check_arguments(call.arguments) for call in action.calls] == [None] * len(action.calls)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "action",
    [
        Action(answer="Ouagadougou"),
        Action(thought="I look.\nTwice.", answer="no <b>tags</b>, 3 < 4"),
        Action(thought="I look.", calls=(Call("0", "search", {"query": "a < b"}),)),
        Action(calls=(Call("0", "search", {"query": "12"}), Call("1", "stop", {}))),
        Action(calls=(Call("0", "search", {"query": 'say "hi"\n[now] <cal'}),)),
        Action(calls=(Call("0", "search_in", {"place": "12", "limit": None, "exact": True}),)),
        Action(calls=(Call("0", "search_in", {"place": "north", "limit": -3}),)),
        Action(calls=(Call("0", "draw", {"points": [{"x": 1}, {"x": -2, "y": 0.5}], "title": "Two points"}),)),
    ],
)
def test_what_a_perfect_agent_writes_is_allowed(dialect: str, action: Action) -> None:
    turn = grammars().begin(turn_grammar(dialect, TOOLS))
    for token in get(dialect, tiny_codec()).write(action)[:-1]:
        assert turn.allowed()[token], tiny_codec().decode([token])
        turn.advance(token)
    assert turn.allowed()[get(dialect, tiny_codec()).stop[0]]


@pytest.mark.parametrize(
    "text", ["<call>fly", "<call>search\nplace", "<call>stop\nquery", "<call>search_in\nplace: south"]
)
def test_other_tools_arguments_and_values_are_shut_out(text: str) -> None:
    assert not follows(turn_grammar("lines", TOOLS), tiny_codec().encode(text))


@given(st.lists(st.sampled_from(["<", "</", "<c", "call>", "<call>", "answer>", "<an", "tool_", "think>", "x", "\n"])))
@pytest.mark.parametrize("markers", [COMPACT, HERMES])
def test_without_matches_exactly_the_texts_that_hold_no_marker(markers: tuple[str, ...], pieces: list[str]) -> None:
    text = "".join(pieces)
    assert bool(re.fullmatch(without(*markers), text)) == all(marker not in text for marker in markers)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({}, "options may be anything"),
        ({"type": "object"}, "options may have any keys"),
        ({"type": "array"}, "options[] may be anything"),
    ],
)
def test_a_value_that_no_grammar_keeps_well_formed_is_refused_by_name(schema: dict[str, Any], why: str) -> None:
    tool = Tool("set", "", {"type": "object", "properties": {"options": schema}})
    with pytest.raises(InputError, match=re.escape(f"tool 'set': {why}")):
        turn_grammar("lines", Toolset([tool]))


def test_a_dialect_without_a_grammar_is_refused() -> None:
    with pytest.raises(InputError, match="dialect 'deepseek' has no grammar; those that have: hermes"):
        turn_grammar("deepseek", TOOLS)


def test_a_missing_library_is_one_line_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraint, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'quintain\[grammar\]'"):
        Grammars(tiny_tokenizer(), 400, (2,))


def test_a_confined_draw_is_renormalised_and_its_other_logprob_is_the_models() -> None:
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    allowed = torch.tensor([False, True, False, True])
    asks = [Ask(0, Sampling(seed=seed), "s", 0, allowed if seed % 2 else None) for seed in range(400)]
    found = draw(logits, asks)
    total = sum(math.exp(value) for value in (3, 2, 1, 0))
    share = math.exp(2) / (math.exp(2) + 1)
    confined = [drawn for drawn, ask in zip(found, asks, strict=True) if ask.allowed is not None]
    assert {drawn.token for drawn in confined} == {1, 3}
    assert {drawn.token for drawn in found} == {0, 1, 2, 3}
    for drawn in confined:
        expected = share if drawn.token == 1 else 1 - share
        assert drawn.sampled_logprob == pytest.approx(math.log(expected), abs=1e-5)
        assert drawn.logprob == pytest.approx(logits[0, drawn.token].item() - math.log(total), abs=1e-5)


async def test_the_engine_keeps_some_sessions_within_a_grammar_and_leaves_others_free() -> None:
    dialect, grammar = get("lines", tiny_codec()), turn_grammar("lines", TOOLS)
    engine = LocalEngine(tiny_model(), grammars=grammars())
    prompt = tiny_codec().encode("Where is Chad?")

    def one(index: int) -> Any:
        sampling = Sampling(max_tokens=60, stop=dialect.stop, seed=index, grammar=grammar if index % 2 else "")
        return engine.generate(prompt, session=str(index), group="", sampling=sampling)

    made = await asyncio.gather(*(one(index) for index in range(8)))
    engine.close()
    assert [bool(generation.extras) for generation in made] == [False, True] * 4
    assert [follows(grammar, generation.ids) for generation in made] == [False, True] * 4


def follows(grammar: str, ids: Sequence[int]) -> bool:
    turn = grammars().begin(grammar)
    for token in ids:
        if not turn.allowed()[token]:
            return False
        turn.advance(token)
    return True


async def test_an_engine_without_grammars_refuses_one() -> None:
    engine = LocalEngine(tiny_model())
    with pytest.raises(InputError, match="the engine was given no grammars"):
        await engine.generate([5], session="s", group="", sampling=Sampling(grammar="start: /a/"))
    engine.close()
