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


def search_leaks(episodes: Sequence[Episode], tasks: Sequence[Task]) -> list[SearchLeak]:
    """Results that hold the prompt of the episode's own task, its id, or the canary of a sealed pool.

    A result that repeats what the agent asked (it may search for the whole question) is no leak.

    Args:
        episodes: of the evaluation.
        tasks: its tasks.
    """
    by_id = {task.id: task for task in tasks}
    texts = [one for episode in episodes if episode.task_id in by_id for one in _texts(episode, by_id[episode.task_id])]
    signs = {number: ("task id", one.task.id) for number, one in enumerate(texts) if _names_its_task(one)}
    items = (Item(str(number), one.text) for number, one in enumerate(texts))
    for found in Scanner(LeakIndex({"": tasks})).scan(items):
        number = int(found.where)
        if found.reason == "canary" or (found.task == texts[number].task.id and found.field == "prompt"):
            signs.setdefault(number, (found.reason, found.found))
    leaks: list[SearchLeak] = []
    repeated: set[str] = set()
    for number in sorted(signs):
        one, (reason, stretch) = texts[number], signs[number]
        if not one.tool:
            repeated.add(one.episode)
        elif one.episode not in repeated:
            leaks.append(SearchLeak(one.episode, one.task.id, one.turn, one.tool, reason, stretch, one.task.prompt))
    return leaks


@dataclass(frozen=True, slots=True)
class _Text:
    """What an agent asked (`tool` is empty) or a tool returned, in the order of the episode."""

    episode: str
    task: Task
    turn: int
    tool: str
    text: str


def _texts(episode: Episode, task: Task) -> Iterator[_Text]:
    for number, turn in enumerate(episode.turns):
        for call in turn.action.calls:
            yield from (_Text(episode.id, task, number, "", text) for text in texts_of(call.arguments))
        for seen in turn.observations:
            if seen.tool:
                yield _Text(episode.id, task, number, seen.tool, seen.content)


def _names_its_task(one: _Text) -> bool:
    return len(one.task.id) > LONGEST_ID_TO_IGNORE and one.task.id in one.text
