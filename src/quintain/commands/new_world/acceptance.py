"""Which tasks are good enough to keep: the reference succeeds by what it read, and nobody else does."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.commands.new_world.measured import MakeAgent
from quintain.doctor.world import Script
from quintain.harness.loop import Harness
from quintain.harness.world import World
from quintain.interface.episode import Budget, Episode
from quintain.interface.errors import InputError
from quintain.interface.messages import DECLINE_PREFIXES, Action, Call
from quintain.interface.tasks import Task
from quintain.interface.view import Agent

ROOM = Budget(turns=40, tool_calls=40)
MUTANTS = 8
"""Spoiled solutions played of a task, at most."""

RANDOM_SAMPLES = 2


@dataclass(frozen=True, slots=True)
class Examined:
    """What became of some tasks.

    Attributes:
        kept: the accepted ones.
        rejected: a line for each of the others.
        played: successes and episodes, by who played.
    """

    kept: list[Task]
    rejected: list[str]
    played: dict[str, tuple[int, int]]


class Acceptance:
    """Plays tasks with the reference, agents that must fail, and solutions spoiled on purpose.

    Args:
        world: the world's class.
        disturb: a call that changes a row which the task does not touch.
        seed: of which spoiled solutions are played.
    """

    def __init__(self, world: type[World], disturb: Callable[[Task], Call], seed: int) -> None:
        self._world, self._disturb, self._seed = world, disturb, seed
        self._harness = Harness(world, budget=ROOM, concurrency=16)

    def examine(self, tasks: Sequence[Task]) -> Examined:
        """Keeps the tasks whose verdicts can be trusted."""
        gold = self._play(tasks, OracleAgent(self._world().solution, {task.id: task for task in tasks}))
        mutants, actions = self._mutants(tasks, gold)
        played = {
            "silent": self._play(tasks, SilentAgent()),
            "random": self._play(tasks, RandomAgent(), RANDOM_SAMPLES),
            "mutated": self._play(mutants, Script(actions)),
        }
        faults: dict[str, str] = {}
        for name, episodes in played.items():
            for one in (one for one in episodes if one.success):
                faults.setdefault(one.task_id.partition("~")[0], f"a {name} agent succeeds")
        for one in gold:
            faults |= {one.task_id: reason} if (reason := _gold_fault(one)) else {}
        played = {"reference": gold, **played}
        return Examined(
            [task for task in tasks if task.id not in faults],
            [f"{name}: {reason}" for name, reason in faults.items()],
            {name: (sum(one.success for one in episodes), len(episodes)) for name, episodes in played.items()},
        )

    def measure(self, tasks: Sequence[Task], make: MakeAgent) -> tuple[int, int]:
        """Successes of an agent, and its episodes that have a score.

        Raises:
            InputError: none has: its server can't be reached, say.
        """

        async def play() -> list[Episode]:
            async with make() as agent:
                return await self._harness.rollout(tasks, agent)

        episodes = asyncio.run(play())
        scored = [one for one in episodes if one.scored]
        if not scored:
            cause = episodes[0].outcome.detail
            raise InputError(f"the agent can't be measured: all of its {len(episodes)} episodes broke: {cause}")
        return sum(one.success for one in scored), len(scored)

    def _play(self, tasks: Sequence[Task], agent: Agent, samples: int = 1) -> list[Episode]:
        return asyncio.run(self._harness.rollout(tasks, agent, samples=samples))

    def _mutants(
        self, tasks: Sequence[Task], gold: Sequence[Episode]
    ) -> tuple[list[Task], dict[str, tuple[Action, ...]]]:
        made, actions = [], {}
        acting = {tool.name for tool in self._world().toolset() if not tool.name.startswith("find_")}
        for task, episode in zip(tasks, gold, strict=True):
            solution = tuple(turn.action for turn in episode.turns)
            found = spoiled(solution, acting, self._disturb(task))
            rng = random.Random(f"{self._seed} {task.id}")
            for number, one in enumerate(rng.sample(found, min(MUTANTS, len(found)))):
                made.append(replace(task, id=f"{task.id}~{number}"))
                actions[made[-1].id] = one
        return made, actions


def spoiled(solution: tuple[Action, ...], acting: set[str], disturb: Call) -> list[tuple[Action, ...]]:
    """Solutions with one thing wrong: a call left out, a change altered, another row changed, another answer."""
    *calls, closing = solution
    answer = closing.answer or ""
    other = "Done" if closing.declines else f"{DECLINE_PREFIXES[0]} no such entry."
    found = [
        (*calls[:-1], closing),
        (*calls, Action(calls=(disturb,)), closing),
        (*calls, Action(answer=other)),
    ]
    if not closing.declines and not any(call.tool in acting for one in calls for call in one.calls):
        found.append((*calls, Action(answer=f"{answer}1")))
    for at, one in enumerate(calls):
        (call,) = one.calls
        for name in call.arguments if call.tool in acting else ():
            altered = replace(call, arguments={**call.arguments, name: _other(call.arguments[name])})
            if name != "column":
                found.append((*calls[:at], Action(calls=(altered,)), *calls[at + 1 :], closing))
    return found


def _other(value: Any) -> Any:
    """Another value of the same type; a number written as text stays one."""
    if isinstance(value, int | float):
        return value + 1
    return str(int(value) + 1) if value.lstrip("-").isdecimal() else f"{value}x"


def _gold_fault(episode: Episode) -> str:
    """Why a reference solution is none, "" if it is one: it must succeed, and use only what it has read."""
    if not episode.success:
        return "; ".join(episode.verdict.reasons) if episode.verdict else episode.outcome.detail
    text = " ".join(message.text for message in episode.messages)
    for turn in episode.turns:
        for call in turn.action.calls:
            strange = [
                value for name, value in call.arguments.items() if name != "column" and not _stands_in(value, text)
            ]
            if strange:
                return f"its solution knows {strange[0]!r} without having read it"
        text += " ".join(seen.content for seen in turn.observations)
    return ""


def _stands_in(value: Any, text: str) -> bool:
    return str(value) in text or json.dumps(value, ensure_ascii=False).strip('"') in text
