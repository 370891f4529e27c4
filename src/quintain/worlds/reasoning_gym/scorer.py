"""Scores one answer with reasoning-gym's own scorer.

Runs inside the sandbox, because several of those scorers evaluate the answer as Python. The entry is drawn again from
its data set, seed and index. One JSON request on standard input, one reply on standard output.
"""

from __future__ import annotations

import json
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any
from unittest.mock import MagicMock


class NoDrawing(MetaPathFinder, Loader):
    """Stands in for matplotlib, which some generators import, none needs, and which wants a writable folder."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A package of mocks for matplotlib and whatever lies in it."""
        drawing = fullname.partition(".")[0] in ("matplotlib", "mpl_toolkits")
        return ModuleSpec(fullname, self, is_package=True) if drawing else None

    def create_module(self, spec: ModuleSpec) -> Any:
        """Has every attribute."""
        return MagicMock()

    def exec_module(self, module: Any) -> None:
        """Nothing to run."""


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """`{"score"}`, or `{"error"}` where the question is not the one that was asked."""
    from reasoning_gym.factory import create_dataset

    data = create_dataset(request["dataset"], size=request["size"], seed=request["seed"])
    entry = data[request["index"]]
    if entry["question"] != request["question"]:
        return {"error": "reasoning-gym draws another question now; make the tasks again with the installed version"}
    try:
        return {"score": float(data.score_answer(request["answer"], entry))}
    except Exception as error:  # a scorer that can't read an answer raises whatever it likes
        return {"score": 0.0, "reason": f"{type(error).__name__}: {error}"[:200]}


def main() -> None:
    """Serves one request."""
    answer = reply(json.load(sys.stdin))
    print("\n" + json.dumps(answer))  # on a line of its own: scorers may print


def warm_up() -> None:
    """Imports everything once, for all later forks."""
    sys.meta_path.insert(0, NoDrawing())
    reply({"dataset": "gcd", "seed": 0, "size": 1, "index": 0, "question": "", "answer": ""})
