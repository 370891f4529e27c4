"""Plays tasks with the model that is being trained, a journal for every step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from quintain.cluster.fleet import Fleet, Rollout
from quintain.cluster.shards import gather
from quintain.harness.journal import Journal, Unfinished, read_journal
from quintain.interface.episode import Episode
from quintain.interface.generation import Engine
from quintain.interface.tasks import Task
from quintain.interface.view import Player
from quintain.pipeline.fleets import Published, sampling_of
from quintain.pipeline.programs import Close, model_player
from quintain.pipeline.workshop import Policy, Workshop
from quintain.recipe import GRPOStage


class Practice:
    """Where the policy plays, at temperature 1 and with nothing cut: the distribution it is trained on.

    Args:
        workshop: of the run.
        stage: the GRPO stage.
        policy: the model with its dialect.
        engine: generates with the model's weights, here or on the recipe's cluster.

    Attributes:
        close: frees the agent's means, in the event loop it played in; None where it has none.
    """

    def __init__(self, workshop: Workshop, stage: GRPOStage, policy: Policy, engine: Engine | Published) -> None:
        self._workshop = workshop
        self._faults = stage.faults
        self._player: Player | Fleet
        self.close: Close | None = None
        if isinstance(engine, Published):
            self._player = engine.fleet
        else:
            self._player, self.close = model_player(workshop, stage, policy, engine, sampling_of(stage))

    @asynccontextmanager
    async def session(self, folder: Path, number: int) -> AsyncIterator[Session]:
        """Opens a step's journal; what an interrupted run left in it counts as played, or goes on.

        Args:
            folder: of the journal.
            number: of the step: the same task played in another step gets other seeds.
        """
        gather(folder)
        journal = Journal(folder)
        seed = self._workshop.recipe.seed * 1_000_003 + number
        try:
            async with self._rollouts(journal, seed) as rollout:
                yield Session(rollout, *read_journal(folder))
        finally:
            journal.close()

    @asynccontextmanager
    async def _rollouts(self, journal: Journal, seed: int) -> AsyncIterator[Rollout]:
        if isinstance(self._player, Fleet):
            async with self._player.session(journal, seed) as rollout:
                yield rollout
        else:
            harness = self._workshop.harness(journal, self._faults, seed=seed)
            yield partial(harness.rollout, agent=self._player)

    def read(self, folder: Path) -> list[Episode]:
        """Episodes of an earlier step, by task and sample."""
        return sorted(read_journal(folder)[0], key=lambda episode: _order(episode.id))


class Session:
    """Rollouts into one journal.

    Attributes:
        tasks: played so far, by id.
    """

    def __init__(self, rollout: Rollout, done: list[Episode], unfinished: list[Unfinished]) -> None:
        self._rollout = rollout
        self._done = {episode.id: episode for episode in done}
        self._unfinished = unfinished
        self.tasks: dict[str, Task] = {}

    async def play(self, tasks: Sequence[Task], samples: int) -> list[Episode]:
        """Samples 0 to `samples` of every task, by task and sample; what is played already is not played again."""
        self.tasks |= {task.id: task for task in tasks}
        episodes = await self._rollout(
            tasks=tasks, samples=samples, done=self._done.values(), unfinished=self._unfinished
        )
        self._done |= {episode.id: episode for episode in episodes}
        return episodes


def _order(identity: str) -> tuple[str, int]:
    task, _, sample = identity.rpartition("#")
    return task, int(sample)
