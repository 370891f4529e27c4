"""A world a user might write beside a recipe: add two numbers with a tool."""

from __future__ import annotations

from quintain import Task, Verdict, World, tool
from quintain.interface.messages import Action, Call


class Counter(World):
    name = "counter"
    instructions = "Add."

    @tool
    def add(self, a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @classmethod
    def generate(cls, split, count, seed, languages, templates, **options):
        start = 0 if split == "train" else 1000
        return [
            Task(f"{split}-{n}", "counter", f"{n} + 1?", {"a": n}, str(n + 1), f"{split}-{n}", "plus")
            for n in range(start, start + count)
        ]

    def verify(self, task, episode):
        return Verdict(episode.answer == task.answer)

    def solution(self, task):
        (seen,) = yield Action(calls=(Call("a", "add", {"a": task.setup["a"], "b": 1}),))
        yield Action(answer=seen.content)
