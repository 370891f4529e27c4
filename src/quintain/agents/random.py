"""The random agent: valid calls and answers without sense. A world that lets it succeed can be guessed."""

from __future__ import annotations

import random
from typing import Any

from quintain.interface.messages import Action, Call
from quintain.interface.tools import Tool
from quintain.interface.view import View

_STOP = 0.25
"""Probability of answering at each turn."""


class RandomAgent:
    """Calls random tools with random valid arguments, then gives a random answer.

    Strings are words of the prompt, so that calls sometimes hit something. The episode's seed and the turn
    fix every draw.
    """

    name = "random"
    version = 0

    async def act(self, view: View) -> Action:
        """A random call, or a random answer with probability 1/4 or where no valid call can be made up."""
        rng = random.Random(f"{view.seed} {len(view.turns)}")
        if len(view.toolset) and rng.random() >= _STOP:
            tool = rng.choice(list(view.toolset))
            arguments = _arguments(tool, view, rng)
            if tool.check_arguments(arguments) is None:
                return Action(calls=(Call(f"r{len(view.turns)}", tool.name, arguments),))
        return Action(answer=str(rng.randrange(10**9)))

    async def release(self, episode: str) -> None:
        """Nothing to forget."""


def _arguments(tool: Tool, view: View, rng: random.Random) -> dict[str, Any]:
    required = tool.parameters.get("required", ())
    properties = tool.parameters.get("properties", {})
    return {
        name: _value(schema, view, rng) for name, schema in properties.items() if name in required or rng.random() < 0.5
    }


def _value(schema: dict[str, Any], view: View, rng: random.Random) -> Any:
    if "enum" in schema:
        return rng.choice(schema["enum"])
    words = " ".join(message.text for message in view.messages if message.role == "user").split() or ["word"]
    made: dict[str, Any] = {
        "string": rng.choice(words),
        "integer": rng.randrange(10),
        "number": rng.random() * 10,
        "boolean": rng.random() < 0.5,
        "array": [],
        "object": {},
    }
    kind = schema.get("type")
    return made.get(kind) if isinstance(kind, str) else None
