"""What an agent may see of an episode: the seam between the decision side and the world side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from quintain.interface.episode import Budget
from quintain.interface.messages import Action, Message, Turn
from quintain.interface.tools import Toolset


@dataclass(frozen=True, slots=True)
class View:
    """The episode so far, without setup, gold answer or state of the world.

    Attributes:
        episode: id of the episode; an engine's session.
        task_id: id of the task; with the agent, an engine's group.
        messages: what system and user said at the start.
        toolset: the tools.
        turns: turns so far.
        remaining: what is left of the budget.
        seed: seed of the episode.
        ids: token ids of the current segment, as actions reported them `[T]` (empty without tokens).
        user_messages: what the user said after an answer, keyed by the number of turns before it.
    """

    episode: str
    task_id: str
    messages: tuple[Message, ...]
    toolset: Toolset
    turns: tuple[Turn, ...]
    remaining: Budget
    seed: int = 0
    ids: tuple[int, ...] = ()
    user_messages: Mapping[int, Message] = field(default_factory=dict)


@runtime_checkable
class Agent(Protocol):
    """Decides. Knows nothing of the world but the view."""

    @property
    def name(self) -> str:
        """Name for records."""
        ...

    @property
    def version(self) -> int:
        """Version of its policy."""
        ...

    async def act(self, view: View) -> Action:
        """The next action."""
        ...

    async def release(self, episode: str) -> None:
        """The episode is over: forget its caches."""
        ...
