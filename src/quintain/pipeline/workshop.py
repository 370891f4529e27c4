"""What the stages of one run share: the world, the pools, and the models by the name of their stage."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from quintain.harness.calls import run_call
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.harness.threads import settle
from quintain.harness.world import World
from quintain.interface.dialects import digest_of
from quintain.interface.dialects import get as get_dialect
from quintain.interface.dialects.base import Dialect
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.errors import InputError, InterfaceDrift
from quintain.interface.lock import Difference, Execute, Lock, Probe, check_lock, drift, read_lock, write_lock
from quintain.interface.messages import Call
from quintain.interface.tasks import Task
from quintain.progress import say
from quintain.recipe import Recipe
from quintain.recipe.pools import RecipePools
from quintain.recipe.user_code import somebodys_code
from quintain.training.config import SUMMARY

LOCK = "tools.lock"


@dataclass(frozen=True, slots=True)
class Policy:
    """A model with what it needs to read and write."""

    model: Any
    tokenizer: Any
    dialect: Dialect


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

    @cached_property
    def world_class(self) -> type[World]:
        """The recipe's world."""
        return self.pools.world_class

    def world(self) -> World:
        """A fresh instance."""
        with somebodys_code(f"world {self.recipe.world.world!r}"):
            return self.world_class(**self.recipe.world.options)

    def pool(self, name: str) -> list[Task]:
        """Tasks of a pool that is not sealed."""
        return self.pools.tasks(name)

    def pool_digest(self, name: str) -> str:
        """Digest of a pool's tasks."""
        return self.pools.manifest(name).digest

    def harness(self, journal: Journal, faults: str | None = None, dialect: str | None = None) -> Harness:
        """A harness that keeps this journal and injects the faults of that name.

        Args:
            journal: of the stage.
            faults: name of a `[faults.NAME]`.
            dialect: digest to record; the recipe's dialect by default, "" for an agent without tokens.

        Raises:
            InputError: the faults name a tool that the world does not have.
        """
        recipe = self.recipe
        plan = recipe.faults[faults].plan() if faults else None
        unknown = sorted(set(plan.tools) - set(self.world().toolset().names)) if plan else []
        if unknown:
            tools = ", ".join(self.world().toolset().names)
            raise InputError(f"faults.{faults}.tools: the world has no tool {unknown[0]!r}; tools: {tools}")
        return Harness(
            self.world,
            budget=recipe.budget.budget(),
            journal=journal,
            concurrency=recipe.concurrency,
            dialect=digest_of(recipe.model.dialect) if dialect is None else dialect,
            seed=recipe.seed,
            faults=plan,
        )

    def policy(self, name: str) -> Policy:
        """The base model (`base`) or the model a stage trained. The last one asked for stays in memory."""
        if self._loaded is None or self._loaded[0] != name:
            from quintain.inference.models import load_model
            from quintain.inference.products import lay_by_columns

            self._loaded = None  # frees the last one before the next is loaded
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
        now = self.digests()
        # where tools come with the tasks, those a model was trained on are none that could have changed
        keys = ("dialect",) if self.world_class.tools_per_task else ("toolset", "dialect")
        other = [key for key in keys if trained and all(one[key] != now[key] for one in trained)]
        locked = "toolset" in keys and (model / LOCK).is_file()
        found = self.lock_differences(model / LOCK) if locked else []
        if "toolset" in other and not found:
            found = [Difference("", f"toolset changed, how is not known (it has no {LOCK})")]
        if "dialect" in other:
            found.append(Difference("", f"dialect changed to {self.recipe.model.dialect!r}"))
        return found

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

    def write_lock(self, path: Path) -> Lock:
        """Records the interface, with the recipe's probe calls run on a fresh world."""
        probes = [Probe(one.tool, one.arguments) for one in self.recipe.world.probes]
        with self._probed_world(bool(probes)) as world:
            return asyncio.run(write_lock(path, world.toolset(), world.name, probes, self._executor(world)))

    def lock_differences(self, path: Path) -> list[Difference]:
        """How the live tools differ from a lock file."""
        lock = read_lock(path)
        with self._probed_world(bool(lock.observed)) as world:
            return asyncio.run(check_lock(lock, world.toolset(), world.name, self._executor(world)))

    @contextmanager
    def _probed_world(self, ready: bool) -> Iterator[World]:
        """A fresh instance; `ready` for calls, reset to the first task of the first pool."""
        world = self.world()
        with somebodys_code(f"toolset() of world {self.recipe.world.world!r}"):
            world.toolset()
        try:
            if ready:
                sample = self.pools.sample()
                with somebodys_code(f"reset() of world {self.recipe.world.world!r}"):
                    asyncio.run(settle(world.reset, sample))
            yield world
        finally:
            world.abandon()

    def _executor(self, world: World) -> Execute:
        toolset, budget = world.toolset(), self.recipe.budget.budget()

        async def execute(name: str, arguments: dict[str, Any]) -> Any:
            observation = await run_call(Call("probe", name, arguments), toolset, budget)
            if observation.error:
                raise InputError(observation.content)
            return observation.value

        return execute

    def digests(self) -> dict[str, str]:
        """Digests of toolset, dialect and world data."""
        world = self.world()
        return {
            "toolset": world.toolset().digest,
            "dialect": digest_of(self.recipe.model.dialect),
            "world": world.data_digest(),
        }

    def versions(self) -> dict[str, str]:
        """Versions of what results depend on."""
        names = ("quintain", "torch", "transformers", "tokenizers", "peft")
        found = {name: metadata.version(name) for name in names if _installed(name)}
        return {"python": ".".join(map(str, sys.version_info[:3])), **found}


def _installed(name: str) -> bool:
    return any(True for _ in metadata.distributions(name=name))
