"""Alternatives that a teacher writes: at each step of past episodes, what else the agent might have done."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from quintain.endpoint.structured import Shape
from quintain.interface.messages import Action, Call
from quintain.interface.tools import Toolset
from quintain.interface.words import language_of
from quintain.synthesis.choices import Step, episode_language, option_text, reads_alike, task_text
from quintain.synthesis.fas import Spent
from quintain.synthesis.judging import describe_tools
from quintain.synthesis.teacher import Request, Teacher
from quintain.synthesis.tutor import history_lines


class OtherCall(Shape):
    """A call as a teacher writes it."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class OtherStep(Shape):
    """A step as a teacher writes it: calls, or an answer."""

    thought: str
    calls: list[OtherCall] = Field(default_factory=list)
    answer: str = ""


class OtherSteps(Shape):
    """A teacher's reply."""

    steps: list[OtherStep]


class TaughtActions:
    """Alternatives written by a teacher, asked for before they are needed. They are not executed.

    A step is dropped, and counted by its reason, unless it has either calls that fit the toolset or an answer, a
    thought in the task's language, and reads like none before it. Where too few are left a choice has fewer options.

    Args:
        toolsets: what calls must fit, by world; only the schemas are used.
        counts: counts what was dropped.
        spent: counts requests, tokens and price.
    """

    def __init__(self, toolsets: Mapping[str, Toolset], counts: Counter[str], spent: Spent) -> None:
        self._toolsets = {world: Toolset(tool.bind(None) for tool in one) for world, one in toolsets.items()}
        self._counts = counts
        self._spent = spent
        self._known: dict[tuple[str, int], list[Action]] = {}

    async def ask(
        self, teacher: Teacher, steps: Iterable[Step], count: int, concurrency: int, advance: Callable[[], object]
    ) -> None:
        """Asks about every step, so many at once.

        Args:
            teacher: who writes.
            steps: of episodes whose turns could all be understood.
            count: alternatives wanted for each.
            concurrency: steps asked about at once.
            advance: called after each.

        Raises:
            InputError: the teacher can't be reached or refuses to work at all.
        """
        waiting = iter(steps)

        async def work() -> None:
            for step in waiting:
                reply = await teacher.ask(alternatives_request(step, self._toolsets[step.episode.world], count))
                self._spent.add(reply)
                if reply.value is None:
                    self._counts[f"alternatives requests: {reply.problem}"] += 1
                else:
                    self._known[step.episode.id, step.index] = [*self._usable(step, reply.value.steps)]
                advance()

        tasks = [asyncio.create_task(work()) for _ in range(concurrency)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def __call__(self, step: Step, count: int, rng: random.Random) -> list[Action]:
        """Up to `count` of what was written for a step, in random order."""
        known = self._known.get((step.episode.id, step.index), [])
        return rng.sample(known, min(count, len(known)))

    def _usable(self, step: Step, written: Sequence[OtherStep]) -> Iterator[Action]:
        language = episode_language(step.episode)
        seen = {reads_alike(step.action, language)}
        for one in written:
            reason = _fault(one, self._toolsets[step.episode.world], language)
            action = _action(one)
            if not reason and reads_alike(action, language) in seen:
                reason = "read like another option"
            if reason:
                self._counts[f"alternatives left out: {reason}"] += 1
                continue
            seen.add(reads_alike(action, language))
            yield action


def _fault(one: OtherStep, toolset: Toolset, language: str) -> str:
    if bool(one.calls) == bool(one.answer.strip()):
        return "neither calls nor an answer, or both"
    if any(toolset.check(call.tool, call.arguments) for call in one.calls):
        return "a call does not fit the toolset"
    wrong = bool(one.thought.strip()) and language_of(one.thought) != language
    return "in the wrong language" if wrong else ""


def alternatives_request(step: Step, toolset: Toolset, count: int) -> Request:
    """Asks for other steps. The prompt shows what the agent knew, and the step it took; never what came of it."""
    language = episode_language(step.episode)
    fields = {
        "tools": describe_tools(toolset),
        "task": task_text(step.episode.messages),
        "history": [line for turn in step.episode.turns[: step.index] for line in history_lines(turn)]
        or ["nothing yet"],
        "step": option_text(step.action, language),
        "count": count,
    }
    return Request("alternatives", language, fields, OtherSteps)


def _action(one: OtherStep) -> Action:
    calls = tuple(Call(f"c{number}", call.tool, call.arguments) for number, call in enumerate(one.calls))
    return Action(" ".join(one.thought.split()), calls=calls, answer=None if calls else one.answer.strip())
