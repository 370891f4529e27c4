"""First tasks for tools that somebody else wrote: make this call, and say what it returns where that is known."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from quintain.commands.init.values import argument_sets
from quintain.doctor.world import Script
from quintain.harness.loop import Harness
from quintain.harness.world import World
from quintain.interface.canonical import digest
from quintain.interface.episode import Budget, Episode
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call, Observation
from quintain.interface.tasks import Task
from quintain.interface.tools import Tool
from quintain.worlds.answers import tokens, wrong

SETS = 12
"""Most sets of arguments made up for one tool."""
LEAVES = 3
"""Most questions about one result."""
CLOCK_SECONDS = 1.1
"""Time between the two calls: what tells the time changes by then."""
LONGEST = 40
"""Longest value that is asked for, in characters."""
DONE = "done"
"""The answer where only the call counts."""

NOT_TRIED = Observation("", "", "")
"""Stands for the result of a call that was not made."""

Made = tuple[Tool, dict[str, Any]]


def tool_tasks(factory: Callable[[], World], seed: int) -> list[Task]:
    """Tasks for every tool of a world, the tools in turn.

    Tools that are declared read-only are called, twice: where both results agree, tasks ask for a value of them. All
    other tools are left alone: their tasks ask for the call only.

    Args:
        factory: makes the world.
        seed: of what is made up.

    Raises:
        InputError: no two tasks can be made.
    """
    world = factory()
    rng = random.Random(seed)
    made = [(one, arguments) for one in world.toolset() for arguments in argument_sets(one, SETS, rng)]
    results = _results(factory, [(one, arguments) for one, arguments in made if one.read_only])
    by_tool: dict[str, list[Task]] = {one.name: [] for one in world.toolset()}
    for tool, arguments in made:
        by_tool[tool.name] += _tasks(world.name, tool, arguments, results.get(_key(tool, arguments), NOT_TRIED))
    kept = [tasks for tasks in by_tool.values() if any(one.template != "unstable" for one in tasks)]
    tasks = list(_in_turn([_without_errors(tasks) for tasks in kept or by_tool.values()]))
    if len(tasks) < 2:
        raise InputError(f"the tools of {world.name!r} allow fewer than two different calls; write your tasks by hand")
    return tasks


def _results(factory: Callable[[], World], made: list[Made]) -> dict[str, Observation | None]:
    """What the calls return; None where they return something else a little later."""
    if not made:
        return {}
    actions = [Action(calls=(Call("c", one.name, arguments),)) for one, arguments in made]
    budget = Budget(turns=len(made) + 1, tool_calls=len(made), seconds=3600)
    task = Task("probe", factory().name, "Try the tools.")
    harness = Harness(factory, budget=budget, judge=False)
    script = Script({"probe": (*actions, Action(answer=""))})

    async def twice() -> tuple[Episode, Episode]:
        first = await harness.run(task, script)
        await asyncio.sleep(CLOCK_SECONDS)
        return first, await harness.run(task, script)

    first, second = asyncio.run(twice())
    pairs = zip(made, _observed(first), _observed(second), strict=False)
    return {_key(*one): seen if seen.content == again.content else None for one, seen, again in pairs}


def _observed(episode: Episode) -> list[Observation]:
    return [seen for turn in episode.turns for seen in turn.observations]


def _key(tool: Tool, arguments: dict[str, Any]) -> str:
    return f"{tool.name} {json.dumps(arguments, sort_keys=True)}"


def _tasks(world: str, tool: Tool, arguments: dict[str, Any], seen: Observation | None) -> list[Task]:
    given = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    asked = f"Call the tool `{tool.name}`" + (f" with {given}." if given else ".")
    leaves = _answerable(asked, seen.value) if seen is not None and not seen.error else []
    if leaves:
        return [_task(world, tool, arguments, f"{asked} {question}", answer, "result") for question, answer in leaves]
    template = "unstable" if seen is None else "error" if seen.error else "call"
    return [_task(world, tool, arguments, f"{asked} Then answer: {DONE}", DONE, template)]


def _answerable(asked: str, value: Any) -> list[tuple[str, Any]]:
    """Questions about values of a result that the call does not give away, with their answers."""
    found = []
    for place, leaf in _leaves(value, ""):
        question = f"Answer with its `{place}`." if place else "Answer with what it returns."
        words = tokens(str(leaf))
        given_away = set(words) <= set(tokens(asked))
        if words and len(str(leaf)) <= LONGEST and not given_away and not wrong(leaf, str(leaf), f"{asked} {question}"):
            found.append((question, leaf))
    return found[:LEAVES]


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Texts and numbers of a result with their paths, those of lists aside."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _leaves(member, f"{place}.{name}" if place else name)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield place, value


def _task(world: str, tool: Tool, arguments: dict[str, Any], prompt: str, answer: Any, template: str) -> Task:
    calls = [{"tool": tool.name, "arguments": arguments}]
    name = f"{tool.name}-{digest([prompt])[-8:]}"
    cluster = digest([calls])[-8:]  # questions about one result share their content
    return Task(name, world, prompt, {"calls": calls, "plan": calls}, answer, cluster, template, ("lang:en",))


def _without_errors(tasks: list[Task]) -> list[Task]:
    """Calls that are known to fail teach little: they stay only where a tool has no other."""
    return [one for one in tasks if one.template != "error"] or tasks


def _in_turn(lists: list[list[Task]]) -> Iterator[Task]:
    for number in range(max(map(len, lists), default=0)):
        yield from (one[number] for one in lists if number < len(one))
