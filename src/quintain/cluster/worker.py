"""What runs on a node: an engine, its agent and the world side, with a journal for everything it plays."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from quintain.cluster.shards import WORKERS, unfinished_of
from quintain.harness.journal import Journal, Story
from quintain.harness.loop import Harness
from quintain.interface.generation import Engine, Load
from quintain.interface.lock import compare_specs
from quintain.interface.tasks import Task
from quintain.interface.view import Player, Program


@dataclass(frozen=True, slots=True)
class Session:
    """Where a set of episodes is played to.

    Attributes:
        folder: of their journal, on a filesystem that all nodes share.
        seed: with the task and the sample it fixes each episode's seed.
    """

    folder: Path
    seed: int


@dataclass(frozen=True, slots=True)
class Interface:
    """What a worker's episodes are made with.

    Attributes:
        digests: of toolset, dialect and world data.
        specs: the tools' specifications, to say in words what differs.
    """

    digests: dict[str, str]
    specs: Sequence[dict[str, Any]]

    def differences(self, other: Interface) -> list[str]:
        """How another differs, in words; empty if it is the same."""
        found = [str(one) for one in compare_specs(self.specs, other.specs)]
        names = sorted(name for name, _ in self.digests.items() ^ other.digests.items())
        return found or [f"{name} is another" for name in dict.fromkeys(names)]


class Kit(Protocol):
    """What a worker plays with; made on its node."""

    @property
    def engine(self) -> Engine:
        """Generates for the agent."""
        ...

    @property
    def agent(self) -> Player:
        """Decides."""
        ...

    @property
    def interface(self) -> Interface:
        """What its episodes are made with."""
        ...

    def harness(self, journal: Journal, seed: int) -> Harness:
        """The world side of a session."""
        ...

    def weights(self, data: bytes) -> Callable[[], object]:
        """What puts published weights into the engine's model."""
        ...


class Worker:
    """Plays the episodes it is given, those that others began included.

    Args:
        name: unique, also among the workers of earlier runs: it names the worker's journals.
        make: makes what it plays with.
    """

    def __init__(self, name: str, make: Callable[[], Kit]) -> None:
        self.name = name
        self._make = make
        self._sessions: dict[Path, Harness] = {}

    @cached_property
    def _kit(self) -> Kit:
        return self._make()

    async def hello(self) -> tuple[Interface, str, int]:
        """Makes what it plays with; returns what its episodes are made with, its host and its process."""
        # Not in this thread: what a recipe checks of a trained model's tools runs a loop of its own.
        kit = await asyncio.to_thread(lambda: self._kit)
        return kit.interface, platform.node(), os.getpid()

    async def load(self) -> Load:
        """How much its engine has to do."""
        return self._kit.engine.load()

    async def play(self, session: Session, task: Task, sample: int, story: Story | None) -> Load:
        """Plays an episode to its end, into the worker's own journal.

        Args:
            session: where to.
            task: the task.
            sample: tells the episodes of one task apart.
            story: what another worker recorded of it before it was lost; the episode goes on from there.
        """
        harness = self._harness(session).of(task)
        agent = self._kit.agent
        if story is None or isinstance(agent, Program):  # what a program had in mind went with its process
            await harness.run(task, agent, sample=sample)
        else:
            assert harness.journal is not None
            await harness.resume(unfinished_of(harness.journal.take(story)), task, agent)
        return await self.load()

    async def update(self, weights: bytes, version: int) -> int:
        """Takes published weights between two generations; returns their version."""
        return await self._kit.engine.update(self._kit.weights(weights), version=version)

    async def close(self, session: Session) -> None:
        """Closes the journal of a session that is over."""
        harness = self._sessions.pop(session.folder, None)
        if harness is not None and harness.journal is not None:
            harness.journal.close()

    def _harness(self, session: Session) -> Harness:
        if session.folder not in self._sessions:
            journal = Journal(session.folder / WORKERS / self.name)
            self._sessions[session.folder] = self._kit.harness(journal, session.seed)
        return self._sessions[session.folder]
