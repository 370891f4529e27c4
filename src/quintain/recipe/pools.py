"""The pools of a recipe: made, read, or opened; and their manifests."""

from __future__ import annotations

import json
from functools import cached_property
from importlib import metadata
from itertools import chain
from pathlib import Path

from quintain.curation.pools import Manifest, check_pool, tasks_digest
from quintain.curation.seal import Purpose, open_pool, openings, sealed_manifest
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task, load_tasks, save_tasks
from quintain.recipe.recipe import Recipe
from quintain.recipe.user_code import check_tasks
from quintain.recipe.worlds import RecipeWorld, divide, recipe_worlds


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
    def worlds(self) -> dict[str, RecipeWorld]:
        """The recipe's worlds, by name."""
        return recipe_worlds(self.recipe, self.home)

    def tasks(self, name: str) -> list[Task]:
        """Tasks of a pool, from its file or the world's generator.

        Raises:
            InputError: it is sealed, or holds no tasks of this world.
        """
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def for_evaluation(self, name: str, stage: str, checkpoint: str) -> list[Task]:
        """Tasks an evaluation stage measures. Opening a sealed pool is written into its log, once a stage.

        Raises:
            InputError: a task of a file has nothing to verify it by, or the pool can't be opened.
        """
        section = self.recipe.pools[name]
        if section.sealed is None:
            if section.file is not None:  # what a world draws itself it can also judge
                check_pool(self.tasks(name), f"pool {name!r}")
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
        check_tasks(tasks, f"pool {name!r}", self.worlds)
        self._openings[name] = openings(log)
        return tasks

    def openings(self, name: str) -> dict[str, int]:
        """How often the evaluation of each checkpoint opened a sealed pool, as of its last opening in this process."""
        return self._openings.get(name, {})

    def sample(self, world: str) -> Task:
        """Some task of a world, for what needs one: of a pool that is not sealed, if there is one.

        Raises:
            InputError: no pool has any.
        """
        sealed = [name for name, pool in self.recipe.pools.items() if pool.sealed is not None]
        shut = (self.open(name, "probe") for name in sealed)
        plain = (self.tasks(name) for name in self.recipe.pools if name not in sealed)
        found = next((task for tasks in chain(plain, shut) for task in tasks if task.world == world), None)
        if found is None:
            raise InputError(f"no pool has a task of world {world!r}")
        return found

    def manifest(self, name: str) -> Manifest:
        """What is known of a pool without opening it."""
        section = self.recipe.pools[name]
        if section.sealed is not None:
            return sealed_manifest(self.home / section.sealed).model_copy(update={"name": name})
        keys = {"file", "templates"} if section.file else {"split", "count", "seed", "languages", "templates"}
        tasks = self.tasks(name)
        worlds = [self.worlds[one] for one in dict.fromkeys(task.world for task in tasks)]
        return Manifest(
            name=name,
            world=", ".join(one.name for one in worlds),
            tasks=len(tasks),
            digest=tasks_digest(tasks),
            source=section.model_dump(mode="json", include=keys | ({"shares"} if section.shares else set())),
            generator=f"quintain {metadata.version('quintain')}",
            toolset=", ".join(one.toolset().digest for one in worlds),
            data=", ".join(one.make().data_digest() for one in worlds),
        )

    def _make(self, name: str) -> list[Task]:
        section = self.recipe.pools[name]
        if section.sealed is not None:
            raise InputError(f"pool {name!r} is sealed; only evaluation stages may open it")
        if section.file is not None:
            tasks = load_tasks(self.home / section.file)
        else:
            shares = section.shares or dict.fromkeys(self.worlds, 1 / len(self.worlds))
            parts = divide(section.count, shares)
            made = [self.worlds[one].generate(name, section, count) for one, count in parts.items() if count]
            tasks = list(chain.from_iterable(made))
        if not tasks:
            raise InputError(f"pool {name!r} has no tasks")
        check_tasks(tasks, f"pool {name!r}", self.worlds)
        return tasks

    def save(self, folder: Path) -> None:
        """Writes every pool and its manifest into the run's folder; of a sealed one the manifest alone."""
        for name, section in self.recipe.pools.items():
            if section.sealed is None:
                save_tasks(folder / "pools" / f"{name}.jsonl", self.tasks(name))
            path = manifest_path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.manifest(name).to_json(), ensure_ascii=False, indent=1), encoding="utf-8")


def manifest_path(folder: Path, pool: str) -> Path:
    """Where a run keeps the manifest of a pool."""
    return folder / "pools" / f"{pool}.manifest.json"
