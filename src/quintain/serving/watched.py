"""An agent whose turns are told, line by line, to whoever listens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from quintain.interface.episode import Episode
from quintain.interface.messages import Action, Observation
from quintain.interface.view import Agent, View


class Watched:
    """The same agent; what it thinks, calls and observes is told as it happens, its answer is not.

    Args:
        agent: who decides.
        tell: takes one line.
    """

    def __init__(self, agent: Agent, tell: Callable[[str], None]) -> None:
        self._agent = agent
        self._tell = tell
        self.name = agent.name

    @property
    def version(self) -> int:
        """Version of the agent's policy."""
        return self._agent.version

    async def act(self, view: View) -> Action:
        """Tells what the world answered, then what the agent does."""
        for one in view.turns[-1].observations if view.turns else ():
            self._say(observation_lines(one))
        action = await self._agent.act(view)
        self._say(action_lines(action))
        return action

    async def release(self, episode: str) -> None:
        """Frees the agent's caches."""
        await self._agent.release(episode)

    def _say(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._tell(line)


def action_lines(action: Action) -> Iterator[str]:
    """What an action is besides an answer."""
    if action.thought:
        yield f"thinks    {action.thought}"
    for call in action.calls:
        arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()
        )
        yield f"calls     {call.tool}({arguments})"
    if action.summary is not None:
        yield f"sums up   {action.summary}"
    if action.error is not None:
        yield f"malformed {action.text!r}"


def end_lines(episode: Episode) -> Iterator[str]:
    """The answer, and how the episode ended where that was not by one."""
    if episode.answer is not None:
        yield f"answers   {episode.answer}"
    if episode.outcome.kind not in ("answered", "declined"):
        yield f"ended     {episode.outcome} {episode.outcome.detail}".rstrip()


def observation_lines(one: Observation) -> Iterator[str]:
    """What came back, as one indented block."""
    first, *rest = one.content.splitlines() or [""]
    yield f"observes  {first}"
    for line in rest:
        yield f"          {line}"
