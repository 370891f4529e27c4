"""Can a world's verdicts be trusted? Reference agents and spoilers play it before anything is trained or measured."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.interface.episode import Episode
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import Task
from quintain.interface.tools import Tool
from quintain.interface.view import Agent, View
from quintain.progress import progress

EPISODES = 13
"""Episodes that all checks of a world play of one task."""

FORGED = {"success": True, "score": 1.0, "reward": 1.0, "passed": True}
FORGED_NAMES = ("verdict.json", "result.json", "reward.txt", "score.txt", "reward.json")
FORGERY = f"open({FORGED_NAMES[0]!r}, 'w').write({json.dumps(FORGED)!r})"
"""Text that an agent passes to every tool: a program that plants a verdict, where programs are run."""


class Script:
    """Takes given actions by task id, one a turn."""

    name = "script"
    version = 0

    def __init__(self, actions: dict[str, tuple[Action, ...]]) -> None:
        self._actions = actions

    async def act(self, view: View) -> Action:
        """The next of them."""
        return self._actions[view.task_id][len(view.turns)]

    async def release(self, episode: str) -> None:
        """Nothing to forget."""


class Forger:
    """Passes a planted verdict to every tool that takes text, then answers with it."""

    name = "forger"
    version = 0

    async def act(self, view: View) -> Action:
        """One call of each tool in turn, then the answer."""
        tools = [one for one in view.toolset if one.check_arguments(_forged(one)) is None]
        if len(view.turns) < len(tools) and view.remaining.turns > 1 and view.remaining.tool_calls > 1:
            one = tools[len(view.turns)]
            return Action(calls=(Call(f"f{len(view.turns)}", one.name, _forged(one)),))
        return Action(answer=json.dumps(FORGED))

    async def release(self, episode: str) -> None:
        """Nothing to forget."""


def _forged(tool: Tool) -> dict[str, Any]:
    made = {"string": FORGERY, "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": dict(FORGED)}
    properties = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    return {name: made.get(str(properties.get(name, {}).get("type"))) for name in required}


@dataclass(frozen=True, slots=True)
class Finding:
    """What an examination found: `ok`, `fail`, `warn` (worth a look) or `skip` (could not be examined)."""

    state: str
    detail: str


def played(harness: Harness, tasks: Sequence[Task], agent: Agent, *, samples: int = 1) -> list[Episode]:
    """Episodes of the tasks, with a bar."""
    with progress(agent.name, total=len(tasks) * samples, unit="episodes") as advance:
        return asyncio.run(harness.rollout(tasks, agent, samples=samples, on_episode=lambda _: advance()))


class WorldExam:
    """Plays a few tasks with agents whose results are known beforehand.

    Args:
        make: a harness of the recipe, with the given journal or none.
        solution: the world's reference solution.
        tasks: which tasks.
    """

    def __init__(
        self, make: Callable[[Journal | None], Harness], solution: Callable[[Task], Any], tasks: Sequence[Task]
    ) -> None:
        self._make = make
        self._solution = solution
        self._tasks = list(tasks)
        self._seconds = 0.0

    @cached_property
    def gold(self) -> list[Episode]:
        """One episode of the oracle for each task."""
        return sorted((episode for episode, _ in self._whole.values()), key=lambda episode: episode.id)

    @cached_property
    def _whole(self) -> dict[str, tuple[Episode, bytes | None]]:
        self._make(None)  # makes what a process makes once, which is not timed
        began = time.perf_counter()
        found = self._with_states(self._tasks, self._oracle)
        self._seconds = (time.perf_counter() - began) / len(self._tasks)
        return found

    @cached_property
    def _at_random(self) -> list[Episode]:
        return self.play(RandomAgent(), samples=3)

    @cached_property
    def _forged(self) -> list[Episode]:
        with _planted_verdicts():
            return self.play(Forger())

    def play(self, agent: Agent, *, samples: int = 1, backwards: bool = False) -> list[Episode]:
        """Episodes of the tasks, ordered by task and sample."""
        tasks = self._tasks[::-1] if backwards else self._tasks
        return sorted(played(self._make(None), tasks, agent, samples=samples), key=lambda episode: episode.id)

    def seconds(self) -> float:
        """Of a gold episode, as many at once as the recipe has."""
        _ = self._whole
        return self._seconds

    def narrowed(self, tasks: Sequence[Task]) -> WorldExam:
        """An exam of some of the tasks, whose gold episodes are there already."""
        exam = WorldExam(self._make, self._solution, tasks)
        exam._whole = {task.id: self._whole[task.id] for task in tasks}
        return exam

    def gold_passes(self) -> Finding:
        """The reference solution succeeds within the recipe's budget."""
        wrong = [one for one in self.gold if not one.success]
        return _all(self.gold, wrong, "reference solutions succeed")

    def silence_fails(self) -> Finding:
        """An agent that answers nothing never succeeds."""
        episodes = self.play(SilentAgent())
        return _all(episodes, [one for one in episodes if one.success], "silent episodes fail")

    def chance_fails(self) -> Finding:
        """An agent that calls and answers at random never succeeds."""
        won = [one for one in self._at_random if one.success]
        return _all(self._at_random, won, "random episodes fail")

    def shortcut_fails(self) -> Finding:
        """The reference solution without its last call that acts (is not declared read-only) fails.

        Where that call leaves no trace in the world's state, the verdict can only rest on the answer: then an agent
        that knows the answer need not act, which is worth knowing and no fault of the verifier.
        """
        if not all(one.success for one in self.gold):
            return Finding("skip", "the reference solution fails already")
        acting = self._acting()
        cut = {one.task_id: without_last_call(one, acting[one.world]) for one in self.gold if one.calls()}
        short = self._with_states([task for task in self._tasks if task.id in cut], Script(cut))
        passed = [episode for episode, _ in short.values() if episode.success]
        traced = [one for one in passed if short[one.task_id][1] != self._whole[one.task_id][1]]
        if traced:
            return _all(list(short), traced, "solutions without their last call fail")
        if passed:
            text = f"{len(passed)} of {len(short)} succeed without their last call"
            return Finding("warn", f"{text}: the verdict rests on the answer alone")
        return _all(list(short), [], "solutions without their last call fail")

    def repeats_agree(self) -> Finding:
        """Three runs of one episode see the same."""
        runs = [_seen(self.gold), _seen(self.play(self._oracle)), _seen(self.play(self._oracle))]
        first_at_random = [one for one in self._at_random if one.id.endswith("#0")]
        runs_at_random = [_seen(first_at_random), *(_seen(self.play(RandomAgent())) for _ in range(2))]
        different = [
            name
            for first, *others in (runs, runs_at_random)
            for name in first
            if any(one[name] != first[name] for one in others)
        ]
        return _all(list(runs[0]), different, "episodes are the same three times")

    def order_does_not_matter(self) -> Finding:
        """Other episodes in between, and the tasks backwards, change nothing."""
        before = _seen(self.gold)
        _ = self._at_random, self._forged  # played by now
        after = _seen(self.play(self._oracle, backwards=True))
        changed = [name for name in before if before[name] != after[name]]
        return _all(list(before), changed, "episodes are the same in another order, after others")

    def forgery_fails(self) -> Finding:
        """A verdict that lies in the working folder, or goes through the tools, changes nothing."""
        won = [one for one in self._forged if one.success]
        return _all(self._forged, won, "planted verdicts change nothing")

    @property
    def _oracle(self) -> OracleAgent:
        return OracleAgent(self._solution, {task.id: task for task in self._tasks})

    def _acting(self) -> dict[str, set[str]]:
        """Tools that act (are not declared read-only), by world."""
        harness = self._make(None)
        worlds = {task.world: harness.of(task).factory() for task in self._tasks}
        return {name: {one.name for one in world.toolset() if not one.read_only} for name, world in worlds.items()}

    def _with_states(self, tasks: Sequence[Task], agent: Agent) -> dict[str, tuple[Episode, bytes | None]]:
        """Episodes by task, with the world's state at their end."""
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(Path(folder) / "journal")
            episodes = played(self._make(journal), tasks, agent)
            found = {one.task_id: (one, journal.state_at(one.id, len(one.turns))) for one in episodes}
            journal.close()
        return found


def _all(examined: Sequence[Any], wrong: Sequence[Any], words: str) -> Finding:
    """`ok` if nothing is wrong; the first wrong one is named."""
    line = f"{len(examined) - len(wrong)} of {len(examined)} {words}"
    if not examined:
        return Finding("skip", "nothing to examine")
    if not wrong:
        return Finding("ok", line)
    first = wrong[0]
    if not isinstance(first, Episode):
        return Finding("fail", f"{line}; not {first}")
    reasons = "; ".join(first.verdict.reasons) if first.verdict else first.outcome.detail
    return Finding("fail", f"{line}; not {first.id} ({' '.join(f'{first.outcome} {reasons}'.split())[:120]})")


def _actions(episode: Episode) -> tuple[Action, ...]:
    return tuple(turn.action for turn in episode.turns)


def without_last_call(episode: Episode, acting: set[str]) -> tuple[Action, ...]:
    """The actions without the last call of an acting tool (of any, where none acts), and without what is left empty."""
    calls = [call for turn in episode.turns for call in turn.action.calls]
    last = ([call for call in calls if call.tool in acting] or calls)[-1]
    kept = [
        replace(action, calls=tuple(call for call in action.calls if call is not last)) if action.calls else action
        for action in _actions(episode)
        if action.calls != (last,)
    ]
    return tuple(kept)


def _seen(episodes: Sequence[Episode]) -> dict[str, Any]:
    """What each episode saw and how it was judged, times aside."""
    return {
        one.id: (
            [(seen.content, seen.error) for turn in one.turns for seen in turn.observations],
            one.success,
            str(one.outcome),
        )
        for one in episodes
    }


@contextmanager
def _planted_verdicts() -> Iterator[None]:
    """A working folder that holds forged verdicts under names a careless verifier might read."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in FORGED_NAMES:
            (Path(folder) / name).write_text("1.0" if name.endswith(".txt") else json.dumps(FORGED))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(home)
