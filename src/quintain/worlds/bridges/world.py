"""Worlds whose tools somebody else wrote: tasks from a file, judged by a rule, solved by a plan in the task."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from quintain.harness.world import Solution, World
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import Task
from quintain.worlds.answers import wrong


class ToolFailed(Exception):
    """A tool of somebody else says that a call failed; the agent reads its words."""


class BridgedWorld(World):
    """The rule by which a task of a bridged world succeeds; override `verify` for another.

    - `answer`, if there is one, is right by the rule of `quintain.worlds.answers`;
    - every call of `setup["calls"]` was made in this episode: `{"tool": ..., "arguments": {...}}`, the arguments
      exactly, or any where they are left out. So an answer from memory is no success.

    `setup["plan"]` is the reference solution: calls as in `setup["calls"]`, made one after the other, then the answer.
    """

    instructions: ClassVar[str] = "Use the tools; reply with the short answer only."

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges calls and answer.

        Raises:
            InputError: the task has neither.
        """
        reason = _fault(task, episode)
        return Verdict(success=not reason, reasons=(reason,) if reason else ())

    def solution(self, task: Task) -> Solution:
        """The task's plan.

        Raises:
            NotImplementedError: it has none.
        """
        if "plan" not in task.setup or task.answer is None:
            raise NotImplementedError(f"task {task.id!r} has no reference solution: setup['plan'] and an answer")
        for number, step in enumerate(task.setup["plan"]):
            yield Action(calls=(Call(f"c{number}", step["tool"], step["arguments"]),))
        yield Action(answer=_said(task.answer))


def _fault(task: Task, episode: Episode) -> str:
    """Why an episode is no success; "" if it is one."""
    calls = task.setup.get("calls", [])
    if task.answer is None and not calls:
        raise InputError(
            f"task {task.id!r} can't be judged: give it an answer, or setup['calls'], or override verify()"
        )
    made = [
        call
        for turn in episode.turns
        for call, seen in zip(turn.action.calls, turn.observations, strict=False)
        if seen.error != "format"
    ]
    left = [one for one in calls if not any(_same(one, call) for call in made)]
    if left:
        return f"{left[0]['tool']} was not called as asked"
    if task.answer is None:
        return ""
    return wrong(task.answer, episode.answer, task.prompt) if episode.answer else "no answer"


def _same(wanted: Mapping[str, Any], call: Call) -> bool:
    return bool(call.tool == wanted["tool"] and wanted.get("arguments", call.arguments) == call.arguments)


def _said(answer: Any) -> str:
    """A gold answer as an agent would give it."""
    return str(answer.get("text", answer.get("number"))) if isinstance(answer, dict) else str(answer)


def from_environment(values: Mapping[str, str], what: str) -> dict[str, str]:
    """Values in which `$NAME` stands for a variable of the environment, so that no secret stands in a recipe.

    >>> from_environment({"Accept": "text/plain"}, "headers")
    {'Accept': 'text/plain'}

    Raises:
        InputError: a variable is not set.
    """

    def read(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise InputError(f"{what}: the environment has no variable {match[1]!r}; set it, then run this again")
        return os.environ[match[1]]

    return {key: re.sub(r"\$(\w+)", read, value) for key, value in values.items()}
