"""One episode of each world of a recipe, played by the reference solution and shown: no model is needed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from quintain.agents.oracle import OracleAgent
from quintain.commands.commands import recipes_folder
from quintain.harness.loop import Harness
from quintain.interface.episode import Episode
from quintain.pipeline.workshop import Workshop
from quintain.recipe import load_recipe
from quintain.recipe.worlds import RecipeWorld
from quintain.serving.watched import Watched, end_lines


def demo(path: Path | None) -> dict[str, Any]:
    """Plays them; writes nothing.

    Args:
        path: of the recipe; None takes the quickstart's, whose world is `desk`.

    Raises:
        InputError: the recipe is wrong, or a world has no task.
    """
    path = path or recipes_folder() / "quickstart.toml"
    recipe = load_recipe(path)
    workshop = Workshop(recipe, path.parent.resolve(), Path("runs") / recipe.name)
    shown = [_play(workshop, place) for place in workshop.worlds.values()]
    return {"episodes": shown, "lines": [line for one in shown for line in one.pop("lines")]}


def _play(workshop: Workshop, place: RecipeWorld) -> dict[str, Any]:
    task = workshop.pools.sample(place.name)
    lines = [f"world {place.name}: {task.prompt}"]
    agent = Watched(OracleAgent(workshop.solution, {task.id: task}), lambda line: lines.append(f"  {line}"))
    harness = Harness(place.make, budget=place.budget, seed=workshop.recipe.seed)
    episode = asyncio.run(harness.run(task, agent))
    lines += [f"  {line}" for line in (*end_lines(episode), _verdict(episode))]
    return {"world": place.name, "task": task.id, "success": episode.success, "lines": lines}


def _verdict(episode: Episode) -> str:
    used, verdict = episode.usage, episode.verdict
    how = "unjudged" if verdict is None else "right" if verdict.success else "wrong"
    why = f" ({'; '.join(verdict.reasons)})" if verdict is not None and verdict.reasons else ""
    return f"verdict   {how}{why}; {used.turns} turns, {used.tool_calls} calls, {used.seconds * 1000:.0f} ms"
