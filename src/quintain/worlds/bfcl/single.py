"""The world `bfcl-single`: BFCL v4's single-turn categories with Python functions, 1,240 tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset
from quintain.worlds.bfcl.matching import wrong_calls
from quintain.worlds.bfcl.pool import choose
from quintain.worlds.bfcl.schemas import tool_name, tools
from quintain.worlds.bfcl.wheel import Entry, digest_of, folder

CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance")

_NOTED = "Noted."
"""What a call returns: the functions exist on paper only."""


class SingleTurn(World):
    """Function calling: the first turn's calls must be those the task asks for, none in the category `irrelevance`.

    Raises:
        InputError: the package `bfcl-eval` is not installed.
    """

    name: ClassVar[str] = "bfcl-single"
    instructions: ClassVar[str] = (
        "Call the functions that do what the user asks, all of them in one turn. "
        "If none does, or a value it needs is missing, say so and call nothing."
    )
    tools_per_task: ClassVar[bool] = True

    def __init__(self) -> None:
        folder()
        self.functions: list[dict[str, Any]] = []

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Draws tasks (`pool.choose`); 1240 takes them all."""
        return choose(cls.name, CATEGORIES, _task, split, count, seed, languages, templates)

    def data_digest(self) -> str:
        """Digest of the files with tasks and answers."""
        tasks = [f"BFCL_v4_{one}.json" for one in CATEGORIES]
        answers = [f"possible_answer/BFCL_v4_{one}.json" for one in CATEGORIES if one != "irrelevance"]
        return digest({"world": self.name, "data": digest_of(*tasks, *answers)})

    def reset(self, task: Task) -> None:
        """Takes the task's functions."""
        self.functions = task.setup["functions"]

    def toolset(self) -> Toolset:
        """The task's functions; none before `reset`."""
        return Toolset(tools(self.functions, lambda name: _note))

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges the first turn, whatever came after it.

        As BFCL rules, a text that can't be understood is no call: it fails everywhere but in `irrelevance`.
        """
        reason = _fault(task, episode.turns[0].action) if episode.turns else "nothing was written"
        return Verdict(success=not reason, reasons=(reason,) if reason else ())

    def solution(self, task: Task) -> Solution:
        """The answer's calls in one turn, with the first value that is right for each parameter."""
        answer = [(name, right) for one in task.answer or () for name, right in one.items()]
        known = {one["name"]: one["parameters"]["properties"] for one in task.setup["functions"]}
        calls = tuple(
            # an answer may name a parameter that its function does not have, and allow to leave it out
            Call(f"c{at}", tool_name(name), first_values({one: right[one] for one in right if one in known[name]}))
            for at, (name, right) in enumerate(answer)
        )
        if calls:
            yield Action(calls=calls)
        yield Action(answer="Done." if calls else "No function does this.")


def _note(**arguments: Any) -> str:
    return _NOTED


def _task(entry: Entry) -> Task:
    """A task; those that ask for the same function first share a cluster."""
    record = entry.record
    ((question,),) = record["question"]
    subject = next(iter(entry.answer[0])) if entry.answer else record["function"][0]["name"]
    return Task(
        id=record["id"],
        world=SingleTurn.name,
        prompt=question["content"],
        setup={"functions": record["function"]},
        answer=entry.answer,
        cluster=subject,
        template=entry.category,
        tags=("lang:en",),
    )


def _fault(task: Task, first: Action) -> str:
    if task.answer is None:
        return "calls a function where none helps" if first.calls else ""
    functions = task.setup["functions"]
    names = {tool_name(one["name"]): one["name"] for one in functions}
    called = [(names.get(call.tool, ""), call.arguments) for call in first.calls]
    return wrong_calls(called, functions, task.answer)


def first_values(right: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """For each parameter the first value that is right, unless it may be left out alone."""
    given = {name: next((one for one in values if one != ""), None) for name, values in right.items()}
    return {name: _plainly(value) for name, value in given.items() if value is not None}


def _plainly(value: Any) -> Any:
    """A right value with right values chosen inside: those of an object have lists of their own."""
    if isinstance(value, dict):
        return first_values(value)
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return [first_values(one) for one in value]
    return value
