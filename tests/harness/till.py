"""A small world for the harness's own tests, with tools that misbehave on request."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

from quintain import Task, Verdict, World, tool
from quintain.interface.errors import InfraError
from quintain.interface.messages import Action, Call
from quintain.interface.view import View


class Till(World):
    """Prices, a basket, and every way in which a tool can go wrong."""

    name = "till"
    instructions = "You work at a till."
    infra_failures = 0
    """How many of the next calls of `flaky` raise InfraError (class-wide: it outlives a replaced instance)."""

    def reset(self, task: Task) -> None:
        self.prices = task.setup["prices"]
        self.basket: list[str] = []

    @tool(read_only=True)
    def price(self, item: str) -> int:
        """Price of one item, in cents.

        Args:
            item: exact name of the item.
        """
        return self.prices[item]

    @tool
    def put(self, item: str) -> int:
        """Puts an item into the basket and says how many are in it."""
        self.basket.append(item)
        return len(self.basket)

    @tool
    def hang(self, seconds: float) -> str:
        """Changes the basket, then hangs."""
        self.basket.append("half done")
        time.sleep(seconds)
        return "done"

    @tool
    async def wait(self, seconds: float) -> str:
        """Hangs without blocking."""
        await asyncio.sleep(seconds)
        return "done"

    @tool
    def wrong_type(self) -> int:
        """Returns text where a number is promised."""
        return "three"  # type: ignore[return-value]

    @tool
    def raw(self) -> dict:
        """Returns bytes inside."""
        return {"data": b"\xff"}

    @tool
    def flood(self, megabytes: int) -> str:
        """Returns a lot."""
        return "x" * (megabytes * 1_000_000)

    @tool
    def leave(self) -> str:
        """Tries to end the whole program."""
        raise SystemExit(3)

    @tool
    def flaky(self) -> str:
        """Breaks as infrastructure does."""
        self.basket.append("flaky")
        if Till.infra_failures > 0:
            Till.infra_failures -= 1
            raise InfraError("the till's cable fell out")
        return f"{len(self.basket)} in the basket"

    @tool(read_only=True)
    def meet(self) -> str:
        """Returns once two calls are inside at the same time."""
        self._barrier().wait(timeout=5)
        return "met"

    @classmethod
    def _barrier(cls) -> threading.Barrier:
        if not hasattr(cls, "barrier"):
            cls.barrier = threading.Barrier(2)
        return cls.barrier

    def milestones(self, task: Task) -> dict[str, bool]:
        return {"filled": len(self.basket) > 0}

    def verify(self, task: Task, episode) -> Verdict:
        return Verdict(success=episode.answer == task.answer)


class Script:
    """An agent that plays a fixed list of actions, picked by the number of turns so far."""

    name = "script"
    version = 0

    def __init__(self, actions: Sequence[Action | Callable[[View], Action]]) -> None:
        self.actions = actions
        self.views: list[View] = []

    async def act(self, view: View) -> Action:
        self.views.append(view)
        action = self.actions[min(len(view.turns), len(self.actions) - 1)]
        return action(view) if callable(action) else action

    async def release(self, episode: str) -> None:
        return None


def call(tool_name: str, _id: str = "c", **arguments: object) -> Call:
    return Call(_id, tool_name, arguments)


def do(tool_name: str, **arguments: object) -> Action:
    return Action(calls=(call(tool_name, **arguments),))


def task(identity: str = "t", answer: str = "3") -> Task:
    return Task(id=identity, world="till", prompt="How much is tea?", setup={"prices": {"tea": 3}}, answer=answer)


ANSWER = Action(answer="3")
