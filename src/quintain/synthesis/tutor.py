"""The tutor: a teacher behind a server that goes on with an episode, one step at a time. It knows no solution."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field

from quintain.endpoint.structured import Shape
from quintain.interface.messages import DECLINE_PREFIXES, Action, Call, Turn
from quintain.interface.view import View
from quintain.interface.words import language_of
from quintain.synthesis.judging import describe_tools
from quintain.synthesis.teacher import Request, Teacher


class Step(Shape):
    """One step as a teacher writes it: a call, or an answer."""

    analysis: str
    tool: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    answer: str = ""


class Tutor:
    """Asks a teacher for every action.

    Args:
        teacher: is asked with the prompt `recover.md`.
        first: what to do in turn `at`, before anything else: a repaired call, or what a person wrote.
        at: number of turns it takes over after.
    """

    name = "tutor"
    version = 0

    def __init__(self, teacher: Teacher, first: Action | None = None, at: int = 0) -> None:
        self._teacher = teacher
        self._first = first
        self._at = at

    async def act(self, view: View) -> Action:
        """The teacher's next step. A wrong call is an action like any other: the world answers it.

        Raises:
            ValueError: the teacher gave no usable step; the continuation ends there.
        """
        if self._first is not None and len(view.turns) == self._at:
            return self._first
        reply = await self._teacher.ask(_request(view))
        step: Step | None = reply.value
        if step is None or bool(step.tool) == bool(step.answer.strip()):
            raise ValueError(f"the teacher gave no step: {reply.problem or 'neither a call nor an answer'}")
        thought = " ".join(step.analysis.split())
        if step.tool:
            return Action(thought, calls=(Call(f"{len(view.turns)}.0", step.tool, step.arguments),))
        return Action(thought, answer=step.answer.strip())

    async def release(self, episode: str) -> None:
        """Nothing to forget."""


def _request(view: View) -> Request:
    task = "\n\n".join(one.text for one in view.messages)
    language = language_of(view.messages[-1].text)
    fields = {
        "tools": describe_tools(view.toolset),
        "task": task,
        "history": [line for turn in view.turns for line in history_lines(turn)] or ["nothing yet"],
        "decline": DECLINE_PREFIXES[language == "zh"],
    }
    return Request("recover", language, fields, Step)


def history_lines(turn: Turn) -> list[str]:
    """What was done in a turn and what came back, as teachers read it."""
    action = turn.action
    if action.error is not None:
        return [f"you wrote: {action.text}", f"it answered: {turn.observations[0].content}"]
    lines = [f"you thought: {action.thought}"] if action.thought else []
    lines += [f"you summed up: {action.summary}"] if action.summary is not None else []
    for call, seen in zip(action.calls, turn.observations, strict=True):
        lines += [
            f"you called {call.tool} {json.dumps(call.arguments, ensure_ascii=False)}",
            f"it answered: {seen.content}",
        ]
    return lines
