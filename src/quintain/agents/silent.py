"""The silent agent: answers nothing. A world that lets it succeed has a broken verifier."""

from __future__ import annotations

from quintain.interface.messages import Action
from quintain.interface.view import View


class SilentAgent:
    """Answers the empty text at once."""

    name = "silent"
    version = 0

    async def act(self, view: View) -> Action:
        """The empty answer."""
        return Action(answer="")

    async def release(self, episode: str) -> None:
        """Nothing to forget."""
