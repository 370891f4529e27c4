"""What must fit between a recipe's stages: names that resolve, splits and fault wordings kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quintain.recipe.stage_kinds import DATA, TRAINING, AnyStage
from quintain.recipe.tables import (
    FaultsSection,
    PoolSection,
    ProgramSection,
    WorldEntry,
    WorldSection,
)


def check_worlds(
    world: WorldSection | None, worlds: Mapping[str, WorldEntry], pools: Mapping[str, PoolSection]
) -> None:
    """One world or several, and pools that divide their tasks among worlds of the recipe."""
    if world is not None and worlds:
        raise ValueError("give either `[world]` or `[worlds.NAME]` tables, not both")
    for name, pool in pools.items():
        unknown = [one for one in pool.shares if one not in worlds]
        if unknown:
            found = ", ".join(worlds) or "none (shares need `[worlds.NAME]` tables)"
            raise ValueError(f"pools.{name}.shares: no world {unknown[0]!r}; worlds: {found}")


def check_stage_world(stage: Any, worlds: Mapping[str, WorldEntry]) -> None:
    """The one world that a stage works in is a world of the recipe."""
    name = getattr(stage, "world", None)
    if name is not None and name not in worlds:
        found = ", ".join(worlds) or "none (it is for recipes with `[worlds.NAME]` tables)"
        raise ValueError(f"stage {stage.name!r}: no world {name!r}; worlds: {found}")
    if stage.kind == "fas" and name is None and len(worlds) > 1:
        raise ValueError(
            f"stage {stage.name!r}: whose tools? Name one world, `world = ...`; worlds: {', '.join(worlds)}"
        )


def check_references(stage: Any, seen: dict[str, str], pools: dict[str, PoolSection]) -> None:
    """What a stage names comes before it and is of a kind it can use."""

    def need(key: str, name: str, kinds: tuple[str, ...], extra: tuple[str, ...] = ()) -> None:
        allowed = [*extra, *(one for one, kind in seen.items() if kind in kinds)]
        if name not in allowed:
            found = ", ".join(allowed) or "none yet"
            raise ValueError(f"stage {stage.name!r}: {key} = {name!r} is not known there; allowed: {found}")

    if hasattr(stage, "pool") and stage.pool not in pools:
        raise ValueError(f"stage {stage.name!r}: pool = {stage.pool!r}; pools: {', '.join(pools)}")
    if getattr(stage, "validation", None) is not None and stage.validation not in pools:
        raise ValueError(f"stage {stage.name!r}: validation = {stage.validation!r}; pools: {', '.join(pools)}")
    shut = [one for key in ("pool", "validation") if (one := getattr(stage, key, None)) and pools[one].sealed]
    if shut and stage.kind != "eval":
        raise ValueError(f"stage {stage.name!r}: pool {shut[0]!r} is sealed; only evaluation stages may open it")
    if stage.kind == "rollout":
        need("agent", stage.agent, TRAINING, ("oracle", "base"))
    if stage.kind in TRAINING:
        need("start", stage.start, TRAINING, ("base",))
    for name in getattr(stage, "data", ()):
        need("data", name, DATA[stage.kind])
    if stage.kind == "cpt" and stage.replay is not None:
        need("replay", stage.replay, ("cpt",))
    if stage.kind == "eval":
        need("model", stage.model, TRAINING, ("base",))


def check_program(stage: Any, programs: dict[str, ProgramSection]) -> None:
    """A program exists, and plays with tokens of a model in this process, drawn freely."""
    name = getattr(stage, "program", None)
    if name is None:
        return
    if name not in programs:
        found = ", ".join(programs) or "none yet"
        raise ValueError(f"stage {stage.name!r}: program = {name!r} is not known there; allowed: {found}")
    if getattr(stage, "agent", None) == "oracle":
        raise ValueError(f"stage {stage.name!r}: program = {name!r} needs a model: set `agent` to `base` or a stage")
    if getattr(stage, "endpoint", None) is not None:
        raise ValueError(f"stage {stage.name!r}: give either `program` or `endpoint`: a program's model runs here")
    if hasattr(stage, "sampling") and stage.sampling.grammar:
        raise ValueError(f"stage {stage.name!r}: sampling.grammar is of the world's tools; a program brings its own")


def check_splits(stage: Any, stages: list[AnyStage], pools: dict[str, PoolSection]) -> None:
    """What was found while evaluation tasks were played may not enter a memory of training."""
    if stage.kind != "fas":
        return
    for one in stages:
        pool = getattr(one, "pool", None)
        if one.name in stage.data and pool and pools[pool].split == "eval":
            raise ValueError(f"stage {stage.name!r}: data = {one.name!r} plays the evaluation pool {pool!r}")


def check_faults(stage: Any, faults: dict[str, FaultsSection], stages: list[AnyStage]) -> None:
    """Faults exist, training never sees held-out wordings, and the oracle never faces faults it doesn't look at."""
    name = getattr(stage, "faults", None)
    if name is not None and name not in faults:
        found = ", ".join(faults) or "none yet"
        raise ValueError(f"stage {stage.name!r}: faults = {name!r} is not known there; allowed: {found}")
    learns = stage.kind in TRAINING or hasattr(stage, "data")
    read = [stage, *(one for one in stages if one.name in getattr(stage, "data", ()))] if learns else []
    seen = [getattr(one, "faults", None) for one in read]
    held_out = [one for one in seen if one in faults and faults[one].wordings == "held_out"]
    if held_out:
        raise ValueError(
            f"stage {stage.name!r}: faults = {held_out[0]!r} has held-out wordings, which training may not see"
        )
    blind = [one.name for one in read if one.kind == "rollout" and one.faults and one.agent == "oracle"]
    if blind and stage.kind != "recover":
        raise ValueError(
            f"stage {stage.name!r}: data = {blind[0]!r} has the oracle play with faults, which it does not look at; "
            "put a `recover` stage between"
        )
