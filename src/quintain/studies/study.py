"""Studies: one recipe run again and again with single keys changed, its results set side by side.

The last stages of the recipe are a cell; all before them are run once and shared. Every cell's stages stand in one
run's folder under names of their own, so an interrupted study goes on cell by cell, and the run's report shows all of
them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from quintain.evaluation.study import Row, plot, rows_of, table
from quintain.harness.journal import read_journal
from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.pipeline.reporting import report
from quintain.pipeline.run import Finished, read_manifest, run_recipe, write_json, write_text
from quintain.pipeline.stages import STAGES
from quintain.recipe import Recipe, recipe_from_table

TOKENS_PER_SECOND = 200
"""Training tokens a second, and"""
SECONDS_PER_EPISODE = 0.86
"""seconds of an evaluated episode, as the quickstart took on 2 cores of an Intel Xeon at 2.80 GHz. One core takes twice
as long."""

_NAMED = ("start", "model", "agent")
"""Keys of a stage that name another one; `data` names several."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One training and its evaluation.

    Attributes:
        group: its setting; cells that differ in the seed alone share it.
        seed: of the training.
        changes: keys of the cell's stages and their values, the stage named by its kind: `curate.mix.mask`. A kind
            alone with None leaves its stage out; a function makes the value from the stage as it is in the recipe.
    """

    group: str
    seed: int
    changes: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Suffix of its stages' names."""
        return f"{self.group}-{self.seed}"


@dataclass(frozen=True, slots=True)
class Study:
    """What is varied.

    Attributes:
        name: as the command spells it.
        about: one sentence.
        recipe: file in the folder of recipes.
        cell: kinds of the stages at the recipe's end that make a cell.
        settings: keys to change, by the setting's name.
        full: more settings, asked for by a flag.
        seed_keys: keys that take the seed.
        seeds: one cell for each.
        more: says more of the finished cells, in lines.
    """

    name: str
    about: str
    recipe: str
    cell: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]]
    full: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed_keys: tuple[str, ...] = ("sft.train.seed",)
    seeds: tuple[int, ...] = (1, 2, 3)
    more: Callable[[Recipe, Sequence[Cell], Path, Path], list[str]] | None = None

    def cells(self, full: bool, seeds: int | None = None) -> list[Cell]:
        """Every setting with every seed, or the first few, seed by seed: an interrupted study has whole rows first."""
        settings = self.full if full and self.full else self.settings
        return [
            Cell(name, seed, {**settings[name], **dict.fromkeys(self.seed_keys, seed)})
            for seed, name in product(self.seeds[:seeds], settings)
        ]


def expand(recipe: Recipe, study: Study, cells: Sequence[Cell]) -> Recipe:
    """The recipe with its last stages once for every cell; cells that pre-train alike share the model.

    Raises:
        InputError: the recipe does not end with the study's kinds of stages, or a change names no key of theirs.
    """
    parts = recipe.model_dump(mode="json", exclude_none=True)
    count = len(study.cell)
    shared, last = parts["stages"][:-count], parts["stages"][-count:]
    kinds = tuple(stage["kind"] for stage in last)
    if kinds != study.cell:
        raise InputError(f"study {study.name!r}: the recipe must end with {', '.join(study.cell)}; it has {kinds}")
    stages = _shared([stage for cell in cells for stage in _stages_of(cell, last)])
    return recipe_from_table({**parts, "stages": [*shared, *stages], "targets": []}, f"study {study.name}")


def _stages_of(cell: Cell, stages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {stage["name"]: f"{stage['name']}-{cell.name}" for stage in stages}
    made = []
    for stage in stages:
        if cell.changes.get(stage["kind"], stage) is None:
            continue
        one = {**stage, "name": names[stage["name"]]}
        one |= {key: names.get(stage[key], stage[key]) for key in _NAMED if key in stage}
        if "data" in stage:
            one["data"] = [names.get(name, name) for name in stage["data"]]
        for key, value in cell.changes.items():
            kind, _, path = key.partition(".")
            if kind == stage["kind"]:
                one = _with(one, path.split("."), value(stage) if callable(value) else value)
        made.append(one)
    return made


def _shared(stages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stages without pre-training that an earlier one did already: what names it names the earlier one."""
    made: dict[str, str] = {}
    instead: dict[str, str] = {}
    kept = []
    for stage in stages:
        one = stage | {key: instead.get(stage[key], stage[key]) for key in _NAMED if key in stage}
        work = digest({key: value for key, value in one.items() if key != "name"})
        if one["kind"] == "cpt" and work in made:
            instead[one["name"]] = made[work]
            continue
        made.setdefault(work, one["name"])
        kept.append(one)
    return kept


def _with(parts: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy with the value at a path of keys."""
    inner = value if len(path) == 1 else _with(parts.get(path[0], {}), path[1:], value)
    return {**parts, path[0]: inner}


def cost(recipe: Recipe, done: Sequence[Finished]) -> tuple[float, float]:
    """Minutes all stages of training and measuring take, and those that are still to come.

    Stages that are done count as measured, the others as the quickstart's speed on 2 cores lets expect, or on one where
    this process has no more.
    """
    measured = {one.name: one.seconds for one in done}
    ahead = [stage for stage in recipe.stages if stage.name not in measured]
    left = sum(_expected(stage, recipe) for stage in ahead) * 2 / _cores()
    return (sum(measured.values()) + left) / 60, left / 60


def _cores() -> int:
    """Cores of this process that the estimate knows of: 1 or 2."""
    return min(2, len(os.sched_getaffinity(0)))


def _expected(stage: Any, recipe: Recipe) -> float:
    if stage.kind == "sft":
        tokens = stage.train.tokens + (stage.train.chat_tokens or 0) if stage.train.tokens else None
        bounds = [tokens / TOKENS_PER_SECOND if tokens else None, stage.train.seconds]
        return min((bound for bound in bounds if bound is not None), default=0.0)
    if stage.kind == "cpt":
        seconds: float = sum(stage.tokens.values()) / TOKENS_PER_SECOND
        return min(seconds, stage.train.seconds or math.inf)
    played = stage.kind == "eval" or (stage.kind == "rollout" and stage.agent != "oracle")
    return SECONDS_PER_EPISODE * recipe.pools[stage.pool].count * stage.samples if played else 0.0


def cost_line(recipe: Recipe, cells: Sequence[Cell], done: Sequence[Finished]) -> str:
    """What the study costs, for the person who starts it."""
    total, left = cost(recipe, done)
    to_come = "" if left == total else f", {left:.0f} of them still to come"
    settings, seeds = (len({getattr(cell, key) for cell in cells}) for key in ("group", "seed"))
    grid = f"{len(cells)} cells, {settings} settings with {seeds} {'seed' if seeds == 1 else 'seeds'} each"
    cores = _cores()
    where = f"{cores} {'core' if cores == 1 else 'cores'}"
    return f"{grid}: about {total:.0f} minutes at the quickstart's speed on {where}{to_come}"


def run_study(study: Study, recipe: Recipe, cells: Sequence[Cell], text: str, home: Path, folder: Path) -> list[Row]:
    """Runs what is not done yet; writes `study.json`, `study.md`, `study.svg` and the run's report.

    Args:
        study: which.
        recipe: as `expand` made it.
        cells: the same.
        text: the recipe's file.
        home: the folder its paths are relative to.
        folder: of the run.
    """
    run_recipe(recipe, text, home, folder, STAGES)
    ends = {stage.name for stage in recipe.stages if stage.kind == "eval"}
    groups: dict[str, list[Any]] = {}
    for cell in cells:
        name = next(one for one in ends if one.endswith(f"-{cell.name}"))
        groups.setdefault(cell.group, []).append(read_journal(folder / name / "journal")[0])
    rows = rows_of(groups, {cell.group: _data(recipe, cell, folder) for cell in cells})
    more = study.more(recipe, cells, home, folder) if study.more else []
    write_json(folder / "study.json", {"study": study.name, "rows": [row.to_json() for row in rows]})
    page = [f"# Study: {study.name}", "", study.about, "", table(rows), "![](study.svg)", "", *more]
    write_text(folder / "study.md", "\n".join(page).rstrip("\n") + "\n")
    write_text(folder / "study.svg", plot(rows))
    report(folder)
    return rows


def _data(recipe: Recipe, cell: Cell, folder: Path) -> str:
    """What the mix of a cell really holds."""
    names = [one.name for one in recipe.stages if one.kind == "curate" and one.name.endswith(f"-{cell.name}")]
    results = [found["result"] for name in names if (found := read_manifest(folder / name))]
    return "; ".join(f"{one['kept']} episodes, {one['failures']} failures" for one in results)
