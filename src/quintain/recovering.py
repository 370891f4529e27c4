"""The recover stage: from the episodes of earlier stages, continuations that come to a right end."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from quintain.agents.written import WrittenAgent
from quintain.harness.journal import Journal, read_journal
from quintain.interface.dialects.base import Dialect
from quintain.interface.episode import Episode
from quintain.interface.view import Agent
from quintain.progress import progress
from quintain.recipe import RecoverStage, RolloutStage
from quintain.synthesis.recovery import Point, Recovered, go_on, points_of
from quintain.synthesis.rescuer import Rescuer
from quintain.workshop import Workshop


def recover(workshop: Workshop, stage: RecoverStage, folder: Path) -> dict[str, Any]:
    """Goes on with the teacher from where episodes of earlier stages went wrong; keeps what comes to a right end.

    Leaves `tries/`, a journal of every continuation, and `journal/` with those that were kept.
    """
    result = Recovered()
    for name in stage.data:
        _recover_stage(workshop, stage, name, folder, result)
    kept = sorted(result.kept, key=lambda episode: episode.id)
    shutil.rmtree(folder / "journal", ignore_errors=True)
    _keep(folder / "journal", kept, workshop)
    return {
        "episodes": len(kept),
        "successes": sum(episode.success for episode in kept),
        "tried": result.tried.total(),
        "kinds": result.by_kind(),
        "line": f"{len(kept)} of {result.tried.total()} continuations come to a right end",
    }


def _recover_stage(workshop: Workshop, stage: RecoverStage, name: str, folder: Path, result: Recovered) -> None:
    source = next(one for one in workshop.recipe.stages if one.name == name)
    assert isinstance(source, RolloutStage)
    episodes, _ = read_journal(workshop.folder / name / "journal")
    points = [point for episode in sorted(episodes, key=_id) for point in points_of(episode, stage.points)]
    tries = Journal(folder / "tries" / name)
    done = {episode.id: episode for episode in read_journal(tries.folder)[0]}
    waiting = [point for point in points if point.id not in done]
    for point in points:
        if point.id in done:
            result.add(point.kind, done[point.id])
    with progress(f"{stage.name}: {name}", total=len(waiting), unit="episodes") as advance:

        def count(point: Point, episode: Episode) -> None:
            result.add(point.kind, episode)
            advance(1, f"{len(result.kept)} kept")

        try:
            states = _states(workshop.folder / name / "journal", waiting)
            tasks = {task.id: task for task in workshop.pool(source.pool)}
            teacher = _teacher(workshop, source)
            asyncio.run(go_on(workshop.harness(tries, source.faults), waiting, states, tasks, teacher, count))
        finally:
            tries.close()


def _id(episode: Episode) -> str:
    return episode.id


def _states(folder: Path, points: Iterable[Point]) -> dict[tuple[str, int], bytes | None]:
    journal = Journal(folder)
    try:
        return journal.states_at((point.episode.id, point.turns) for point in points)
    finally:
        journal.close()


def _teacher(workshop: Workshop, source: RolloutStage) -> Callable[[Point], Agent]:
    """Who goes on; what a model began is continued in its tokens."""
    solution = workshop.world().solution
    tasks = {task.id: task for task in workshop.pool(source.pool)}
    dialect: Dialect | None = None if source.agent == "oracle" else workshop.policy(source.agent).dialect

    def teacher(point: Point) -> Agent:
        rescuer = Rescuer(solution, tasks, at=point.turns)
        return WrittenAgent(rescuer, dialect) if dialect and point.episode.segments else rescuer

    return teacher


def _keep(folder: Path, episodes: Iterable[Episode], workshop: Workshop) -> None:
    journal = Journal(folder)

    async def copy() -> None:
        for episode in episodes:
            await journal.copy(episode, workshop.recipe.budget.budget())

    try:
        asyncio.run(copy())
    finally:
        journal.close()
