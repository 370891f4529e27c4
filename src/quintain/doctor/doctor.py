"""One screen before any compute is spent: can this recipe's world, dialect, model and machine be trusted?"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

from quintain.agents.model import ModelAgent
from quintain.doctor.model import ModelExam, contexts, groups_vary, least_minutes, memory
from quintain.doctor.world import EPISODES, Finding, WorldExam
from quintain.harness.sandbox import Bubblewrap, Program
from quintain.harness.sandbox.mechanism import CannotConfine
from quintain.inference.models import inspect_model
from quintain.interface.dialects import get as get_dialect
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.errors import QuintainError, describe
from quintain.interface.generation import Sampling
from quintain.interface.tasks import Task
from quintain.pipeline.workshop import Workshop
from quintain.progress import say
from quintain.recipe import GRPOStage, Recipe, load_recipe

TASKS = 8
"""Tasks of each world examined of each pool, one of every template first."""
SECONDS = 60.0
"""A world whose episodes take long gives fewer tasks, so that its checks take about this long together."""

_ESCAPES = """
import os, socket
found = []
try:
    socket.create_connection(("127.0.0.1", {port}), 1); found.append("the network")
except OSError: pass
try:
    open({path!r}).read(); found.append("a file of yours")
except OSError: pass
try:
    open("/usr/forged", "w"); found.append("writing the system")
except OSError: pass
print(",".join(found) or "confined")
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the screen."""

    name: str
    state: str
    detail: str


def examine(path: Path) -> dict[str, Any]:
    """Examines a recipe; nothing is trained and nothing written.

    Returns:
        `checks` (name, state, detail), `passed` and the `lines` of the screen.

    Raises:
        InputError: the recipe, its world or its pools can't be used at all.
    """
    recipe = load_recipe(path)
    home = path.parent.resolve()
    run = (Path("runs") / recipe.name).absolute()
    checks = list(_Doctor(Workshop(recipe, home, run, accept_drift=True)).checks())
    passed = all(one.state != "fail" for one in checks)
    failed = sum(one.state == "fail" for one in checks)
    lines = [f"{one.state:<5} {one.name:<26} {one.detail}" for one in checks]
    last = "fit to run" if passed else f"{failed} of {len(checks)} checks fail: mend them before you train or measure"
    return {"checks": [asdict(one) for one in checks], "passed": passed, "lines": [*lines, last]}


class _Doctor:
    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._recipe: Recipe = workshop.recipe
        # a sealed pool stays shut: its log counts every opening
        open_pools = [name for name, pool in self._recipe.pools.items() if pool.sealed is None]
        pairs = [(workshop.pool(name), world) for name in open_pools for world in workshop.worlds]
        self._pools = [[task for task in pool if task.world == world] for pool, world in pairs]
        self._tasks = self._first(TASKS)

    def checks(self) -> Iterator[Check]:
        """All checks, in an order in which the first failure is the one to look at."""
        yield self._check("tools as locked", self._locked)
        if not self._tasks:
            yield Check("gold passes", "skip", "all pools are sealed; an open one of the same world is needed")
            return
        solution = self._workshop.solution
        solved = [task for task in self._tasks if has_solution(solution, task)]
        if solved:
            exam = WorldExam(self._workshop.harness, solution, solved)
            yield self._check("gold passes", exam.gold_passes)
            yield self._check("time of an episode", partial(self._choose, exam))
            chosen = [task for task in solved if task in self._tasks]
            if len(chosen) < len(solved):
                solved, exam = chosen, exam.narrowed(chosen)
            yield from self._examine_world(exam, solved)
        else:
            yield Check(
                "gold passes", "skip", "no task has a reference solution (`solution()`): verdicts are not examined"
            )
        if len(solved) < len(self._tasks):
            exam = WorldExam(self._workshop.harness, solution, self._tasks)
        yield self._check("sandbox confines", self._confines)
        yield self._check("silent fails", exam.silence_fails)
        yield self._check("random fails", exam.chance_fails)
        yield self._check("planted verdict", exam.forgery_fails)

    def _examine_world(self, exam: WorldExam, tasks: list[Task]) -> Iterator[Check]:
        yield self._check("gold without its last call", exam.shortcut_fails)
        yield self._check("three repeats agree", exam.repeats_agree)
        yield self._check("order does not matter", exam.order_does_not_matter)
        if all(one.success for one in exam.gold):
            yield from self._examine_model(exam, tasks)
        else:
            yield Check("tokens and loss", "skip", "the reference solution fails already")

    def _examine_model(self, exam: WorldExam, tasks: list[Task]) -> Iterator[Check]:
        try:
            facts = inspect_model(self._recipe.model.base)
            dialect = get_dialect(self._recipe.model.dialect, TokenizerCodec(facts.tokenizer))
            model = ModelExam(self._workshop.harness(), tasks, exam.gold, dialect, facts)
        except (QuintainError, ValueError) as error:  # a ValueError: an action that the dialect can't write
            yield Check("tokens and loss", "fail", " ".join(str(error).split()))
            return
        yield self._check("tokens round trip", model.round_trip)
        yield self._check("a call fires and parses", model.calls_fire)
        yield self._check("loss mask", model.mask)
        yield self._check("chat template", lambda: model.template(facts.tokenizer, self._workshop.toolset))
        budgets = {name: one.budget.tokens for name, one in self._workshop.worlds.items()}
        yield self._check("context and budget", lambda: model.context(budgets))
        room = facts.context
        if room is not None and any(stage.kind == "cpt" for stage in self._recipe.stages):
            yield self._check("context of pre-training", lambda: contexts(self._recipe, room))
        yield self._check("memory fits", lambda: memory(self._recipe, facts))
        minutes = least_minutes(self._recipe, facts, self._sizes(), model.mean_tokens)
        yield self._check("time fits", lambda: self._time(minutes))
        for stage in self._recipe.stages:
            if stage.kind == "grpo":
                yield self._check(f"groups of {stage.name} vary", partial(self._groups, stage))

    def _first(self, most: int) -> list[Task]:
        return list({task.id: task for pool in self._pools for task in some_tasks(pool, most)}.values())

    def _choose(self, exam: WorldExam) -> Finding:
        """Takes fewer tasks of every pool where the checks still to come would take longer than `SECONDS`."""
        seconds = exam.seconds()
        affordable = int(SECONDS / ((EPISODES - 1) * seconds * len(self._pools)))
        each = max(1, min(TASKS, affordable))
        self._tasks = self._first(each)
        text = f"{seconds:.2g} s; tasks of each pool in the other checks: {each}"
        if each == TASKS:
            return Finding("ok", text)
        return Finding("warn", f"{text}, not {TASKS}, with {EPISODES} episodes each, to end within a minute or two")

    def _check(self, name: str, work: Callable[[], Finding]) -> Check:
        """Runs one check; what breaks in it is its finding, so that the others are still seen."""
        say(f"{name} ...")
        try:
            found = work()
        except Exception as error:  # a world is somebody else's code and may raise anything
            text = str(error) if isinstance(error, QuintainError) else describe(error)
            found = Finding("fail", shorten(text, 300, placeholder=" ..."))
        return Check(name, found.state, found.detail)

    def _locked(self) -> Finding:
        path = self._workshop.lock_path()
        if not path.is_file():
            return Finding("skip", "no tools.lock yet: `quintain tools lock RECIPE` keeps you from surprises")
        found = self._workshop.lock_differences(path)
        return Finding("fail", "; ".join(map(str, found))) if found else Finding("ok", str(path))

    def _confines(self) -> Finding:
        try:
            text = asyncio.run(_try_to_escape())
        except CannotConfine as error:
            text = f"worlds that run programs can't be played here: {' '.join(str(error).split())}"
            return Finding("warn", text[:200])
        return (
            Finding("ok", "no network, no files of yours") if text == "confined" else Finding("fail", f"leaks: {text}")
        )

    def _sizes(self) -> dict[str, int]:
        return {name: self._workshop.pools.manifest(name).tasks for name in self._recipe.pools}

    def _time(self, least: float) -> Finding:
        text = f"at least {least:.1f} minutes of arithmetic"
        bounds = [one.at_most for one in self._recipe.targets if one.measure == "minutes" and one.at_most is not None]
        if not bounds:
            return Finding("ok", text)
        return Finding("ok" if least <= min(bounds) else "fail", f"{text}, target {min(bounds):g}")

    def _groups(self, stage: GRPOStage) -> Finding:
        from quintain.inference.local import LocalEngine

        model = self._workshop.model_path(stage.start)
        if stage.start != "base" and not Path(model).is_dir():
            return Finding("skip", f"stage {stage.start!r} is not trained yet")
        policy = self._workshop.policy(stage.start)
        engine = LocalEngine(policy.model, kv_tokens=self._recipe.kv_tokens, sessions=self._recipe.concurrency)
        try:
            agent = ModelAgent(engine, policy.dialect, Sampling(max_tokens=stage.max_tokens), name=stage.name)
            return groups_vary(self._workshop.harness(), stage, agent, self._workshop.pool(stage.pool))
        finally:
            engine.close()


def has_solution(solution: Callable[[Task], Any], task: Task) -> bool:
    """False where the world says that it has no reference solution for a task."""
    try:
        next(solution(task), None)
    except NotImplementedError:
        return False
    return True


def some_tasks(tasks: list[Task], most: int = TASKS) -> list[Task]:
    """At most `most` tasks, one of every template before a second of any."""
    seen: dict[str, int] = {}
    ranked = []
    for task in tasks:
        seen[task.template] = seen.get(task.template, 0) + 1
        ranked.append((seen[task.template], task))
    return [task for _, task in sorted(ranked, key=lambda pair: pair[0])[:most]]


async def _try_to_escape() -> str:
    """What a program in the sandbox reaches of what it must not: a listening port, a file of the user, the system."""
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    sandbox = Bubblewrap()
    with tempfile.NamedTemporaryFile() as secret:
        try:
            port = server.sockets[0].getsockname()[1]
            done = await sandbox.run(Program(_ESCAPES.format(port=port, path=secret.name)))
        finally:
            await sandbox.close()
            server.close()
    return done.stdout.decode().strip() or f"the program broke: {done.stderr.decode().strip()[-100:]}"
