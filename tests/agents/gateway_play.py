"""A world, a stand-in for a model, and one episode of a program, for the tests of the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, ClassVar

from quintain import Budget, Harness, Task, Verdict, World, tool
from quintain.agents.gateway.agent import GatewayAgent
from quintain.agents.gateway.program import Command, Function
from quintain.harness.journal import Journal
from quintain.interface.episode import Episode
from quintain.interface.generation import Generation, Sampling
from quintain.interface.messages import Action, Call
from quintain.training.examples import episode_examples

TASK = Task("t", "till", "How much are two teas?", answer="6")


class Till(World):
    name = "till"
    instructions = "Sell."
    gates: ClassVar[tuple[asyncio.Event, asyncio.Event]]

    def reset(self, task: Task) -> None:
        self.sold: list[str] = []

    @tool
    def price(self, item: str) -> int:
        """Price of an item."""
        return {"tea": 3}[item]

    @tool
    def sell(self, item: str) -> list[str]:
        """Sells an item."""
        self.sold.append(item)
        return self.sold

    @tool
    async def slow(self, item: str) -> str:
        """Sells an item when it may."""
        begun, go_on = self.gates
        begun.set()
        await go_on.wait()
        self.sold.append(item)
        return "sold"

    def verify(self, task: Task, episode: Episode) -> Verdict:
        return Verdict(episode.answer == task.answer, reasons=tuple(self.sold))


class Scripted:
    """Stands in for a model: none that is small enough to be made here calls tools.

    Attributes:
        asked: the tokens of every request.
        made: what was generated.
    """

    version = 3

    def __init__(self, dialect: Any, *actions: Action | Exception) -> None:
        self._dialect = dialect
        self._actions: Iterator[Action | Exception] = iter(actions)
        self.asked: list[tuple[int, ...]] = []
        self.made: list[tuple[int, ...]] = []

    async def generate(self, ids, *, session, group, sampling):
        action = next(self._actions)
        if isinstance(action, Exception):
            raise action
        written = tuple(self._dialect.write(action))[: sampling.max_tokens]
        self.asked.append(tuple(ids))
        self.made.append(written)
        own = (-0.5,) * len(written)
        finish = "stop" if written[-1] in self._dialect.stop else "length"
        return Generation(written, own, own, finish, self.version)

    async def release(self, session):
        """Nothing to forget."""


def call(name: str, number: int = 0, **arguments: Any) -> Call:
    return Call(str(number), name, arguments)


def calls(*several: Call) -> Action:
    return Action(calls=several)


def say(text: str) -> Action:
    return Action(answer=text)


async def play(
    engine: Any, dialect: Any, program: Any, *, budget: Budget | None = None, journal: Journal | None = None
) -> Episode:
    """One episode of a program: an async function, or a command line."""
    if not isinstance(program, Command):
        program = Function(program)
    agent = GatewayAgent(engine, dialect, Sampling(max_tokens=128), program, "mine")
    try:
        return await Harness(Till, budget=budget, journal=journal, dialect=dialect.digest).run(TASK, agent)
    finally:
        await agent.close()


def assert_exact(episode: Episode, engine: Scripted) -> None:
    """Every prompt the engine saw is a prefix of a segment, and what it wrote lies behind it, learnt exactly once."""
    made = {}
    for span in episode.spans:
        if span is not None:
            ids = episode.segments[span.segment].ids
            made[ids[: span.start], ids[span.start : span.stop]] = None
    assert set(made) == set(zip(engine.asked, engine.made, strict=True))
    examples = episode_examples(episode, window_turns=100)
    learnt = [one.ids[n] for one in examples for n, weight in enumerate(one.weights) if weight == 1.0]
    trained = [
        turn.action.generation.ids
        for turn in episode.turns
        if turn.action.generation is not None and not turn.malformed
    ]
    assert sorted(learnt) == sorted(index for ids in trained for index in ids)
    assert {weight for one in examples for weight in one.weights} <= {0.0, 1.0}
