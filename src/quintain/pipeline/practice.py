"""Plays tasks with the model that is being trained, a journal for every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from quintain.harness.journal import Journal, Unfinished, read_journal
from quintain.harness.loop import Harness
from quintain.interface.episode import Episode
from quintain.interface.generation import Engine, Sampling
from quintain.interface.tasks import Task
from quintain.pipeline.programs import model_player
from quintain.pipeline.workshop import Policy, Workshop
from quintain.recipe import GRPOStage

if TYPE_CHECKING:
    from quintain.interface.view import Player


class Practice:
    """Where the policy plays, at temperature 1 and with nothing cut: the distribution it is trained on.

    Args:
        workshop: of the run.
        stage: the GRPO stage.
        policy: the model with its dialect.
        engine: generates with the model's weights.

    Attributes:
        close: frees the agent's means, in the event loop it played in; None where it has none.
    """

    def __init__(self, workshop: Workshop, stage: GRPOStage, policy: Policy, engine: Engine) -> None:
        self._workshop = workshop
        self._faults = stage.faults
        sampling = Sampling(max_tokens=stage.max_tokens)
        self._agent, self.close = model_player(workshop, stage, policy, engine, sampling)

    @contextmanager
    def session(self, folder: Path, number: int) -> Iterator[Session]:
        """Opens a step's journal; what an interrupted run left in it counts as played, or goes on.

        Args:
            folder: of the journal.
            number: of the step: the same task played in another step gets other seeds.
        """
        journal = Journal(folder)
        seed = self._workshop.recipe.seed * 1_000_003 + number
        harness = self._workshop.harness(journal, self._faults, seed=seed)
        try:
            yield Session(harness, self._agent, *read_journal(folder))
        finally:
            journal.close()

    def read(self, folder: Path) -> list[Episode]:
        """Episodes of an earlier step, by task and sample."""
        return sorted(read_journal(folder)[0], key=lambda episode: _order(episode.id))


class Session:
    """Rollouts into one journal.

    Attributes:
        tasks: played so far, by id.
    """

    def __init__(self, harness: Harness, agent: Player, done: list[Episode], unfinished: list[Unfinished]) -> None:
        self._harness = harness
        self._agent = agent
        self._done = {episode.id: episode for episode in done}
        self._unfinished = unfinished
        self.tasks: dict[str, Task] = {}

    async def play(self, tasks: Sequence[Task], samples: int) -> list[Episode]:
        """Samples 0 to `samples` of every task, by task and sample; what is played already is not played again."""
        self.tasks |= {task.id: task for task in tasks}
        episodes = await self._harness.rollout(
            tasks, self._agent, samples=samples, done=self._done.values(), unfinished=self._unfinished
        )
        self._done |= {episode.id: episode for episode in episodes}
        return episodes


def _order(identity: str) -> tuple[str, int]:
    task, _, sample = identity.rpartition("#")
    return task, int(sample)
