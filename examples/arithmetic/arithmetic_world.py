"""Arithmetic with tools: an agent that calculates by calls, never in its head."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from quintain import Episode, Task, Verdict, World, tool
from quintain.harness.world import Solution
from quintain.interface.messages import Action, Call

TEMPLATES = {
    "sum": "What is {a} + {b}?",
    "sum_times": "What is ({a} + {b}) * {c}?",
    "times_minus": "What is {a} * {b} - {c}?",
    "times_plus_times": "What is {a} * {b} + {c} * {d}?",
}


class Arithmetic(World):
    """Three tools; an answer counts if it is right and a tool gave it."""

    name = "arithmetic"
    instructions = "Calculate with the tools only. Reply with the number alone."

    @tool(read_only=True)
    def add(self, a: int, b: int) -> int:
        """a + b.

        Args:
            a: a number.
            b: a number.
        """
        return a + b

    @tool(read_only=True)
    def subtract(self, a: int, b: int) -> int:
        """a - b.

        Args:
            a: a number.
            b: what to take away.
        """
        return a - b

    @tool(read_only=True)
    def multiply(self, a: int, b: int) -> int:
        """a * b.

        Args:
            a: a number.
            b: a number.
        """
        return a * b

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Right is the exact number, if a tool returned it in this episode: a guess is no success."""
        answer = (episode.answer or "").strip()
        seen = {one.content for turn in episode.turns for one in turn.observations if not one.error}
        if answer != task.answer:
            return Verdict(success=False, reasons=(f"answered {answer!r}, expected {task.answer!r}",))
        return Verdict(success=answer in seen, reasons=() if answer in seen else ("right, but no tool gave it",))

    def solution(self, task: Task) -> Solution:
        """The calls of the task, one a turn; `#1` stands for the first result."""
        results: dict[str, int] = {}
        for number, (name, a, b) in enumerate(task.setup["steps"], start=1):
            arguments = {"a": results.get(a, a), "b": results.get(b, b)}
            (seen,) = yield Action(calls=(Call(f"c{number}", name, arguments),))
            results[f"#{number}"] = seen.value
        yield Action(answer=seen.content)

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Tasks whose first number ends in 0 or 5 are for evaluation only: no evaluated expression is trained on."""
        draw = random.Random(f"{split}-{seed}")
        names = [name for name in TEMPLATES if name in templates] or list(TEMPLATES)
        return [_task(split, f"{split}-{seed}-{number}", names[number % len(names)], draw) for number in range(count)]


def _task(split: str, name: str, template: str, draw: random.Random) -> Task:
    a = next(n for n in iter(lambda: draw.randrange(12, 100), None) if (n % 5 == 0) == (split == "eval"))
    b, c, d = draw.randrange(3, 60), draw.randrange(3, 10), draw.randrange(3, 30)
    steps, answer = {
        "sum": ([("add", a, b)], a + b),
        "sum_times": ([("add", a, b), ("multiply", "#1", c)], (a + b) * c),
        "times_minus": ([("multiply", a, b), ("subtract", "#1", c)], a * b - c),
        "times_plus_times": ([("multiply", a, b), ("multiply", c, d), ("add", "#1", "#2")], a * b + c * d),
    }[template]
    prompt = TEMPLATES[template].format(a=a, b=b, c=c, d=d)
    setup = {"steps": [list(step) for step in steps]}
    return Task(name, "arithmetic", prompt, setup, str(answer), cluster=f"{split}-{prompt}", template=template)
