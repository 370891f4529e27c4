"""What `quintain synth` does: make a recipe's synthetic samples, or show some with their price first."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.sample import Sample
from quintain.pipeline.fas import MEMORY, documents, first_order, held_out
from quintain.pipeline.run import run_recipe
from quintain.pipeline.workshop import Workshop
from quintain.recipe import SYNTHESIS, FASStage, Recipe, load_recipe, recipe_from_table
from quintain.synthesis.fas import Made, Spent, draw
from quintain.synthesis.memory import Memory, build

PREVIEWED = 2000
"""Documents read for a preview: it must not take as long as the run."""


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


def preview(path: Path, folder: Path, count: int) -> dict[str, Any]:
    """Shows samples of each kind of every fas stage, and what the whole stage would cost. Replies are kept for the run.

    Args:
        path: of the recipe.
        folder: of the run.
        count: samples of each kind.

    Raises:
        InputError: the recipe has no fas stage, or its input is wrong.
    """
    if count < 1:
        raise InputError(f"--preview {count}: give at least 1")
    recipe = load_recipe(path)
    stages = [stage for stage in recipe.stages if isinstance(stage, FASStage)]
    if not stages:
        raise InputError(f"recipe {recipe.name!r} has no stage of kind 'fas' to preview")
    workshop = Workshop(recipe, path.parent.resolve(), folder.absolute())
    shown = {stage.name: _preview_stage(workshop, stage, count) for stage in stages}
    return {"stages": shown, "lines": [line for one in shown.values() for line in one.pop("lines")]}


def _preview_stage(workshop: Workshop, stage: FASStage, count: int) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        memory = Path(scratch) / MEMORY
        sources = stage.model_copy(update={"data": [], "tools": []})  # no episode is there before the run
        build(memory, islice(documents(workshop, sources, counts), PREVIEWED), counts, held_out(workshop))
        made = asyncio.run(_some(workshop, stage, memory, count))
    if not made:
        raise InputError(f"stage {stage.name!r}: no memory to ask about; {_reasons(counts)}")
    spent = Spent()
    for one in made:
        spent.merge(one.spent)
        counts.update(one.counts)
    groups = {
        "planning": [sample for one in made for sample in one.kept if sample.source == "planning"],
        "rejected": [sample for one in made for sample in one.rejected],
        "reasoning": [sample for one in made for sample in one.kept if sample.source == "reasoning"],
    }
    chosen = {name: samples[:count] for name, samples in groups.items()}
    price = _price(stage, spent, len(made))
    lines = [line for name, samples in chosen.items() for line in _show(name, samples)]
    return {
        "samples": {name: [one.to_json() for one in samples] for name, samples in chosen.items()},
        "counts": dict(sorted(counts.items())),
        "whole_run": price,
        "lines": [*lines, _price_line(stage, price)],
    }


async def _some(workshop: Workshop, stage: FASStage, path: Path, count: int) -> list[Made]:
    """Excerpts worked on until there are enough samples of each kind."""
    found: list[Made] = []
    with closing(Memory(path)) as memory:
        async with first_order(workshop, stage, workshop.folder / stage.name) as maker:
            async for made in maker.run(draw(memory, stage.make, Counter()), min(count, stage.teacher.concurrency)):
                found.append(made)
                kinds = Counter(sample.source for one in found for sample in one.kept)
                if min(kinds["planning"], kinds["reasoning"]) >= count or len(found) >= 4 * count:
                    break
    return found


def _price(stage: FASStage, spent: Spent, memories: int) -> dict[str, Any]:
    """The whole stage, by what the previewed memories took. Replies from the cache count as if they were asked."""
    factor = stage.make.memories / memories
    endpoint = stage.teacher.endpoint
    prices = (endpoint.price_in, endpoint.price_out) if endpoint else (0.0, 0.0)
    tokens = (spent.prompt_tokens * factor, spent.completion_tokens * factor)
    return {
        "memories": stage.make.memories,
        "requests": round(spent.requests * factor),
        "prompt_tokens": round(tokens[0]),
        "completion_tokens": round(tokens[1]),
        "price": (tokens[0] * prices[0] + tokens[1] * prices[1]) / 1e6,
    }


def _price_line(stage: FASStage, price: dict[str, Any]) -> str:
    if stage.teacher.endpoint is None:
        return f"{stage.name}: all {price['memories']:,} memories: the offline teacher costs nothing"
    return (
        f"{stage.name}: all {price['memories']:,} memories: about {price['requests']:,} requests, "
        f"{price['prompt_tokens']:,} + {price['completion_tokens']:,} tokens, price {price['price']:.2f}"
    )


def _show(name: str, samples: list[Sample]) -> list[str]:
    lines = [f"--- {name}: {len(samples)} samples"]
    for one in samples:
        question, action = one.messages[0], one.messages[-1]
        said = getattr(action, "thought", "")
        calls = " ".join(f"{call.tool} {call.arguments}" for call in getattr(action, "calls", ()))
        done = f"-> {calls}" if calls else f"-> answer: {getattr(action, 'answer', '')}"
        lines += [f"[{', '.join(one.tags)}] {getattr(question, 'text', '')}", f"    {said}", f"    {done}"]
    return lines


def _reasons(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items())) or "no document was read"
