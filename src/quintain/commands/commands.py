"""What the commands do, without the command line: also the way to use Quintain from a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quintain.commands.rescoring import rescore as judge_again
from quintain.commands.rescoring import stored_stage
from quintain.interface.errors import InputError
from quintain.pipeline.reporting import report
from quintain.pipeline.run import Finished, StageFunction, finished, run_recipe
from quintain.pipeline.stages import STAGES
from quintain.pipeline.workshop import LOCK, Workshop
from quintain.progress import say
from quintain.recipe import TRAINING, CPTStage, GRPOStage, Recipe, SFTStage, load_recipe, read_toml, recipe_from_table
from quintain.training.config import check_precision

QUICKSTART_MINUTES = 19
"""What the quickstart recipe takes on 2 cores, after installation: 11 of them are training, which the clock bounds."""

LEAST_MINUTES = 6
"""With less, no stage of the quickstart has the steps to show anything."""


def run(path: Path, folder: Path | None, accept_drift: bool = False, minutes: float | None = None) -> dict[str, Any]:
    """Runs a recipe into a folder (`runs/NAME` by default), resuming what is there.

    Args:
        path: the recipe.
        folder: of the run.
        accept_drift: go on with a base model that was trained on another interface.
        minutes: scale data, training and evaluation from the minutes the recipe states to about this long.

    Raises:
        InputError: the recipe or its inputs are wrong, or it does not say how many minutes it takes.
    """
    recipe = load_recipe(path)
    if minutes is not None:
        recipe = scaled(recipe, minutes / _stated_minutes(recipe, path, minutes))
    text = path.read_text(encoding="utf-8")
    return _run(recipe, text, path.parent, folder or Path("runs") / recipe.name, accept_drift)


def _stated_minutes(recipe: Recipe, path: Path, wanted: float) -> float:
    if not wanted > 0:  # also what is no number
        raise InputError(f"{wanted:g} minutes is too short; give more than 0")
    bounds = [one.at_most for one in recipe.targets if one.measure == "minutes" and one.at_most is not None]
    if not bounds:
        raise InputError(f'{path}: --minutes needs the minutes it takes: [[targets]] measure = "minutes", at_most = 20')
    return min(bounds)


def plan_run(path: Path) -> dict[str, Any]:
    """What a recipe asks for: tokens, steps, memory and hours of every stage. Nothing is run.

    Raises:
        InputError: the recipe is wrong, or its model's dimensions are not known here.
    """
    from quintain.commands.plan import plan

    return plan(load_recipe(path))


def quickstart(folder: Path, minutes: float | None) -> dict[str, Any]:
    """Runs the quickstart recipe, scaled to about `minutes`.

    Raises:
        InputError: that is too little for its stages.
    """
    path = recipes_folder() / "quickstart.toml"
    recipe = load_recipe(path)
    if minutes is not None:
        if not minutes >= LEAST_MINUTES:  # also what is no number
            raise InputError(f"{minutes:g} minutes is too short; give at least {LEAST_MINUTES}")
        recipe = scaled(recipe, minutes / QUICKSTART_MINUTES)
    return _run(recipe, path.read_text(encoding="utf-8"), path.parent, folder)


def evaluate(
    path: Path,
    model: str | None,
    pool: str,
    samples: int,
    folder: Path,
    *,
    endpoint: dict[str, Any] | None = None,
    prompt: Path | None = None,
    program: str | None = None,
    accept_drift: bool = False,
) -> dict[str, Any]:
    """Measures one model on a pool of a recipe, with sampling and context of the recipe's own first evaluation of it.

    Args:
        path: the recipe.
        model: path or hub id; None for the recipe's base model.
        pool: name of the pool.
        samples: episodes per task.
        folder: of the run.
        endpoint: keys of an `endpoint` table: a model behind a server is measured instead.
        prompt: a TOML file with what the endpoint is told, as a `prompt` table.
        program: name of a program of the recipe, played with the model's tokens.
        accept_drift: go on with a model that was trained on another interface; its record is compared.

    Raises:
        InputError: the recipe, the prompt file or the endpoint is wrong, or both kinds of model are given.
    """
    table = load_recipe(path).model_dump(mode="json", exclude_none=True)
    if model is not None and endpoint is not None:
        raise InputError("give either --model or --agent: one agent is measured at a time")
    if model is not None:
        table["model"]["base"] = model
    stage: dict[str, Any] = {"kind": "eval", "name": "eval", "pool": pool, "samples": samples}
    stage["sampling"] = _sampling(table["stages"], pool, endpoint is not None)
    if endpoint is not None:
        stage["endpoint"] = endpoint
    elif program is None:
        stage |= _own(table["stages"], pool, "context")
    if prompt is not None:
        stage["prompt"] = read_toml(prompt, "prompt file not found")
    if program is not None:
        stage["program"] = program
    table["stages"] = [stage]
    table["targets"] = []  # they are about the recipe's own stages
    text = path.read_text(encoding="utf-8")
    return _run(recipe_from_table(table, str(path)), text, path.parent, folder, accept_drift)


def _own(stages: list[dict[str, Any]], pool: str, key: str) -> dict[str, Any]:
    """What the recipe's own first evaluation of a pool says under a key."""
    own = (one for one in stages if one["kind"] == "eval" and one["pool"] == pool)
    found: dict[str, Any] = next(own, {})
    return {key: found[key]} if key in found else {}


def _sampling(stages: list[dict[str, Any]], pool: str, served: bool) -> dict[str, Any]:
    sampling: dict[str, Any] = _own(stages, pool, "sampling").get("sampling", {})
    if not served:
        return sampling
    # what the protocol has of it; a server's model may write far more than a small one in this process
    return {key: sampling[key] for key in ("temperature", "top_p") if key in sampling} | {"max_tokens": 1024}


def rescore(path: Path, stored: Path, pool: str, folder: Path) -> dict[str, Any]:
    """Judges the episodes of a stored evaluation again, by a recipe's world as it is now, without the model.

    Args:
        path: the recipe.
        stored: RUN/STAGE of a finished evaluation; it is only read.
        pool: pool of the recipe that holds its tasks.
        folder: of a new run.

    Raises:
        InputError: there is no such evaluation, its tasks are not in the pool, or `folder` holds a run already.
    """
    samples = stored_stage(stored)["stage"]["samples"]
    if (folder / "eval").exists():
        raise InputError(f"{folder} holds an evaluation already; give another --out")
    table = load_recipe(path).model_dump(mode="json", exclude_none=True)
    table["stages"] = [{"kind": "eval", "name": "eval", "pool": pool, "samples": samples}]
    table["targets"] = []
    home = stored.absolute()
    stages = {**STAGES, "eval": lambda workshop, stage, out: judge_again(workshop, stage, out, home)}
    text = path.read_text(encoding="utf-8")
    return _run(recipe_from_table(table, str(path)), text, path.parent, folder, stages=stages)


def _run(
    recipe: Recipe,
    text: str,
    home: Path,
    folder: Path,
    accept_drift: bool = False,
    stages: dict[str, StageFunction] = STAGES,
) -> dict[str, Any]:
    for stage in recipe.stages:
        if isinstance(stage, CPTStage | SFTStage | GRPOStage):
            check_precision(stage.train)  # now, not after hours of stages before it
    say(f"run folder: {folder}")
    folder = folder.absolute()  # a world may change the working directory
    return _told(folder, run_recipe(recipe, text, home.resolve(), folder, stages, accept_drift))


def report_of(folder: Path) -> dict[str, Any]:
    """Writes a run's report again; returns what `run` does.

    Raises:
        InputError: the folder holds no run, or no stage of it is finished.
    """
    return _told(folder, finished(folder))


def _told(folder: Path, done: Sequence[Finished]) -> dict[str, Any]:
    """Writes the report and says what it is about."""
    json_path, html_path = report(folder)
    lines = [f"{one.name:<12} {one.seconds:>6.0f} s  {one.result.get('line', '')}" for one in done]
    lines += [line for one in done for line in one.result.get("drift", ())]
    return {
        "run": str(folder),
        "report": str(json_path),
        "stages": {one.name: _stage_json(one) for one in done},
        "lines": [*lines, f"report: {html_path}"],
    }


def _stage_json(one: Finished) -> dict[str, Any]:
    return {"kind": one.kind, "seconds": round(one.seconds, 1), **one.result}


def scaled(recipe: Recipe, factor: float) -> Recipe:
    """The same recipe with data, training and evaluation scaled by `factor`, however little is left.

    Pools never grow: a larger one would be another measure. What is trained on does.
    """
    table = recipe.model_dump(mode="json", exclude_none=True)
    for pool in table["pools"].values():
        if "split" in pool:
            pool["count"] = max(8, round(pool["count"] * min(1.0, factor)))
    for stage in table["stages"]:
        _scale_stage(stage, factor)
    return recipe_from_table(table, recipe.name)


def _scale_stage(stage: dict[str, Any], factor: float) -> None:
    def times(count: int) -> int:
        return max(1, round(count * factor))

    if stage["kind"] == "fas":
        stage["make"]["memories"] = max(8, times(stage["make"]["memories"]))
    if stage["kind"] == "cpt":
        stage["tokens"] = {source: times(tokens) for source, tokens in stage["tokens"].items()}
    if stage["kind"] not in TRAINING:
        return
    train = stage["train"]
    if train.get("seconds"):
        train["seconds"] *= factor
    bounds = {"sft": ("tokens", "chat_tokens"), "grpo": ("steps", "validate_every"), "cpt": ()}[stage["kind"]]
    train |= {bound: times(train[bound]) for bound in bounds if bound in train}


def recipes_folder() -> Path:
    """Where the recipes are: inside the installed package, or in the source tree."""
    package = Path(__file__).parents[1]
    packaged = package / "_recipes"
    return packaged if packaged.is_dir() else package.parents[1] / "recipes"


def lock_tools(recipe_path: Path, lock: Path | None) -> str:
    """Writes `tools.lock` for a recipe's worlds; returns what was done in one line."""
    workshop, path = _lock_parts(recipe_path, lock)
    locks = workshop.write_lock(path)
    tools, probes = sum(len(one.tools) for one in locks), sum(len(one.observed) for one in locks)
    names = ", ".join(name for one in locks for name in one.unwatched)
    unwatched = f"; results of {names} are not watched: add probes" if names else ""
    return f"{path}: {tools} tools, {probes} probe calls{unwatched}"


def check_tools(recipe_path: Path, lock: Path | None) -> list[str]:
    """Compares a recipe's live tools with the lock; returns the differences in words."""
    workshop, path = _lock_parts(recipe_path, lock)
    return [str(one) for one in workshop.lock_differences(path)]


def _lock_parts(recipe_path: Path, lock: Path | None) -> tuple[Workshop, Path]:
    recipe = load_recipe(recipe_path)
    home = recipe_path.parent.resolve()
    return Workshop(recipe, home, home), lock or home / LOCK
