"""What the stages of one run share: the world, the pools, and the models by the name of their stage."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.harness.world import World
from quintain.interface.canonical import digest
from quintain.interface.dialects import get as get_dialect
from quintain.interface.dialects.base import Dialect
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task, load_tasks, save_tasks
from quintain.recipe import Recipe


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
    """

    def __init__(self, recipe: Recipe, home: Path, folder: Path) -> None:
        self.recipe = recipe
        self.home = home
        self.folder = folder
        self._pools: dict[str, list[Task]] = {}
        self._loaded: tuple[str, Policy] | None = None

    @cached_property
    def world_class(self) -> type[World]:
        """The recipe's world."""
        return load_world(self.recipe.world.world, self.home)

    def world(self) -> World:
        """A fresh instance."""
        return self.world_class(**self.recipe.world.options)

    def pool(self, name: str) -> list[Task]:
        """Tasks of a pool. Generated ones are written into the run's folder and read from there ever after."""
        if name not in self._pools:
            self._pools[name] = self._make_pool(name)
        return self._pools[name]

    def pool_digest(self, name: str) -> str:
        """Digest of a pool's tasks."""
        return digest([task.to_json() for task in self.pool(name)])

    def _make_pool(self, name: str) -> list[Task]:
        section = self.recipe.pools[name]
        if section.file is not None:
            tasks = load_tasks(self.home / section.file)
        else:
            assert section.split is not None
            options = self.recipe.world.options
            tasks = self.world_class.generate(section.split, section.count, section.seed, section.languages, **options)
        if not tasks:
            raise InputError(f"pool {name!r} has no tasks")
        wrong = next((task for task in tasks if task.world != self.world_class.name), None)
        if wrong is not None:
            raise InputError(
                f"pool {name!r}: task {wrong.id!r} is of world {wrong.world!r}, not {self.world_class.name!r}"
            )
        save_tasks(self.folder / "pools" / f"{name}.jsonl", tasks)
        return tasks

    def harness(self, journal: Journal) -> Harness:
        """A harness that keeps this journal."""
        recipe = self.recipe
        return Harness(
            self.world,
            budget=recipe.budget.budget(),
            journal=journal,
            concurrency=recipe.concurrency,
            dialect=recipe.model.dialect,
            seed=recipe.seed,
        )

    def policy(self, name: str) -> Policy:
        """The base model (`base`) or the model a stage trained. The last one asked for stays in memory."""
        if self._loaded is None or self._loaded[0] != name:
            from quintain.inference.models import load_model

            self._loaded = None  # frees the last one before the next is loaded
            reference = self.recipe.model.base if name == "base" else str(self.folder / name / "model")
            model, tokenizer = load_model(reference)
            dialect = get_dialect(self.recipe.model.dialect, TokenizerCodec(tokenizer))
            self._loaded = (name, Policy(model, tokenizer, dialect))
        return self._loaded[1]

    def take_policy(self, name: str) -> Policy:
        """The same, but for training: the model is changed in place, so it is not kept under this name."""
        policy = self.policy(name)
        self._loaded = None
        return policy

    def keep_policy(self, name: str, policy: Policy) -> None:
        """Keeps a model just trained under the name of its stage."""
        self._loaded = (name, policy)

    def digests(self) -> dict[str, str]:
        """Digests of toolset, dialect and world data."""
        world = self.world()
        return {"toolset": world.toolset().digest, "dialect": self.recipe.model.dialect, "world": world.data_digest()}

    def versions(self) -> dict[str, str]:
        """Versions of what results depend on."""
        names = ("quintain", "torch", "transformers", "tokenizers", "peft")
        found = {name: metadata.version(name) for name in names if _installed(name)}
        return {"python": ".".join(map(str, sys.version_info[:3])), **found}


def _installed(name: str) -> bool:
    return any(True for _ in metadata.distributions(name=name))


def load_world(reference: str, home: Path) -> type[World]:
    """Imports a world's class from `module:Class`; `home` is searched first.

    Raises:
        InputError: there is no such module or class, or it is no world.
    """
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise InputError(f"world {reference!r} must be spelled module:Class")
    if str(home) not in sys.path:
        sys.path.insert(0, str(home))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(f"world {reference!r}: {error}; is it installed, or beside the recipe?") from None
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, World)):
        raise InputError(f"world {reference!r}: {module_name} has no World of that name")
    return found
