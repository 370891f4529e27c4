"""The worlds of a recipe: one, or several by the name their tasks spell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quintain.harness.world import World
from quintain.interface.episode import Budget, Digests
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset
from quintain.recipe.recipe import Recipe
from quintain.recipe.tables import PoolSection, WorldSection
from quintain.recipe.user_code import load_world, somebodys_code


@dataclass(frozen=True, slots=True)
class RecipeWorld:
    """A world as a recipe sets it up.

    Attributes:
        section: its table.
        world_class: what the table names.
        budget: what one of its episodes may use.
    """

    section: WorldSection
    world_class: type[World]
    budget: Budget

    @property
    def name(self) -> str:
        """As its tasks spell it."""
        return self.world_class.name

    def make(self) -> World:
        """A fresh instance."""
        with somebodys_code(f"world {self.section.world!r}"):
            return self.world_class(**self.section.options)

    def toolset(self) -> Toolset:
        """Its tools; before `reset` those that all of its tasks share."""
        with somebodys_code(f"toolset() of world {self.section.world!r}"):
            return self.make().toolset()

    def digests(self, dialect: str) -> Digests:
        """Digests of toolset, dialect and world data.

        Args:
            dialect: its digest.
        """
        return Digests(self.toolset().digest, dialect, self.make().data_digest())

    def generate(self, pool: str, section: PoolSection, count: int) -> list[Task]:
        """Tasks of its generator for a pool."""
        assert section.split is not None
        with somebodys_code(f"pool {pool!r}: generate() of world {self.section.world!r}"):
            made = self.world_class.generate(
                section.split, count, section.seed, section.languages, section.templates, **self.section.options
            )
            return list(made)


def recipe_worlds(recipe: Recipe, home: Path) -> dict[str, RecipeWorld]:
    """Every world of a recipe, by name.

    Args:
        recipe: names them.
        home: the recipe's folder, searched first.

    Raises:
        InputError: a class can't be imported, or a table has another name than its world.
    """
    if not recipe.worlds:
        alone = recipe.world or WorldSection()
        only = RecipeWorld(alone, load_world(alone.world, home), recipe.budget.budget())
        return {only.name: only}
    found = {}
    for name, entry in recipe.worlds.items():
        world_class = load_world(entry.world, home)
        if world_class.name != name:
            raise InputError(
                f"worlds.{name}: tasks of {entry.world} spell their world {world_class.name!r}; "
                f"write [worlds.{world_class.name}]"
            )
        found[name] = RecipeWorld(entry, world_class, (entry.budget or recipe.budget).budget())
    return found


def divide(count: int, shares: dict[str, float]) -> dict[str, int]:
    """Whole numbers that sum to `count`, as near to the shares as can be (largest remainders first)."""
    exact = {name: count * share for name, share in shares.items()}
    parts = {name: int(value + 1e-9) for name, value in exact.items()}
    short = sorted(parts, key=lambda name: parts[name] - exact[name])
    return {name: parts[name] + (name in short[: count - sum(parts.values())]) for name in parts}
