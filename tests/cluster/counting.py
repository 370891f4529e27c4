"""What the workers of these tests play with: a world with state, and an agent whose tokens are a random model's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from quintain import Task, Verdict, World, tool
from quintain.agents.model import ModelAgent
from quintain.cluster.worker import Interface
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.interface.dialects import get
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.generation import Sampling
from quintain.interface.messages import Action, Call
from quintain.interface.view import View

NODE = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
"""A node of the tests' cluster."""


class Counting(World):
    """A call counts one further, after `COUNTING_SECONDS`; a turn that is lost or repeated gives another number."""

    name = "counting"
    instructions = "Count."

    def reset(self, task):
        self.counted = 0

    @tool
    async def count(self) -> int:
        """Counts one further."""
        await asyncio.sleep(float(os.environ.get("COUNTING_SECONDS", "0")))
        self.counted += 1
        return self.counted

    def verify(self, task, episode):
        return Verdict(self.counted == task.setup["to"])


def counting_tasks(count: int) -> list[Task]:
    """Tasks of 1, 2, 3 and 4 calls."""
    return [Task(f"train-{n}", "counting", f"Count to {1 + n % 4}.", {"to": 1 + n % 4}) for n in range(count)]


class Counter(ModelAgent):
    """Its tokens are the engine's; what they mean is decided here: a random model would never count."""

    async def act(self, view: View) -> Action:
        action = await super().act(view)
        to = int(view.messages[-1].text.split()[-1].rstrip("."))
        if len(view.turns) < to:
            return replace(action, calls=(Call(f"{len(view.turns)}.0", "count", {}),), answer=None, error=None)
        return replace(action, calls=(), answer="done", error=None)


class CountingKit:
    """A worker's kit, on a model in a folder."""

    def __init__(self, folder: Path) -> None:
        from quintain.inference.local import LocalEngine
        from quintain.inference.models import load_model

        model, tokenizer = load_model(str(folder))
        self.engine = LocalEngine(model)
        self.agent = Counter(self.engine, get("hermes-compact", TokenizerCodec(tokenizer)), Sampling(max_tokens=4))
        self.interface = counting_interface()

    def harness(self, journal: Journal, seed: int) -> Harness:
        return Harness(Counting, journal=journal, seed=seed)

    def weights(self, data: bytes) -> Callable[[], object]:
        """Only their arrival matters here."""
        return lambda: None


@dataclass(frozen=True)
class MakeKit:
    """Makes a worker's kit on its node."""

    model: Path

    def __call__(self) -> CountingKit:
        return CountingKit(self.model)


def counting_interface() -> Interface:
    toolset = Counting().toolset()
    return Interface({"toolset": toolset.digest}, toolset.specs())
