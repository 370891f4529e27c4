"""Conversations with a trained agent: every user message is worked on in the world, where the last one left it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from quintain.agents.model import ModelAgent
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.harness.world import World
from quintain.interface.canonical import digest
from quintain.interface.dialects.base import Dialect
from quintain.interface.episode import Budget, Episode, Usage
from quintain.interface.generation import Engine, Sampling
from quintain.interface.messages import Action, Message, Turn, message
from quintain.interface.tasks import Task
from quintain.interface.view import Agent, View
from quintain.recipe.worlds import RecipeWorld
from quintain.serving.watched import Watched

REMEMBERED = 128
"""Conversations whose world is kept; an older one goes on from its texts alone."""

Said = tuple[str, str]
"""Role (`user` or `assistant`) and text."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation so far.

    Attributes:
        task: what its world was reset to.
        episode: all its turns.
        state: the world after them; None where a world keeps no exact snapshots.
    """

    task: Task
    episode: Episode
    state: bytes | None


class LastState(Journal):
    """Keeps the world's last state in memory, and nothing on disk."""

    def __init__(self) -> None:
        self.state: bytes | None = None

    def start(self, episode: Episode, budget: Budget, state: bytes | None) -> None:
        """Keeps the state after `reset`."""
        self.state = state

    def turn(
        self, episode: str, index: int, turn: Turn, usage: Usage, milestones: tuple[str, ...], state: bytes | None
    ) -> None:
        """Keeps the state after a turn; a turn that is copied into a branch has none."""
        self.state = self.state if state is None else state

    def user(self, episode: str, index: int, said: Message, state: bytes | None) -> None:
        """Keeps the state after a user's message."""
        self.state = state

    async def end(self, episode: Episode) -> None:
        """Nothing to write."""


class Told:
    """Gives an answer that a client says was given."""

    name = "told"
    version = 0

    def __init__(self, answer: str) -> None:
        self._answer = answer

    async def act(self, view: View) -> Action:
        """The answer."""
        return Action(answer=self._answer)

    async def release(self, episode: str) -> None:
        """Nothing to forget."""


class Conversations:
    """A trained agent at work for several people at once.

    Args:
        harness: plays without a verdict; its budget is that of one user message.
        sample: a task of the world; its setup is what every conversation starts from.
        engine: makes the tokens.
        dialect: of the model.
        sampling: where a request says nothing.
        concurrency: messages worked on at once.
        name: of the agent.
    """

    def __init__(
        self,
        harness: Harness,
        sample: Task,
        engine: Engine,
        dialect: Dialect,
        sampling: Sampling,
        concurrency: int,
        name: str,
    ) -> None:
        self.name = name
        self.sampling = sampling
        self._harness = harness
        self._sample = sample
        self._engine = engine
        self._dialect = dialect
        self._slots = asyncio.Semaphore(concurrency)
        self._numbers = count()
        self._known: OrderedDict[str, Talk] = OrderedDict()

    async def reply(
        self, said: Sequence[Said], system: str, sampling: Sampling, tell: Callable[[str], None]
    ) -> tuple[Episode, Usage]:
        """The agent's work on the last message.

        Args:
            said: what user and agent said in turn; the last is the user's.
            system: further instructions, told after the world's own.
            sampling: how tokens are drawn.
            tell: takes what the agent thinks, calls and observes, line by line.

        Returns:
            The conversation with the new turns, and what they used.
        """
        async with self._slots:
            talk = self._known.get(_key(system, said[:-1])) if len(said) > 1 else None
            if talk is None:
                for question, answer in zip(said[:-1:2], said[1::2], strict=True):
                    talk = await self._say(talk, question[1], system, Told(answer[1]))
            before = talk.episode.usage if talk is not None else Usage()
            agent = Watched(ModelAgent(self._engine, self._dialect, sampling, name=self.name), tell)
            talk = await self._say(talk, said[-1][1], system, agent)
        given = talk.episode.answer
        if talk.episode.outcome.kind in ("answered", "declined") and given is not None:
            self._remember(_key(system, (*said, ("assistant", given))), talk)
        return talk.episode, _since(before, talk.episode.usage)

    async def _say(self, talk: Talk | None, text: str, system: str, agent: Agent) -> Talk:
        harness, kept = copy(self._harness), LastState()
        harness.journal = kept
        harness.instructions = "\n\n".join(filter(None, [harness.instructions, system]))
        number = next(self._numbers)
        if talk is None:
            task = replace(self._sample, id=f"talk-{number}", prompt=text)
            episode = await harness.run(task, agent)
            return Talk(task, episode, kept.state)
        turns = len(talk.episode.turns)
        said = {**talk.episode.user_messages, turns: message("user", text)}
        harness.budget = _after(harness.budget, talk.episode.usage)
        before = replace(talk.episode, user_messages=said)
        episode = await harness.branch(before, turns, talk.task, agent, state=talk.state, name=f"-{number}")
        return Talk(talk.task, episode, kept.state)

    def _remember(self, key: str, talk: Talk) -> None:
        self._known[key] = talk
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def harness_of(place: RecipeWorld) -> Harness:
    """A harness of a world that a person talks to: it plays no user of its own, and nothing is judged."""
    silent = _without_its_own_user(place.world_class)
    return Harness(lambda: silent(**place.section.options), budget=place.budget, judge=False)


def _without_its_own_user(world: type[World]) -> type[World]:
    if world.user is World.user:
        return world
    return type(world.__name__, (world,), {"user": World.user, "__module__": world.__module__})


def _key(system: str, said: Sequence[Said]) -> str:
    # Clients may strip what they show, and send that back.
    return digest([system, *([role, text.strip()] for role, text in said)])


def _after(budget: Budget, used: Usage) -> Budget:
    """The budget of one more message: what earlier ones used is not counted again."""
    fields = ("turns", "tool_calls", "tokens", "format_errors")
    return replace(budget, **{name: getattr(budget, name) + getattr(used, name) for name in fields})


def _since(before: Usage, after: Usage) -> Usage:
    """What the last message used."""
    fields: dict[str, Any] = {
        name: getattr(after, name) - getattr(before, name)
        for name in ("turns", "tool_calls", "tokens", "context_tokens", "format_errors")
    }
    return Usage(seconds=after.seconds, **fields)
