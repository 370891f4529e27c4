"""What an agent may see of an episode: the seam between the decision side and the world side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from quintain.interface.episode import Budget
from quintain.interface.messages import Action, Call, Message, Observation, Turn
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


class Recorder(Protocol):
    """What a program's side may do to the episode it plays."""

    async def run(self, call: Call) -> Observation:
        """Runs a call in the world now; one at a time, in the order in which they are asked for."""
        ...

    def record(self, turn: Turn) -> None:
        """Adds a turn whose calls have been answered."""
        ...


@runtime_checkable
class Program(Protocol):
    """An agent that runs by itself: it decides when its calls run, and when it is done."""

    @property
    def name(self) -> str:
        """Name for records."""
        ...

    @property
    def version(self) -> int:
        """Version of its policy."""
        ...

    async def play(self, view: View, recorder: Recorder) -> None:
        """Plays a whole episode; returns once the program is done, its last answer recorded.

        Cancelled, or failing, it has ended the program and recorded the turns that were made.

        Raises:
            OutOfBudget: the program asked for more than its budget.
            ContextFull: no room is left in the model's context.
            InfraError: the engine broke.
        """
        ...

    async def release(self, episode: str) -> None:
        """The episode is over: forget its caches."""
        ...


Player = Agent | Program
"""Whoever plays an episode."""
