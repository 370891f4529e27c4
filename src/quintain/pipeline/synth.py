"""What `quintain synth` does: make a recipe's synthetic samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError
from quintain.pipeline.run import run_recipe
from quintain.recipe import SYNTHESIS, Recipe, load_recipe, recipe_from_table


def make(path: Path, folder: Path) -> dict[str, Any]:
    """Runs a recipe's synthesis stages and what they read; `quintain run` goes on from there.

    Raises:
        InputError: the recipe has no synthesis stage, or its input is wrong.
    """
    from quintain.pipeline.stages import STAGES

    recipe = load_recipe(path)
    needed = _needed(recipe)
    table = recipe.model_dump(mode="json", exclude_none=True)
    table["stages"] = [stage for stage in table["stages"] if stage["name"] in needed]
    table["targets"] = []  # they are about stages left out
    chosen = recipe_from_table(table, str(path))
    text = path.read_text(encoding="utf-8")
    done = run_recipe(chosen, text, path.parent.resolve(), folder.absolute(), STAGES)
    return {
        "run": str(folder),
        "stages": {one.name: {"kind": one.kind, **one.result} for one in done},
        "lines": [f"{one.name:<12} {one.result.get('line', '')}" for one in done],
    }


def _needed(recipe: Recipe) -> set[str]:
    """Names of the synthesis stages and of everything they read."""
    needed = {stage.name for stage in recipe.stages if stage.kind in SYNTHESIS}
    if not needed:
        raise InputError(f"recipe {recipe.name!r} has no synthesis stage; kinds: {', '.join(SYNTHESIS)}")
    for stage in reversed(recipe.stages):
        if stage.name in needed:
            needed |= {*getattr(stage, "data", ()), getattr(stage, "agent", ""), getattr(stage, "start", "")}
    return needed
