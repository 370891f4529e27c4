"""An agent that lives elsewhere: its calls come in one by one, and each waits for what the world says to it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from quintain.interface.messages import Action, Call, Observation
from quintain.interface.view import View


class RemoteAgent:
    """Passes on the calls that `call` is given, until `leave`. One for each episode."""

    name = "remote"
    version = 0

    def __init__(self) -> None:
        self._coming: asyncio.Queue[Call | None] = asyncio.Queue()
        self._waiting: deque[asyncio.Future[Observation]] = deque()
        self._sent = 0

    async def call(self, tool: str, arguments: dict[str, Any]) -> Observation:
        """Makes a call and waits for its observation; of calls made meanwhile each gets its own."""
        seen: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        self._waiting.append(seen)
        self._coming.put_nowait(Call(f"r{self._sent}", tool, arguments))
        self._sent += 1
        return await seen

    def leave(self) -> None:
        """Ends the episode after the calls made so far."""
        self._coming.put_nowait(None)

    async def act(self, view: View) -> Action:
        """The next call.

        Raises:
            ConnectionError: the agent has left.
        """
        if view.turns:
            seen = self._waiting.popleft()
            if not seen.done():  # its caller has not given up
                seen.set_result(view.turns[-1].observations[0])
        coming = await self._coming.get()
        if coming is None:
            raise ConnectionError("the agent has left")
        return Action(calls=(coming,))

    async def release(self, episode: str) -> None:
        """Whoever still waits will get nothing."""
        for seen in self._waiting:
            seen.cancel()
