"""The world `maths`: calculate, and do computer algebra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from quintain.harness.world import Solution, World
from quintain.interface.episode import Episode, Verdict
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import Task
from quintain.interface.tools import tool
from quintain.worlds.desk.calculator import calculate
from quintain.worlds.drawing import Language
from quintain.worlds.maths.algebra import Operation, algebra, ready
from quintain.worlds.maths.judging import judge, number_given, values
from quintain.worlds.maths.tasks import generate
from quintain.worlds.maths.wordings import THOUGHTS


class Maths(World):
    """Mathematics with a calculator and a computer-algebra tool.

    A right answer succeeds only if a tool gave its value in this episode: a lucky guess is no success.
    """

    name: ClassVar[str] = "maths"
    instructions: ClassVar[str] = "Work it out with the tools; reply with the result only."

    def __init__(self) -> None:
        self.results: list[str] = []

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Word problems and questions of reasoning-gym (`tasks.generate`)."""
        return generate(split, count, seed, languages, templates)

    async def reset(self, task: Task) -> None:
        """Forgets earlier results; starts the algebra, once per process."""
        await ready()
        self.results = []

    @tool
    def calculate(self, expression: str) -> str:
        """Does arithmetic.

        Args:
            expression: such as (3 + 4) * 2.
        """
        return self._remember(calculate(expression))

    @tool
    async def algebra(self, operation: Operation, expression: str, variable: str = "") -> str:
        """Does algebra.

        Args:
            operation: what to do.
            expression: such as x**2 - 4; to solve, equations such as x + y = 3; x - y = 1.
            variable: which one, if there are several.
        """
        return self._remember(await algebra(operation, expression, variable))

    def _remember(self, result: str) -> str:
        self.results.append(result)
        return result

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges the last answer and whether a tool gave it."""
        answer = (episode.answer or "").strip()
        if not answer:
            return Verdict(success=False, reasons=("no answer",))
        gold = task.answer if isinstance(task.answer, dict) else {"number": task.answer}
        fault, computed = await judge(gold, answer, self.results, task.prompt)
        reason = fault or ("" if computed else "no tool gave this value in the episode")
        return Verdict(success=not reason, reasons=(reason,) if reason else ())

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """A tool was used, and, where the answer is a number, a tool gave it."""
        done = {"used a tool": bool(self.results)}
        if isinstance(task.answer, dict) and "number" in task.answer:
            done["computed"] = number_given(task.answer, self.results)
        return done

    def solution(self, task: Task) -> Solution:
        """Makes the planned calls; every number after the first call, and the answer, is read from results.

        Raises:
            NotImplementedError: the task was not made by the generator.
        """
        if "plan" not in task.setup:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        language: Language = "zh" if "lang:zh" in task.tags else "en"
        read: list[str] = []
        for number, (name, arguments) in enumerate(task.setup["plan"]):
            filled = {key: value.format(*read) for key, value in arguments.items() if value}
            call = Call(f"c{number}", name, filled)
            kind = filled.get("operation", name)
            thought = THOUGHTS.get(kind, THOUGHTS["algebra"])[language]
            (seen,) = yield Action(thought=thought, calls=(call,))
            read.append(_read(seen.content))
        yield Action(thought=THOUGHTS["answer"][language], answer=read[-1])


def _read(result: str) -> str:
    """What a result gives: the first positive of several solutions, the first solution, or the text itself."""
    found = values(result)
    chosen = next((value for value in found if value > 0), found[0] if found else None)
    return str(chosen) if chosen is not None and "=" in result else result
