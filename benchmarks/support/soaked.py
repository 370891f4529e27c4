"""The run that a soak troubles: a world that fails now and then, and a command whose engine can be taken away.

python soaked.py RECIPE FOLDER       # as `quintain run RECIPE --out FOLDER`; SIGUSR1 closes the engine
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from quintain import Episode, Task, Verdict, World
from quintain.cli.main import main
from quintain.interface.errors import InfraError
from quintain.pipeline import grpo

FAILS = 0.05
"""Share of resets and verdicts that fail; twice in a row they make an infra error."""
SECONDS = 0.05
"""A verdict takes so long, so that kills find episodes under way."""


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


def run(recipe: str, folder: str) -> int:
    """Runs the recipe; at the signal its engine is gone, as a server that died would be."""
    engines: list[Any] = []
    make = grpo.make_engine

    def kept(*arguments: Any) -> Any:
        engines.append(make(*arguments))
        return engines[-1]

    grpo.make_engine = kept
    signal.signal(signal.SIGUSR1, lambda *_: [engine.close() for engine in engines])
    return main(["run", recipe, "--out", folder])


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
