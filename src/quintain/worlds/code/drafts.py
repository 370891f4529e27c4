"""What a family of tasks makes, before it is a task."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quintain.worlds.drawing import Language


@dataclass(frozen=True, slots=True)
class Draft:
    """One task without its id.

    Attributes:
        prompt: what the user says.
        setup: files, and what the tools and the reference solution need.
        answer: what the verdict needs; it never enters a sandbox while an agent lives.
        cluster: what the task's content comes from.
        key: what makes it a different task from others of its template.
    """

    prompt: str
    setup: dict[str, Any]
    answer: dict[str, Any]
    cluster: str
    key: str


@dataclass(frozen=True, slots=True)
class Template:
    """A way to make tasks.

    Attributes:
        name: unique in the world.
        family: `repair`, `data` or `program`.
        level: difficulty, 1 to 3.
        splits: sides that may use it.
        draw: makes a draft, or None if the draw makes no good task.
    """

    name: str
    family: str
    level: int
    splits: tuple[str, ...]
    draw: Callable[[random.Random, str, Language, Template], Draft | None]

    @property
    def held_out(self) -> bool:
        """True for a template that training never sees."""
        return self.splits == ("eval",)
