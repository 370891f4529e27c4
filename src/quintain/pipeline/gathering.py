"""The groups of each GRPO step, played in the background: `ahead` steps before the trainer asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from quintain.harness.background import Background
from quintain.interface.episode import Episode
from quintain.openmp import end_team
from quintain.pipeline.practice import Practice, Session
from quintain.training.advantage import Group, form_groups
from quintain.training.curriculum import Curriculum, Outcomes
from quintain.training.grpo_config import GRPOConfig
from quintain.training.reward import reward

T = TypeVar("T")


class Gathering:
    """Plays the groups of every step, and chooses their tasks by what is known by then.

    The groups of step n are chosen by the outcomes up to step n - 1 - `ahead`, whether or not later ones happen to be
    known already: a resumed run then draws the tasks that its journals hold.

    Args:
        practice: where the policy plays.
        curriculum: draws the tasks.
        config: of the stage.
        folder: of the stage; a journal per step in its `rollouts`.
    """

    def __init__(self, practice: Practice, curriculum: Curriculum, config: GRPOConfig, folder: Path) -> None:
        self._background = Background("quintain-rollouts")
        self._practice = practice
        self._curriculum = curriculum
        self._config = config
        self._folder = folder
        self._outcomes: dict[int, Outcomes] = {}
        self._seen = 0
        self._begun: dict[int, Future[list[Group]]] = {}

    def close(self) -> None:
        """Ends the episodes under way; their journals keep what is finished."""
        self._background.stop(self._practice.close)

    def observe(self, step: int, outcomes: Outcomes) -> None:
        """Takes the outcomes of a step, for the steps that may know them."""
        self._outcomes[step] = outcomes

    def take(self, step: int) -> list[Group]:
        """Waits for the groups of a step, having begun those of the steps ahead that the run can reach."""
        for one in range(step, min(step + self._config.ahead, self._config.steps) + 1):
            if one not in self._begun:
                self._begun[one] = self._background.start(self._play(one))
        groups = _wait(self._begun[step])
        del self._begun[step]  # not before: the next step's episodes wait for these
        return groups

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for something done where the episodes are played."""
        return _wait(self._background.start(work))

    def groups(self, episodes: list[Episode]) -> list[Group]:
        """Groups of played episodes, with their rewards."""
        return form_groups(episodes, lambda episode: reward(episode, self._config.reward))

    async def _play(self, step: int) -> list[Group]:
        """Plays a step's groups: short ones are topped up, and others drawn for those that teach nothing."""
        await self._after(step - 1)
        config = self._config
        for known in range(self._seen + 1, step - config.ahead):
            self._curriculum.observe(self._outcomes.pop(known))
            self._seen = known
        async with self._practice.session(self._folder / "rollouts" / f"step-{step:06d}", step) as session:
            groups: list[Group] = []
            for draw in range(1 + config.refill):
                missing = config.groups - sum(group.kept for group in groups)
                if not missing or (groups and not any(group.episodes for group in groups)):
                    break
                tasks = self._curriculum.choose(missing, f"{step}.{draw}", {group.task_id for group in groups})
                played = self.groups(await session.play(tasks, config.group_size))
                if any(group.episodes for group in played):
                    played = [await self._topped_up(session, group) for group in played]
                groups += played
        return groups

    async def _after(self, step: int) -> None:
        """Waits for the episodes of the step before: two at once would share the engine and both be late."""
        if step in self._begun:
            await asyncio.wrap_future(self._begun[step])

    async def _topped_up(self, session: Session, group: Group) -> Group:
        if not group.short:
            return group
        task = session.tasks[group.task_id]
        return self.groups(await session.play([task], self._config.group_size + group.short))[0]


def _wait(work: Future[T]) -> T:
    end_team()  # this thread waits now: its helper threads must not slow those of the engine
    return work.result()
