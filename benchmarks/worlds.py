"""Can a world's verdicts be trusted at scale? Its reference solution and three spoilers play 1,000 of its tasks.

gold must always succeed; a silent agent, a random one, and gold without its last call must never succeed.

python benchmarks/worlds.py --world desk                      # a built-in world by its name
python benchmarks/worlds.py --world my_package.till:Till      # any world with `generate` and `solution`
python benchmarks/worlds.py                                   # all built-in worlds

Results are merged into the JSON file world by world; those of chosen templates stand apart, under the templates' names.
Exit status 1 if a world falls short.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import pkgutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import quintain.worlds
from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.doctor.doctor import has_solution
from quintain.doctor.world import Script, without_last_call
from quintain.harness.loop import Harness
from quintain.harness.world import World
from quintain.interface.episode import Budget, Episode
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.interface.view import Agent
from quintain.recipe.user_code import load_world

RESULTS = Path(__file__).parent / "results" / "worlds.json"
ROOM = Budget(turns=100, tool_calls=200, call_seconds=60)
"""More than any reference solution needs: the budget is not what is measured."""
EXPECTED = {"gold": 1.0, "silent": 0.0, "random": 0.0, "gold without its last call": 0.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", nargs="+", default=None, help="names, or module:Class (default: all built in)")
    parser.add_argument("--count", type=int, default=1000, help="tasks of each world")
    parser.add_argument("--split", default="eval", choices=("train", "eval"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--languages", nargs="+", default=["en", "zh"])
    parser.add_argument("--templates", nargs="+", default=[], help="as in a recipe's pool (default: all)")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON file the results are merged into")
    options = parser.parse_args()
    sound = True
    for name in options.world or built_in():
        world = load_world(reference(name), Path.cwd())
        tasks = world.generate(options.split, options.count, options.seed, options.languages, options.templates)
        result = examine(world, tasks, options.concurrency) | {"split": options.split, "seed": options.seed}
        key = " ".join([world.name, *options.templates])
        show(key, result)
        merge(options.out, key, result)
        sound = sound and not result["falls_short"]
    sys.exit(0 if sound else 1)


def built_in() -> list[str]:
    """Names of the packages in `quintain.worlds` that hold a world of the same name."""
    packages = [module.name for module in pkgutil.iter_modules(quintain.worlds.__path__) if module.ispkg]
    return [name for name in packages if find(name) is not None]


def reference(name: str) -> str:
    """`module:Class` of a world given so, or by the name of a built-in one."""
    found = name if ":" in name else find(name)
    if found is None:
        raise InputError(f"no built-in world {name!r}; there are {', '.join(built_in())}, or give module:Class")
    return found


def find(name: str) -> str | None:
    """`module:Class` of the world of that name in the package of that name."""
    if not (Path(quintain.worlds.__path__[0]) / name / "__init__.py").is_file():
        return None
    module = importlib.import_module(f"quintain.worlds.{name}")
    classes = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, World)]
    return next((f"{module.__name__}:{one.__name__}" for one in classes if one.name == name), None)


def examine(world: type[World], tasks: Sequence[Task], concurrency: int) -> dict[str, Any]:
    """Plays all tasks with gold and the spoilers; counts by template and what falls short."""
    harness = Harness(world, budget=ROOM, concurrency=concurrency)
    agents: dict[str, Agent] = {
        "gold": OracleAgent(world().solution, {task.id: task for task in tasks}),
        "silent": SilentAgent(),
        "random": RandomAgent(),
    }
    started = time.monotonic()
    solved = [task for task in tasks if has_solution(world().solution, task)]
    played = {name: play(harness, solved if name == "gold" else tasks, agent) for name, agent in agents.items()}
    acting = {tool.name for tool in world().toolset() if not tool.read_only}
    cut = {one.task_id: without_last_call(one, acting) for one in played["gold"] if one.calls()}
    calling = [task for task in tasks if task.id in cut]
    played["gold without its last call"] = play(harness, calling, Script(cut))
    return {
        "tasks": len(tasks),
        "different_prompts": len({task.prompt for task in tasks}),
        "clusters": len({task.cluster for task in tasks}),
        "templates": dict(sorted(Counter(task.template for task in tasks).items())),
        "languages": dict(Counter(tag for task in tasks for tag in task.tags if tag.startswith("lang:"))),
        "agents": {name: counts(episodes) for name, episodes in played.items()},
        "falls_short": [line for name, episodes in played.items() for line in shortfalls(name, episodes)],
        "seconds": round(time.monotonic() - started, 1),
        "version": metadata.version("quintain"),
    }


def play(harness: Harness, tasks: Sequence[Task], agent: Agent) -> list[Episode]:
    return asyncio.run(harness.rollout(tasks, agent))


def counts(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Episodes, successes, and infra errors, which have no score."""
    return {
        "episodes": len(episodes),
        "successes": sum(one.success for one in episodes),
        "infra_errors": sum(one.outcome.kind == "infra_error" for one in episodes),
    }


def shortfalls(name: str, episodes: Sequence[Episode]) -> list[str]:
    """A line for each template whose episodes are not as expected, with the first of them and its reason."""
    wrong: dict[str, list[Episode]] = {}
    for one in episodes:
        if one.verdict is None or one.success != bool(EXPECTED[name]):
            wrong.setdefault(one.template, []).append(one)
    return [f"{name}: {template}: {len(found)} ({describe(found[0])})" for template, found in sorted(wrong.items())]


def describe(episode: Episode) -> str:
    reasons = "; ".join(episode.verdict.reasons) if episode.verdict else episode.outcome.detail
    return " ".join(f"{episode.id}: {episode.outcome} {reasons}".split())[:200]


def show(world: str, result: dict[str, Any]) -> None:
    """Prints the table of a world."""
    sizes = f"{result['tasks']} tasks, {len(result['templates'])} templates, {result['clusters']} clusters"
    print(f"{world}: {sizes}, {result['seconds']:.0f} s")
    print(f"{'':<30}{'episodes':>9}{'succeed':>9}{'expected':>10}{'infra':>7}")
    for name, one in result["agents"].items():
        share = one["successes"] / max(1, one["episodes"])
        print(f"{name:<30}{one['episodes']:>9}{share:>9.1%}{EXPECTED[name]:>10.0%}{one['infra_errors']:>7}")
    for line in result["falls_short"]:
        print(f"  falls short: {line}")


def merge(path: Path, world: str, result: dict[str, Any]) -> None:
    """Puts one world's result into the file and leaves the others as they are."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept | {world: result}, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
