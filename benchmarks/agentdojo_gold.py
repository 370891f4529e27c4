"""Does the adapter of AgentDojo judge as AgentDojo means? Reference calls and spoilers play its tasks, without a model.

    python benchmarks/agentdojo_gold.py       # minutes on one core; exit status 1 if a count is not as expected

All 97 user tasks:

- gold: the reference calls and answer. All must succeed.
- gold without its last change: the last call that changed the environment is left out, where one did. None may succeed,
  but for those in which silence succeeds.
- the answer alone: where no reference call changes anything AgentDojo judges the answer, so knowing it is enough.
- gold again: after those attempts, in the same process. All must succeed.
- silent: answers nothing. Succeeds where AgentDojo's function asks for nothing (`SILENCE_IS_RIGHT`).

Pairs of user task and injection task under an attack, drawn at random:

- gold: does the user's task and nothing else. The attack must never succeed.
- attacker: makes the injection task's reference calls, where AgentDojo has some. The attack must always succeed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bfcl_gold import ROOM, counts
from support.results import write_result

from quintain.agents.oracle import OracleAgent
from quintain.agents.silent import SilentAgent
from quintain.doctor.world import Script, without_last_call
from quintain.harness.loop import Harness
from quintain.harness.world import Solution
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import Task
from quintain.interface.view import Agent
from quintain.worlds.agentdojo import AgentDojo
from quintain.worlds.agentdojo.suites import VERSION, environment, suites
from quintain.worlds.agentdojo.world import FOLLOWED

RESULTS = Path(__file__).parent / "results" / "agentdojo_gold.json"
TASKS, ATTACK = 97, "important_instructions_no_names"
SILENCE_IS_RIGHT = {f"agentdojo-banking-user_task_{number}" for number in (5, 6, 8, 9, 10)}
"""Tasks whose function finds what is there from the start (5, 6), accepts anything (8) or wants no change (9, 10)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=97, help="of the 949 under attack (default: 97)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON file to write")
    options = parser.parse_args()
    started = time.monotonic()
    result = {
        "agentdojo": metadata.version("agentdojo"),
        "benchmark": VERSION,
        "user_tasks": user_tasks(),
        "attack": under_attack(options.pairs),
        "seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(result, indent=1))
    write_result(options.out, result)
    sys.exit(bool(result["user_tasks"]["unexpected"] or result["attack"]["unexpected"]))


def user_tasks() -> dict[str, Any]:
    """Successes of each agent by suite, and the episodes that ended as they should not."""
    tasks = AgentDojo.generate("eval", TASKS, 0, ["en"], [])
    oracle = OracleAgent(AgentDojo().solution, {task.id: task for task in tasks})
    gold = play(tasks, oracle)
    changes = {task.id: changing(task) for task in tasks}
    cut = {one.task_id: without_last_call(one, changes[one.task_id]) for one in gold if changes[one.task_id]}
    told = {one.task_id: (one.turns[-1].action,) for one in gold if not changes[one.task_id]}
    played = {
        "gold": gold,
        "gold without its last change": play([task for task in tasks if task.id in cut], Script(cut)),
        "the answer alone": play([task for task in tasks if task.id in told], Script(told)),
        "gold again": play(tasks, oracle),
        "silent": play(tasks, SilentAgent()),
    }
    wrong = {
        "gold": [one for one in gold if not one.success],
        "gold without its last change": [
            one for one in played["gold without its last change"] if one.success and one.task_id not in SILENCE_IS_RIGHT
        ],
        "gold again": [one for one in played["gold again"] if not one.success],
        "silent": [one for one in played["silent"] if one.success != (one.task_id in SILENCE_IS_RIGHT)],
    }
    return {
        "tasks": len(tasks),
        "agents": {name: counts(episodes) for name, episodes in played.items()},
        "unexpected": [f"{name}: {one.id}" for name, episodes in wrong.items() for one in episodes],
    }


def under_attack(pairs: int) -> dict[str, Any]:
    """For each agent the share of pairs in which the user's task was done, and in which the attack succeeded."""
    tasks = AgentDojo.generate("eval", pairs, 0, ["en"], [], attack=ATTACK)
    by_id = {task.id: task for task in tasks}
    possible = [task for task in tasks if list(injected(task)) != [Action(answer="Done.")]]
    played = {
        "gold": play(tasks, OracleAgent(AgentDojo().solution, by_id)),
        "attacker": play(possible, OracleAgent(injected, by_id)),
    }
    followed = {name: [one for one in episodes if attack_succeeded(one)] for name, episodes in played.items()}
    resisted = [one for one in played["attacker"] if not attack_succeeded(one)]
    return {
        "name": ATTACK,
        "pairs": len(tasks),
        "agents": {
            name: {
                "episodes": len(episodes),
                "utility": sum(one.success for one in episodes) / len(episodes),
                "attack_success": len(followed[name]) / len(episodes),
            }
            for name, episodes in played.items()
        },
        "unexpected": [f"gold: {one.id}" for one in followed["gold"]] + [f"attacker: {one.id}" for one in resisted],
    }


def play(tasks: Sequence[Task], agent: Agent) -> list[Episode]:
    return asyncio.run(Harness(AgentDojo, budget=ROOM, concurrency=1).rollout(tasks, agent))


def attack_succeeded(episode: Episode) -> bool:
    return episode.verdict is not None and FOLLOWED in episode.verdict.reasons


def changing(task: Task) -> set[str]:
    """Tools whose call in the reference solution changed the environment."""
    world = AgentDojo()
    world.reset(task)
    tools, found = world.toolset(), set()
    for call in (call for action in world.solution(task) for call in action.calls):
        before = world.environment.model_copy(deep=True)
        tools[call.tool].function(**call.arguments)
        if world.environment != before:
            found.add(call.tool)
    return found


def injected(task: Task) -> Solution:
    """Does what the injected text asks, as far as AgentDojo has a reference, then answers with its reference output."""
    injection = suites()[task.setup["suite"]].injection_tasks[task.setup["injection"]]
    before = environment(task.setup["suite"], task.setup["task"], task.setup["injections"])
    for number, one in enumerate(injection.ground_truth(before)):
        yield Action(calls=(Call(f"a{number}", one.function, dict(one.args)),))
    yield Action(answer=injection.GROUND_TRUTH_OUTPUT or "Done.")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
