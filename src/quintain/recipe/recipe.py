"""A recipe: one TOML file that says what to run. Unknown keys, wrong types and missing files are one-line errors."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from quintain.interface.errors import InputError
from quintain.recipe.checks import (
    check_faults,
    check_program,
    check_references,
    check_splits,
    check_stage_world,
    check_worlds,
)
from quintain.recipe.errors import explain, numbers
from quintain.recipe.stage_kinds import TRAINING, AnyStage
from quintain.recipe.tables import (
    BudgetSection,
    ClusterSection,
    EngineSection,
    FaultsSection,
    ModelSection,
    Name,
    PlanSection,
    PoolSection,
    ProgramSection,
    Section,
    WorldEntry,
    WorldSection,
)
from quintain.synthesis.general import PYTHON_DOCS

LARGEST = 2**53 - 1
"""Largest whole number that every reader of JSON keeps exactly."""


TRACKERS = r"^(tensorboard|wandb|trackio|prometheus(:[0-9]{1,5})?)$"


class TargetSection(Section):
    """`[[targets]]`: what the run is to reach; the report says whether it did."""

    measure: Literal["pass1", "minutes"]
    """pass@1 of an evaluation stage, or the minutes of the whole run."""
    stage: str = ""
    """The evaluation stage, for `pass1`."""
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> TargetSection:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("needs either `at_least` or `at_most`")
        return self


class Recipe(Section):
    """The whole file."""

    name: Name
    seed: int = 0
    """Of the episodes; pools and training have seeds of their own."""
    concurrency: int = Field(32, ge=1)
    """Episodes under way at once."""
    kv_tokens: int = Field(32_768, ge=1)
    """Most tokens in the engine's cache; episodes wait when it is full."""
    engine: EngineSection = EngineSection()
    model: ModelSection = ModelSection()
    world: WorldSection | None = None
    """None is the desk, unless there are `worlds`."""
    worlds: dict[str, WorldEntry] = {}
    """Several worlds, by the name their tasks spell."""
    cluster: ClusterSection | None = None
    """None plays in this process."""
    budget: BudgetSection = BudgetSection()  # type: ignore[call-arg]
    faults: dict[Name, FaultsSection] = {}
    programs: dict[Name, ProgramSection] = {}
    pools: dict[Name, PoolSection]
    stages: list[AnyStage] = Field(min_length=1)
    targets: list[TargetSection] = []
    metrics_to: list[Annotated[str, Field(pattern=TRACKERS)]] = []
    """Where metrics go besides the report; `prometheus:PORT` for another port."""
    plan: PlanSection = PlanSection()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _names_resolve(self) -> Recipe:
        check_worlds(self.world, self.worlds, self.pools)
        seen: dict[str, str] = {}
        for stage in self.stages:
            check_references(stage, seen, self.pools)
            check_stage_world(stage, self.worlds)
            check_faults(stage, self.faults, self.stages)
            check_program(stage, self.programs)
            check_splits(stage, self.stages, self.pools)
            if stage.name == "pools" or (stage.kind in TRAINING and stage.name in ("base", "oracle")):
                raise ValueError(
                    f"stages: the {stage.kind} stage can't be named {stage.name!r}, which means something else"
                )
            if stage.name in seen:
                raise ValueError(f"stages: two stages are named {stage.name!r}")
            seen[stage.name] = stage.kind
        trained = [stage.name for stage in self.stages if stage.kind == "grpo"]
        if trained and self.engine.kind == "server":
            raise ValueError(f'engine: a server keeps its weights, but stage {trained[0]!r} trains; use kind = "vllm"')
        for target in self.targets:
            if target.measure == "pass1" and seen.get(target.stage) != "eval":
                known = ", ".join(name for name, kind in seen.items() if kind == "eval")
                raise ValueError(f"targets: stage = {target.stage!r} is no evaluation stage; allowed: {known}")
        return self


def load_recipe(path: Path) -> Recipe:
    """Reads and checks a recipe.

    Raises:
        InputError: the file is missing, is no TOML, or a key is unknown or of the wrong type.
    """
    recipe = recipe_from_table(read_toml(path, "recipe not found"), str(path))
    for name, pool in recipe.pools.items():
        for key in ("file", "sealed", "key"):
            named = getattr(pool, key)
            if named is not None and not (path.parent / named).is_file():
                raise InputError(f"{path}: pools.{name}.{key}: no such file: {path.parent / named}")
    for stage in recipe.stages:
        file = getattr(stage, "corrections", None)
        if file is not None and not (path.parent / file).is_file():
            raise InputError(f"{path}: stage {stage.name!r}: corrections: no such file: {path.parent / file}")
    for stage in recipe.stages:
        for key, reference in _texts(stage):
            if reference != PYTHON_DOCS and not (path.parent / reference).exists():
                where = f"{path}: stage {stage.name!r}: {key}"
                raise InputError(f"{where}: no such file or folder: {path.parent / reference}")
    return recipe


def _texts(stage: Any) -> list[tuple[str, str]]:
    """Files and folders a stage reads, each with the key that names it."""
    return [(key, str(one)) for key in ("text", "documents") for one in getattr(stage, key, ())]


def read_toml(path: Path, missing: str) -> dict[str, Any]:
    """A TOML file; `missing` is the message where there is none.

    Raises:
        InputError: it is missing, or no TOML.
    """
    if not path.is_file():
        raise InputError(f"{missing}: {path}")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None


def recipe_from_table(table: dict[str, Any], where: str) -> Recipe:
    """Checks a parsed recipe.

    Raises:
        InputError: names the first wrong key and what is allowed.
    """
    for key, number in numbers(table):
        if not (math.isfinite(number) and abs(number) <= LARGEST):
            raise InputError(f"{where}: {key}: {number} is beyond what JSON keeps exactly; allowed: up to 2**53")
    try:
        return Recipe.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{where}: {explain(error, Recipe)}") from None
