"""The pools of a recipe: made, read, or opened; and their manifests."""

from __future__ import annotations

import json
from functools import cached_property
from importlib import metadata
from pathlib import Path

from quintain.curation.pools import Manifest, tasks_digest
from quintain.curation.seal import Purpose, open_pool, openings, sealed_manifest
from quintain.harness.world import World
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task, load_tasks, save_tasks
from quintain.recipe.recipe import Recipe
from quintain.recipe.user_code import check_tasks, load_world, somebodys_code


class RecipePools:
    """Makes every pool once.

    Args:
        recipe: names them.
        home: the recipe's folder.
    """

    def __init__(self, recipe: Recipe, home: Path) -> None:
        self.recipe = recipe
        self.home = home
        self._made: dict[str, list[Task]] = {}
        self._opened: dict[str, list[Task]] = {}
        self._openings: dict[str, dict[str, int]] = {}

    @cached_property
    def world_class(self) -> type[World]:
        """The recipe's world."""
        return load_world(self.recipe.world.world, self.home)

    def tasks(self, name: str) -> list[Task]:
        """Tasks of a pool, from its file or the world's generator.

        Raises:
            InputError: it is sealed, or holds no tasks of this world.
        """
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def for_evaluation(self, name: str, stage: str, checkpoint: str) -> list[Task]:
        """Tasks an evaluation stage measures. Opening a sealed pool is written into its log, once a stage."""
        if self.recipe.pools[name].sealed is None:
            return self.tasks(name)
        if stage not in self._opened:
            self._opened[stage] = self.open(name, "evaluation", checkpoint)
        return self._opened[stage]

    def open(self, name: str, purpose: Purpose, checkpoint: str = "") -> list[Task]:
        """Tasks of a sealed pool; its log says that it was opened, and what for."""
        section = self.recipe.pools[name]
        assert section.sealed is not None
        assert section.key is not None
        tasks, log = open_pool(self.home / section.sealed, self.home / section.key, purpose, checkpoint)
        check_tasks(tasks, f"pool {name!r}", self.world_class.name)
        self._openings[name] = openings(log)
        return tasks

    def openings(self, name: str) -> dict[str, int]:
        """How often the evaluation of each checkpoint opened a sealed pool, as of its last opening in this process."""
        return self._openings.get(name, {})

    def sample(self) -> Task:
        """Some task of the recipe, for what needs one: of a pool that is not sealed, if there is one."""
        pools = self.recipe.pools
        name = next((name for name, pool in pools.items() if pool.sealed is None), None)
        return self.tasks(name)[0] if name is not None else self.open(next(iter(pools)), "probe")[0]

    def manifest(self, name: str) -> Manifest:
        """What is known of a pool without opening it."""
        section = self.recipe.pools[name]
        if section.sealed is not None:
            return sealed_manifest(self.home / section.sealed).model_copy(update={"name": name})
        keys = {"file", "templates"} if section.file else {"split", "count", "seed", "languages", "templates"}
        world = self._world()
        return Manifest(
            name=name,
            world=self.world_class.name,
            tasks=len(self.tasks(name)),
            digest=tasks_digest(self.tasks(name)),
            source=section.model_dump(mode="json", include=keys),
            generator=f"quintain {metadata.version('quintain')}",
            toolset=world.toolset().digest,
            data=world.data_digest(),
        )

    def _make(self, name: str) -> list[Task]:
        section = self.recipe.pools[name]
        if section.sealed is not None:
            raise InputError(f"pool {name!r} is sealed; only evaluation stages may open it")
        if section.file is not None:
            tasks = load_tasks(self.home / section.file)
        else:
            assert section.split is not None
            options = self.recipe.world.options
            with somebodys_code(f"pool {name!r}: generate() of world {self.recipe.world.world!r}"):
                made = self.world_class.generate(
                    section.split, section.count, section.seed, section.languages, section.templates, **options
                )
                tasks = list(made)
        if not tasks:
            raise InputError(f"pool {name!r} has no tasks")
        check_tasks(tasks, f"pool {name!r}", self.world_class.name)
        return tasks

    def save(self, folder: Path) -> None:
        """Writes every pool and its manifest into the run's folder; of a sealed one the manifest alone."""
        for name, section in self.recipe.pools.items():
            if section.sealed is None:
                save_tasks(folder / "pools" / f"{name}.jsonl", self.tasks(name))
            path = manifest_path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.manifest(name).to_json(), ensure_ascii=False, indent=1), encoding="utf-8")

    def _world(self) -> World:
        with somebodys_code(f"world {self.recipe.world.world!r}"):
            return self.world_class(**self.recipe.world.options)


def manifest_path(folder: Path, pool: str) -> Path:
    """Where a run keeps the manifest of a pool."""
    return folder / "pools" / f"{pool}.manifest.json"
