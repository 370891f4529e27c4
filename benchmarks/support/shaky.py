"""Worlds that fail now and then, for runs that are killed."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from quintain import Episode, Task, Verdict, World, tool
from quintain.harness.world import Solution
from quintain.interface.errors import InfraError
from quintain.interface.messages import Action, Call

FAILS = 0.05
"""Share of resets and verdicts that fail; twice in a row they make an infra error."""
SECONDS = 0.05
"""A verdict takes so long, and a call, so that kills find episodes under way."""
CALLS = 3


class Shaky(World):
    """Success is a coin, so that groups vary and nothing is ever mastered."""

    name = "shaky"

    @classmethod
    def generate(cls, split: str, count: int, seed: int, *_: Any, **__: Any) -> list[Task]:
        return [Task(f"{split}-{number}", cls.name, f"Say {number}.") for number in range(count)]

    def reset(self, task: Task) -> None:
        self._fail_sometimes()
        self.ballast = os.urandom(64)

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        await asyncio.sleep(SECONDS)
        self._fail_sometimes()
        return Verdict(success=bool(episode.seed % 2))

    def _fail_sometimes(self) -> None:
        if int.from_bytes(os.urandom(2)) < FAILS * 2**16:
            raise InfraError("the database is gone for a moment")


class Counting(Shaky):
    """Three calls count to three before the answer; a turn that is lost or repeated gives another number."""

    name = "counting"

    def reset(self, task: Task) -> None:
        super().reset(task)
        self.counted = 0

    @tool
    async def count(self) -> int:
        """Counts one further."""
        await asyncio.sleep(SECONDS)
        self.counted += 1
        return self.counted

    def solution(self, task: Task) -> Solution:
        for number in range(CALLS):
            yield Action(calls=(Call(f"{number}", "count", {}),))
        yield Action(answer="done")

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        self._fail_sometimes()
        return Verdict(success=self.counted == CALLS)
