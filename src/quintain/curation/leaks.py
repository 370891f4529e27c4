"""Leaks at search time: a tool's result that holds the task itself, as a page about the benchmark would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quintain.curation.contamination import Item, Scanner
from quintain.curation.items import texts_of
from quintain.curation.leak_index import LeakIndex
from quintain.interface.episode import Episode
from quintain.interface.tasks import Task

LONGEST_ID_TO_IGNORE = 11
"""Ids of up to so many characters may stand in a page by chance."""


@dataclass(frozen=True, slots=True)
class SearchLeak:
    """A result that gave an episode's task away.

    Attributes:
        episode: its id.
        task: its task.
        turn: from 0.
        tool: whose result it was.
        reason: `canary`, `task id`, or the sign of the scan.
        found: the stretch of the result.
        original: the task's text.
    """

    episode: str
    task: str
    turn: int
    tool: str
    reason: str
    found: str
    original: str


def search_leaks(episodes: Sequence[Episode], tasks: Sequence[Task], canary: str = "") -> list[SearchLeak]:
    """Results that hold the prompt of the episode's own task, its id, or the pool's canary.

    A result that repeats what the call asked (an agent may search for the whole question) is no leak.

    Args:
        episodes: of the evaluation.
        tasks: its tasks.
        canary: of the pool; empty if it has none.
    """
    by_id = {task.id: task for task in tasks}
    scanner = Scanner(LeakIndex({"": tasks}))
    found: list[SearchLeak] = []
    for episode in episodes:
        if (task := by_id.get(episode.task_id)) is not None:
            found += _of_episode(episode, task, scanner, canary)
    return found


def _of_episode(episode: Episode, task: Task, scanner: Scanner, canary: str) -> Iterator[SearchLeak]:
    asked: list[str] = []
    for number, turn in enumerate(episode.turns):
        asked += [text for call in turn.action.calls for text in texts_of(call.arguments)]
        for seen in turn.observations:
            signs = _signs(seen.content, task, scanner, canary)
            echoes = {reason for text in asked for reason, _ in _signs(text, task, scanner, canary)}
            for reason, stretch in signs:
                if not echoes:
                    yield SearchLeak(episode.id, task.id, number, seen.tool, reason, stretch, task.prompt)


def _signs(text: str, task: Task, scanner: Scanner, canary: str) -> list[tuple[str, str]]:
    if canary and canary in text:
        return [("canary", canary)]
    if len(task.id) > LONGEST_ID_TO_IGNORE and task.id in text:
        return [("task id", task.id)]
    findings = scanner.scan([Item("", text)])
    return [(str(one.reason), one.found) for one in findings if one.task == task.id and one.field == "prompt"][:1]
