"""The studies there are, by name, and the command that runs one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from quintain.commands.commands import recipes_folder, scaled
from quintain.evaluation.study import Row, table
from quintain.inference.models import inspect_model
from quintain.interface.errors import InputError
from quintain.pipeline.run import Finished, done_before
from quintain.progress import say
from quintain.recipe import Recipe, load_recipe
from quintain.studies.cpt import BASES, FULL, pretraining
from quintain.studies.sizes import file_name, write_sizes
from quintain.studies.study import Cell, Study, cost, cost_line, expand, run_study

_CELL = ("curate", "sft", "eval")

_MASKS = ("agent", "wrong_turns")
_ALL_MASKS = (*_MASKS, "verdict_prefix", "verdict_suffix")


def _mixes(shares: tuple[float, ...], masks: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """A setting for every share of failures and every mask; without failures first."""
    return {
        f"{100 * share:.0f}-{mask}": {"curate.mix.failure_share": share, "curate.mix.mask": mask}
        for share, mask in product(shares, masks)
    }


STUDIES: dict[str, Study] = {
    one.name: one
    for one in (
        Study(
            name="cpt",
            about="What a model is pre-trained on before fine-tuning, at equal tokens.",
            recipe="cpt-desk.toml",
            cell=("cpt", "sft", "eval"),
            settings=BASES,
            full=FULL,
            seed_keys=("cpt.train.seed", "sft.train.seed"),
            more=pretraining,
        ),
        Study(
            name="failures",
            about="How many failed episodes to train on, and whether their wrong turns carry loss, at equal tokens.",
            recipe="failures-desk.toml",
            cell=_CELL,
            settings=_mixes((0.0, 0.2, 0.5), _MASKS),
            full=_mixes((0.0, 0.1, 0.2, 0.4, 0.6), _ALL_MASKS),
        ),
        Study(
            name="recovery",
            about="Clean successes alone against the recovery mix, at equal tokens, measured with faults never seen.",
            recipe="recovery-desk.toml",
            cell=_CELL,
            settings={
                "clean": {"curate.data": ["demos"]},
                "mix": {"curate.data": ["demos", "recovery"]},
            },
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Part:
    """A study of one model.

    Attributes:
        model: reference of its base model.
        folder: of its run.
        cells: of its grid.
        recipe: with the stages of all cells.
        done: stages that are done already.
    """

    model: str
    folder: Path
    cells: Sequence[Cell]
    recipe: Recipe
    done: Sequence[Finished]


def study(
    name: str,
    path: Path | None,
    folder: Path | None,
    *,
    full: bool,
    minutes: float | None,
    cost_only: bool,
    models: Sequence[str] = (),
) -> dict[str, Any]:
    """Runs a study cell by cell, resuming what is there; says what it costs first.

    Args:
        name: of the study.
        path: a recipe to use instead of the study's own.
        folder: of the run; `runs/study-NAME` by default.
        full: take the full grid of settings.
        minutes: run as many seeds as fit into this long, what is done already included; if not even one does, scale
            tasks and training down as well.
        cost_only: say what it costs and do nothing.
        models: base models in place of the recipe's, each with a grid of its own in a folder of its own; the minutes
            are shared out equally.

    Raises:
        InputError: the recipe does not fit the study, a model is given twice, or the minutes are too few.
    """
    one = STUDIES[name]
    path, folder = path or recipes_folder() / one.recipe, (folder or Path("runs") / f"study-{name}").absolute()
    home, recipe = path.parent.resolve(), load_recipe(path)
    if len(set(models)) < len(models):
        raise InputError(f"--models {','.join(models)}: one of them is given twice")
    share = minutes / len(models) if minutes is not None and models else minutes
    parts = [
        _part(one, _with_base(recipe, model), home, folder / file_name(model) if models else folder, full, share)
        for model in models or [recipe.model.base]
    ]
    costs = [f"{part.model}: " * bool(models) + cost_line(part.recipe, part.cells, part.done) for part in parts]
    if cost_only:
        total = sum(cost(part.recipe, part.done)[0] for part in parts)
        return {"study": name, "cells": sum(len(part.cells) for part in parts), "minutes": total, "lines": costs}
    rows: dict[str, list[Row]] = {}
    text = path.read_text(encoding="utf-8")
    for part, line in zip(parts, costs, strict=True):
        say(line)
        rows[part.model] = run_study(one, part.recipe, part.cells, text, home, part.folder)
    if not models:
        shown = [*table(rows[parts[0].model]).splitlines(), f"table and plot: {folder / 'study.md'}"]
        found = [row.to_json() for row in rows[parts[0].model]]
        return {"study": name, "run": str(folder), "rows": found, "lines": shown}
    sizes = {model: inspect_model(model).parameters for model in models}
    return {"study": name, "run": str(folder), **write_sizes(rows, sizes, folder)}


def _with_base(recipe: Recipe, base: str) -> Recipe:
    return recipe.model_copy(update={"model": recipe.model.model_copy(update={"base": base})})


def _part(one: Study, recipe: Recipe, home: Path, folder: Path, full: bool, minutes: float | None) -> Part:
    grid = grid_of(one, recipe, full, minutes, partial(done_before, home=home, folder=folder))
    return Part(recipe.model.base, folder, *grid)


def grid_of(
    one: Study, recipe: Recipe, full: bool, minutes: float | None, done: Callable[[Recipe], Sequence[Finished]]
) -> tuple[list[Cell], Recipe, Sequence[Finished]]:
    """The cells that fit into the minutes, the recipe of their stages, and which of those are done.

    Fewer seeds come before smaller cells: models trained too little to act can't be told apart, and the seeds left out
    can be added later, for the stages done stay as they are. Where a stage of a cell is done, cells keep their size.

    Args:
        one: the study.
        recipe: with one cell at its end.
        full: take the full grid of settings.
        minutes: for all of it, what is done included; None: as long as it takes.
        done: stages of a recipe that are done already.

    Raises:
        InputError: the minutes are too few.
    """
    if minutes is not None and not minutes >= 1:  # also what is no number
        raise InputError(f"{minutes:g} minutes is too short; give at least 1")
    most = math.inf if minutes is None else minutes
    for seeds in range(len(one.seeds), 0, -1):
        cells = one.cells(full, seeds)
        expanded = expand(recipe, one, cells)
        found = done(expanded)
        if cost(expanded, found)[0] <= most:
            return cells, expanded, found
    if any(stage.kind in one.cell for stage in found):
        return cells, expanded, found
    smaller = scaled(expanded, most / cost(expanded, [])[0])
    return cells, smaller, done(smaller)
