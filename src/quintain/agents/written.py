"""Gives an agent without tokens the tokens of a dialect, so that it can go on with an episode that has some."""

from __future__ import annotations

from dataclasses import replace

from quintain.agents.context import next_step
from quintain.interface.dialects.base import Dialect
from quintain.interface.generation import Generation
from quintain.interface.messages import Action
from quintain.interface.view import Agent, View


class WrittenAgent:
    """Another agent's actions as a perfect writer of the dialect would generate them.

    Their log-probabilities are 0: what it does is certain.

    Args:
        agent: who decides.
        dialect: how its actions look as tokens.
    """

    def __init__(self, agent: Agent, dialect: Dialect) -> None:
        self._agent = agent
        self._dialect = dialect

    @property
    def name(self) -> str:
        """Name of the agent."""
        return self._agent.name

    @property
    def version(self) -> int:
        """Version of its policy."""
        return self._agent.version

    async def act(self, view: View) -> Action:
        """The agent's action, with its tokens and those of the context before it."""
        action = await self._agent.act(view)
        ids = tuple(self._dialect.write(action))
        certain = (0.0,) * len(ids)
        made = Generation(ids, certain, certain, "stop", self.version)
        step = next_step(self._dialect, view)
        return replace(action, context=step.context, generation=made, discard=step.reason)

    async def release(self, episode: str) -> None:
        """The episode is over."""
        await self._agent.release(episode)
