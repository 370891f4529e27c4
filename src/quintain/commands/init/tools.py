"""First tasks for tools that somebody else wrote: make this call, and say what it returns where that is known."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from quintain.commands.init.moments import tells_time
from quintain.commands.init.values import argument_sets
from quintain.doctor.world import Script
from quintain.harness.loop import Harness
from quintain.harness.world import World
from quintain.interface.canonical import digest
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call, Observation
from quintain.interface.tasks import Task
from quintain.interface.tools import Tool
from quintain.progress import say
from quintain.worlds.answers import tokens, wrong

SETS = 12
"""Most sets of arguments made up for one tool."""
LEAVES = 3
"""Most questions about one result."""
CLOCK_SECONDS = 1.1
"""Time between the two calls: what tells the time changes by then."""
LONGEST = 40
"""Longest value that is asked for, in characters."""
LONGEST_ERROR = 120
"""Characters shown of what a tool says that never works."""
DONE = "done"
"""The answer where only the call counts."""
FAILING = 3
"""Most tasks of a tool of which no call is known that succeeds."""

Calls = list[tuple[Tool, dict[str, Any]]]
Key = tuple[str, str]
"""A tool's name and arguments, as JSON."""


@dataclass(frozen=True)
class FirstTasks:
    """Tasks for tools, and what a person should know of how they were made, a line each."""

    tasks: list[Task]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tried:
    """What one call returned, and the same call a little later, after others."""

    first: Observation
    again: Observation

    @property
    def fails(self) -> bool:
        """Neither worked."""
        return bool(self.first.error and self.again.error)

    def values(self) -> Iterator[tuple[str, Any, bool]]:
        """Values of the result with their paths, and whether they came again."""
        if not self.first.error:
            again = {} if self.again.error else dict(_leaves(_structured(self.again.value)))
            for place, leaf in _leaves(_structured(self.first.value)):
                yield place, leaf, place in again and again[place] == leaf


def tool_tasks(factory: Callable[[], World], seed: int, may_call: Callable[[Tool], bool]) -> FirstTasks:
    """Tasks for every tool of a world, the tools in turn.

    Tools that may be called are called: all calls one after the other, and a little later the other way round in a
    fresh world. Where both results agree, whatever was called before, and do not tell the time, tasks ask for a value
    of them. The tasks of all other tools ask for the call only.

    Args:
        factory: makes the world.
        seed: of what is made up.
        may_call: whether a tool may be called to see what it returns.

    Raises:
        InputError: no two tasks can be made, or what the tools need can't be reached.
    """
    world = factory()
    rng = random.Random(seed)
    made = [(one, arguments) for one in world.toolset() for arguments in argument_sets(one, SETS, rng)]
    results = _results(factory, [(one, arguments) for one, arguments in made if may_call(one)])
    by_tool: dict[str, list[Task]] = {one.name: [] for one in world.toolset()}
    changing = {
        one.name: _changing([tried for (name, _), tried in results.items() if name == one.name])
        for one in world.toolset()
    }
    for tool, arguments in made:
        tried = results.get(_key(tool, arguments))
        by_tool[tool.name] += _tasks(world.name, tool, arguments, tried, changing[tool.name])
    kept = [tasks for tasks in by_tool.values() if any(one.template != "unstable" for one in tasks)]
    tasks = list(_in_turn([_without_errors(tasks) for tasks in kept or by_tool.values()]))
    if len(tasks) < 2:
        raise InputError(f"the tools of {world.name!r} allow fewer than two different calls; write your tasks by hand")
    return FirstTasks(tasks, (*_failures(results), *_changes(changing)))


def _changes(changing: dict[str, list[str]]) -> Iterator[str]:
    found = {tool: ", ".join(place or "what it returns" for place in places) for tool, places in changing.items()}
    named = "; ".join(f"{tool}: {places}" for tool, places in found.items() if places)
    if named:
        yield f"not asked for, as it changes with time or with what was called before: {named}"


def _failures(results: dict[Key, Tried]) -> Iterator[str]:
    """A line for the tools of which no call works: made-up arguments do not fit, or the service is not there."""
    working = {name for (name, _), tried in results.items() if not tried.fails}
    said = {name: tried.first.content for (name, _), tried in results.items() if name not in working}
    if said:
        named = "; ".join(f"{name}: {' '.join(content.split())[:LONGEST_ERROR]}" for name, content in said.items())
        yield f"no call succeeded, so the tasks only name calls that fail: {named}"


def _results(factory: Callable[[], World], made: Calls) -> dict[Key, Tried]:
    """What the calls return, first in order and then in reverse."""
    if not made:
        return {}
    names = ", ".join(dict.fromkeys(one.name for one, _ in made))
    say(f"calling {names}, to see what they return ({len(made)} calls, twice) ...")
    harness = Harness(factory, budget=Budget(turns=len(made) + 1, tool_calls=len(made), seconds=3600), judge=False)

    async def play(order: Calls) -> dict[Key, Observation]:
        actions = [Action(calls=(Call("c", one.name, arguments),)) for one, arguments in order]
        script = Script({"probe": (*actions, Action(answer=""))})
        episode = await harness.run(Task("probe", harness.world_name, "Try the tools."), script)
        if episode.outcome.kind == "infra_error":
            raise InputError(f"the tools can't be tried: {episode.outcome.detail}")
        seen = [one for turn in episode.turns for one in turn.observations]
        return {_key(*call): one for call, one in zip(order, seen, strict=False)}

    async def twice() -> tuple[dict[Key, Observation], dict[Key, Observation]]:
        first = await play(made)
        await asyncio.sleep(CLOCK_SECONDS)
        return first, await play(made[::-1])

    first, again = asyncio.run(twice())
    return {key: Tried(seen, again[key]) for key, seen in first.items() if key in again}


def _key(tool: Tool, arguments: dict[str, Any]) -> Key:
    return tool.name, json.dumps(arguments, sort_keys=True)


def _telling(leaf: Any) -> bool:
    return tells_time(leaf, datetime.now(UTC))


def _changing(tried: list[Tried]) -> list[str]:
    """Places of a tool's results whose value did not come again, or that tell the time in most results."""
    found: dict[str, list[Any]] = {}
    changed = set()
    for place, leaf, came_again in chain.from_iterable(one.values() for one in tried):
        found.setdefault(place, []).append(leaf)
        if not came_again:
            changed.add(place)
    telling = {place for place, leaves in found.items() if 2 * sum(map(_telling, leaves)) > len(leaves)}
    return [place for place in found if place in changed | telling]


def _tasks(world: str, tool: Tool, arguments: dict[str, Any], tried: Tried | None, changing: list[str]) -> list[Task]:
    given = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    asked = f"Call the tool `{tool.name}`" + (f" with {given}." if given else ".")
    values = tried.values() if tried else ()
    lasting = [(place, leaf) for place, leaf, _ in values if place not in changing and not _telling(leaf)]
    questions = _answerable(asked, lasting)
    if questions:
        return [
            _task(world, tool, arguments, f"{asked} {question}", answer, "result") for question, answer in questions
        ]
    template = "error" if tried and tried.fails else "unstable" if changing and tool.read_only else "call"
    return [_task(world, tool, arguments, f"{asked} Then answer: {DONE}", DONE, template)]


def _answerable(asked: str, values: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Questions about values of a result that the call does not give away, with their answers."""
    found = []
    for place, leaf in values:
        question = f"Answer with its `{place}`." if place else "Answer with what it returns."
        words = tokens(str(leaf))
        given_away = set(words) <= set(tokens(asked))
        if words and len(str(leaf)) <= LONGEST and not given_away and not wrong(leaf, str(leaf), f"{asked} {question}"):
            found.append((question, leaf))
    return found[:LEAVES]


def _structured(value: Any) -> Any:
    """A text that holds a JSON object as that object: many MCP servers declare no schema and return such texts."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Texts and numbers of a result with their paths, those of lists aside; true or false if it is nothing else."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _leaves(member, f"{place}.{name}" if place else name)
    elif isinstance(value, bool):
        if not place:
            yield place, json.dumps(value)
    elif isinstance(value, str | int | float):
        yield place, value


def _task(world: str, tool: Tool, arguments: dict[str, Any], prompt: str, answer: Any, template: str) -> Task:
    calls = [{"tool": tool.name, "arguments": arguments}]
    name = f"{tool.name}-{digest([prompt])[-8:]}"
    cluster = digest([calls])[-8:]  # questions about one result share their content
    return Task(name, world, prompt, {"calls": calls, "plan": calls}, answer, cluster, template, ("lang:en",))


def _without_errors(tasks: list[Task]) -> list[Task]:
    """Calls that are known to fail teach little: some stay only where a tool has no other."""
    return [one for one in tasks if one.template != "error"] or tasks[:FAILING]


def _in_turn(lists: list[list[Task]]) -> Iterator[Task]:
    for number in range(max(map(len, lists), default=0)):
        yield from (one[number] for one in lists if number < len(one))
