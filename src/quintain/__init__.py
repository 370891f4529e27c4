"""Quintain turns a base language model into an agent on your own tools and tasks, and measures it honestly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quintain.harness.journal import Journal as Journal
    from quintain.harness.loop import Harness as Harness
    from quintain.harness.world import World as World
    from quintain.interface.episode import Budget as Budget
    from quintain.interface.episode import Episode as Episode
    from quintain.interface.episode import Verdict as Verdict
    from quintain.interface.tasks import Task as Task
    from quintain.interface.tools import Toolset as Toolset
    from quintain.interface.tools import tool as tool

__version__ = "0.1.0"

_HOMES = {
    "Journal": "quintain.harness.journal",
    "Harness": "quintain.harness.loop",
    "World": "quintain.harness.world",
    "Budget": "quintain.interface.episode",
    "Episode": "quintain.interface.episode",
    "Verdict": "quintain.interface.episode",
    "Task": "quintain.interface.tasks",
    "Toolset": "quintain.interface.tools",
    "tool": "quintain.interface.tools",
}

__all__ = ["Budget", "Episode", "Harness", "Journal", "Task", "Toolset", "Verdict", "World", "tool"]


def __getattr__(name: str) -> Any:
    """Loads public names at first use, so that `import quintain` stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'quintain' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
