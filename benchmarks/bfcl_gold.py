"""Does the adapter of BFCL judge as BFCL means? Reference answers and spoilers play all of its tasks, without a model.

    python benchmarks/bfcl_gold.py            # minutes on one core; exit status 1 if a count is not as expected

- gold: the reference calls. All must succeed.
- gold without its last call: none may succeed (a task whose reference calls nothing has none to leave out).
- gold again: after those failed attempts, in the same processes: all must succeed, since no attempt leaves anything.
- silent: answers nothing. Succeeds in the category `irrelevance` alone, where BFCL's rule wants no call.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from support.results import write_result

from quintain.agents.oracle import OracleAgent
from quintain.agents.silent import SilentAgent
from quintain.doctor.world import Script, without_last_call
from quintain.harness.isolated import end_idle
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget, Episode
from quintain.interface.errors import InputError
from quintain.worlds.bfcl import MultiTurn, SingleTurn

RESULTS = Path(__file__).parent / "results" / "bfcl_gold.json"
ROOM = Budget(turns=100, tool_calls=200, seconds=3600, call_seconds=120, observation_bytes=10**6)
"""More than any reference needs: the budget is not what is measured."""
TASKS = {SingleTurn: 1240, MultiTurn: 800}
SUCCEED = {"gold": True, "gold without its last call": False, "gold again": True, "silent": False}
SILENCE_IS_RIGHT = "irrelevance"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=None, help="of each world, drawn at random (default: all)")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON file to write")
    options = parser.parse_args()
    worlds = {}
    for world, count in TASKS.items():
        worlds[world.name] = examine(world, options.tasks or count, options.concurrency)
        show(world.name, worlds[world.name])
    end_idle()
    result = {"bfcl-eval": metadata.version("bfcl-eval"), "worlds": worlds}
    write_result(options.out, result)
    sys.exit(any(one["unexpected"] for one in worlds.values()))


def examine(world: type[SingleTurn] | type[MultiTurn], count: int, concurrency: int) -> dict[str, Any]:
    """Successes of each agent by category, and the episodes that ended as they should not."""
    tasks = world.generate("eval", count, 0, ["en"], [])
    harness = Harness(world, budget=ROOM, concurrency=concurrency)
    oracle = OracleAgent(world().solution, {task.id: task for task in tasks})
    started = time.monotonic()
    gold = asyncio.run(harness.rollout(tasks, oracle))
    cut = {one.task_id: without_last_call(one, set()) for one in gold if one.calls()}
    calling = [task for task in tasks if task.id in cut]
    played = {
        "gold": gold,
        "gold without its last call": asyncio.run(harness.rollout(calling, Script(cut))),
        "gold again": asyncio.run(harness.rollout(tasks, oracle)),
        "silent": asyncio.run(harness.rollout(tasks, SilentAgent())),
    }
    return {
        "tasks": len(tasks),
        "seconds": round(time.monotonic() - started, 1),
        "agents": {name: counts(episodes) for name, episodes in played.items()},
        "unexpected": [line for name, episodes in played.items() for line in unexpected(name, episodes)],
    }


def counts(episodes: Sequence[Episode]) -> dict[str, dict[str, int]]:
    """Episodes and successes by category."""
    total = Counter(one.template for one in episodes)
    right = Counter(one.template for one in episodes if one.success)
    return {name: {"episodes": total[name], "successes": right[name]} for name in sorted(total)}


def unexpected(name: str, episodes: Sequence[Episode]) -> list[str]:
    """A line for each episode that has no verdict or another one than it should."""
    wrong = [
        one
        for one in episodes
        if not one.scored or one.success != (SUCCEED[name] or (name == "silent" and one.template == SILENCE_IS_RIGHT))
    ]
    return [f"{name}: {one.id}: {one.outcome} {one.verdict.reasons if one.verdict else ''}" for one in wrong]


def show(world: str, result: dict[str, Any]) -> None:
    """Prints the table of a world."""
    print(f"{world}: {result['tasks']} tasks, {result['seconds']:.0f} s")
    names = list(result["agents"]["gold"])
    print(f"{'':<28}" + "".join(f"{name.removeprefix('multi_turn_'):>19}" for name in names))
    for agent, by_category in result["agents"].items():
        shown = (by_category.get(name, {"successes": 0, "episodes": 0}) for name in names)
        cells = (f"{one['successes']} of {one['episodes']}" for one in shown)
        print(f"{agent:<28}" + "".join(f"{cell:>19}" for cell in cells))
    for line in result["unexpected"]:
        print(f"  unexpected: {line}")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
