"""A server process for tests: the real server, harness and world around a policy that does sums as a rule has it."""

from __future__ import annotations

import re
import sys
from typing import Any

from quintain import Task, World, tool
from quintain.harness.loop import Harness
from quintain.interface import dialects
from quintain.interface.generation import Generation, Sampling
from quintain.interface.messages import Action, Call
from quintain.serving.conversation import Conversations
from quintain.serving.server import _run, listen
from tiny import tiny_codec


class Tally(World):
    """Keeps a sum: what an earlier message added is still there."""

    name = "tally"
    instructions = "Add."

    def reset(self, task):
        self.sum = task.setup["start"]

    @tool
    def add(self, n: int) -> int:
        """Adds a number to the sum, which it returns."""
        self.sum += n
        return self.sum

    def verify(self, task, episode):
        raise AssertionError("nobody's answer is judged here")


class Rule:
    """An engine that calls `add` with the number of the last user message, then answers; after a 0, never."""

    version = 0

    def __init__(self, dialect: Any) -> None:
        self.dialect = dialect

    async def generate(self, ids: list[int], *, session: str, group: str, sampling: Sampling) -> Generation:
        text = self.dialect.codec.decode(ids)
        role, last = re.findall(r"<\|im_start\|>(\w+)\n([^<]*)<\|im_end\|>", text)[-1]
        if role == "tool" and "0" not in re.findall(r"user\n([^<]*)<", text):
            action = Action(answer=f"The sum is {last}.")
        elif role == "tool":
            action = Action(calls=(Call("0", "add", {"n": 0}),))
        else:
            action = Action(thought="I add.", calls=(Call("0", "add", {"n": int(last)}),))
        made = tuple(self.dialect.write(action))
        zeros = (0.0,) * len(made)
        return Generation(made, zeros, zeros, "stop", 0)

    async def release(self, session: str) -> None:
        """Nothing is kept."""

    async def update(self, weights: Any = None) -> int:
        return 0


if __name__ == "__main__":
    made = dialects.get("hermes-compact", tiny_codec())
    sample = Task("t", "tally", "1", {"start": 100})
    harness = Harness(Tally, judge=False)
    agent = Conversations(harness, sample, Rule(made), made, Sampling(temperature=0.0), 4, "tally")
    _run(agent, sys.argv[1] if len(sys.argv) > 1 else None, listen("127.0.0.1", 0))
