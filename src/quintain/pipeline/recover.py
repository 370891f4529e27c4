"""The recover stage: from the episodes of earlier stages, continuations that come to a right end."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from quintain.agents.written import WrittenAgent
from quintain.harness.journal import Journal, read_journal
from quintain.interface.dialects.base import Dialect
from quintain.interface.episode import Episode
from quintain.interface.reading import JOURNAL, read_episodes
from quintain.interface.tasks import Task
from quintain.interface.view import Agent
from quintain.pipeline.fas import CACHE, teacher_of
from quintain.pipeline.run import write_text
from quintain.pipeline.workshop import Workshop
from quintain.progress import progress, say
from quintain.recipe import RecoverStage, RolloutStage
from quintain.synthesis.corrections import homeless_corrections, read_corrections
from quintain.synthesis.recovery import Point, Recovered, go_on, points_of
from quintain.synthesis.repair import Malformed, before_too_many_calls, malformed_turns
from quintain.synthesis.rescuer import Rescuer
from quintain.synthesis.teacher import Teacher
from quintain.synthesis.tutor import Tutor


def recover(workshop: Workshop, stage: RecoverStage, folder: Path) -> dict[str, Any]:
    """Goes on with the teacher from where episodes of earlier stages went wrong; keeps what comes to a right end.

    Leaves `tries/`, a journal of every continuation, `journal/` with those that were kept, and `malformed.jsonl` with
    every malformed turn and what it should have been. Stages may have episodes of the same ids: where it continues
    several, what is kept of each has the stage's name before its id.
    """
    unused = _unused_corrections(workshop, stage)
    result = Recovered()
    tools = cache(workshop.toolset)
    malformed: list[Malformed] = []
    for name in stage.data:
        episodes = sorted(read_journal(workshop.folder / name / "journal")[0], key=lambda episode: episode.id)
        found = [
            one for episode in episodes for one in malformed_turns(episode, tools(episode.world), stage.most_calls)
        ]
        malformed += found
        points = _points(workshop, stage, name, episodes, found)
        own = Recovered()
        _go_on(workshop, stage, name, points, folder / "tries" / name, own)
        result.join(own, f"{name}/" if len(stage.data) > 1 else "")
    write_text(folder / "malformed.jsonl", "".join(json.dumps(one.to_json()) + "\n" for one in malformed))
    shutil.rmtree(folder / "journal", ignore_errors=True)
    _keep(folder / "journal", sorted(result.kept, key=lambda episode: episode.id), workshop)
    return {
        "episodes": len(result.kept),
        "successes": sum(episode.success for episode in result.kept),
        "tried": result.tried.total(),
        "kinds": result.by_kind(),
        "malformed": _counts(malformed),
        "unused_corrections": unused,
        "line": f"{len(result.kept)} of {result.tried.total()} continuations come to a right end",
    }


def _unused_corrections(workshop: Workshop, stage: RecoverStage) -> int:
    """How many lines correct an episode that no stage of `data` has, which is said."""
    if stage.corrections is None:
        return 0
    homes: dict[str, list[str]] = {}
    for name in stage.data:
        for one in read_episodes(workshop.folder / name / JOURNAL):
            homes.setdefault(one.story.id, []).append(name)
    found = homeless_corrections(workshop.home / stage.corrections, homes)
    if found:
        say(f"corrections not used, as {', '.join(stage.data)} have no such episode: {len(found)}, first {found[0]}")
    return len(found)


def _points(
    workshop: Workshop, stage: RecoverStage, name: str, episodes: Sequence[Episode], malformed: Sequence[Malformed]
) -> list[Point]:
    """Where to go on from: after trouble, with the repaired call where there is one; before a turn of too many calls,
    with those it may hold; and what people rewrote."""
    repaired = {(one.episode, one.turn): one.repaired for one in malformed}
    points = [
        replace(point, first=repaired.get((point.episode.id, point.turns - 1)))
        for episode in episodes
        for point in points_of(episode, stage.points)
    ]
    points += before_too_many_calls(episodes, malformed)
    if stage.corrections is not None:
        points += read_corrections(workshop.home / stage.corrections, episodes, workshop.toolset, name)
    return points


def _go_on(
    workshop: Workshop, stage: RecoverStage, name: str, points: Sequence[Point], folder: Path, result: Recovered
) -> None:
    """Plays the continuations of one earlier stage's episodes that are not played yet."""
    source = next(one for one in workshop.recipe.stages if one.name == name)
    assert isinstance(source, RolloutStage)
    tries = Journal(folder)
    done = {episode.id: episode for episode in read_journal(folder)[0]}
    for point in points:
        if point.id in done:
            result.add(point.kind, done[point.id])
    waiting = [point for point in points if point.id not in done]
    with progress(f"{stage.name}: {name}", total=len(waiting), unit="episodes") as advance:

        def count(point: Point, episode: Episode) -> None:
            result.add(point.kind, episode)
            advance(1, f"{len(result.kept)} kept")

        # outside of the event loop: a model loaded here first has its tools checked, in an event loop of their own
        dialect = None if source.agent == "oracle" else workshop.policy(source.agent).dialect

        async def play() -> None:
            states = _states(workshop.folder / name / "journal", waiting)
            tasks = {task.id: task for task in workshop.pool(source.pool)}
            harness = workshop.harness(tries, source.faults)
            cache, seed = workshop.folder / CACHE, workshop.recipe.seed
            async with teacher_of(stage.teacher, workshop.home, cache, seed) as teacher:
                who = _who_goes_on(workshop, tasks, dialect, teacher if stage.teacher.endpoint else None)
                await go_on(harness, waiting, states, tasks, who, count)

        try:
            asyncio.run(play())
        finally:
            tries.close()


def _states(folder: Path, points: Iterable[Point]) -> dict[tuple[str, int], bytes | None]:
    journal = Journal(folder)
    try:
        return journal.states_at((point.episode.id, point.turns) for point in points)
    finally:
        journal.close()


def _who_goes_on(
    workshop: Workshop, tasks: Mapping[str, Task], dialect: Dialect | None, teacher: Teacher | None
) -> Callable[[Point], Agent]:
    """The agent that continues a point; what a model began is continued in its tokens, by its dialect."""

    def agent(point: Point) -> Agent:
        who: Agent = Rescuer(workshop.solution, tasks, point.first, point.turns)
        if teacher is not None:
            who = Tutor(teacher, point.first, point.turns)
        return WrittenAgent(who, dialect) if dialect else who

    return agent


def _keep(folder: Path, episodes: Iterable[Episode], workshop: Workshop) -> None:
    journal = Journal(folder)

    async def copy() -> None:
        for episode in episodes:
            await journal.copy(episode, workshop.worlds[episode.world].budget)

    try:
        asyncio.run(copy())
    finally:
        journal.close()


def _counts(malformed: Sequence[Malformed]) -> dict[str, dict[str, int]]:
    """Malformed turns found and repaired, by kind."""
    found = Counter(one.kind for one in malformed)
    repaired = Counter(one.kind for one in malformed if one.repaired)
    return {kind: {"found": count, "repaired": repaired[kind]} for kind, count in sorted(found.items())}
