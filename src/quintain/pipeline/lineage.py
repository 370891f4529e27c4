"""Which stages a model comes from, and where its folder is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError
from quintain.pipeline.run import read_manifest, read_recipe
from quintain.recipe import TRAINING, CPTStage, EvalStage, Recipe
from quintain.recipe.tables import SamplingSection


def ancestors(stages: Sequence[Any], model: str) -> list[Any]:
    """The stage that made a model, those its model came from, and those that made what they learnt from.

    Args:
        stages: all of the recipe.
        model: name of a training stage; a model of any other name (`base`) comes from no stage.
    """
    by_name = {one.name: one for one in stages}
    waiting, found = _models(by_name, model), {}
    while waiting:
        one = by_name[waiting.pop()]
        if one.name not in found:
            found[one.name] = one
            replay = [one.replay] if isinstance(one, CPTStage) and one.replay else []
            used = _models(by_name, getattr(one, "start", ""), getattr(one, "agent", ""))
            waiting += [*used, *replay, *getattr(one, "data", ())]
    return list(found.values())


def _models(by_name: dict[str, Any], *names: str) -> list[str]:
    """Training stages among names; `base` and `oracle` are none, whatever else has that name."""
    return [name for name in names if name in by_name and by_name[name].kind in TRAINING]


def made_from(stage: dict[str, Any]) -> list[tuple[str, str]]:
    """What a stage's result rests on, as (kind, name): pools, the base model or a model behind a server, files, stages.

    Args:
        stage: as its manifest holds it.
    """
    pools = [("pool", stage[key]) for key in ("pool", "validation") if stage.get(key)]
    files = [("file", Path(one).name) for key in ("text", "documents", "imports") for one in stage.get(key) or ()]
    served = stage.get("endpoint")
    models = [served["model"]] if served else [stage[key] for key in ("start", "model", "agent") if stage.get(key)]
    named = [*models, *([stage["replay"]] if stage.get("replay") else []), *stage.get("data", ())]
    kinds = {"base": "model", "oracle": "model"} | ({served["model"]: "model"} if served else {})
    return [*pools, *files, *dict.fromkeys((kinds.get(name, "stage"), name) for name in named)]


def split_stage(path: Path) -> tuple[Path, str | None]:
    """`RUN/STAGE` as run and stage, `RUN` as a run alone."""
    return (path.parent, path.name) if read_manifest(path) is not None else (path, None)


def is_done(run: Path, stage: str) -> bool:
    """True for a stage that is finished."""
    found = read_manifest(run / stage)
    return found is not None and found["status"] == "done"


def trained_stage(run: Path, wanted: str | None) -> tuple[Recipe, Path, str]:
    """A finished stage that left a model: the recipe, the folder its paths are relative to, and the stage's name.

    Args:
        run: a run's folder.
        wanted: name of the stage; None for the last finished one.

    Raises:
        InputError: the folder is no run, or there is no such stage.
    """
    recipe, home = read_recipe(run)
    trained = [stage.name for stage in recipe.stages if stage.kind in TRAINING]
    done = [name for name in trained if is_done(run, name)]
    name = done[-1] if wanted is None and done else wanted
    if name is None or name not in done:
        what = f"{wanted} is no finished training stage" if wanted else "no training stage is finished"
        raise InputError(f"{run}: {what}; finished: {', '.join(done) or 'none'}; `quintain run` goes on with a run")
    return recipe, home, name


def chosen_model(run: Path, wanted: str | None) -> tuple[Recipe, Path, str]:
    """The same, where `base` stands for the recipe's base model."""
    return (*read_recipe(run), wanted) if wanted == "base" else trained_stage(run, wanted)


def measured_sampling(run: Path, recipe: Recipe, stage: str) -> SamplingSection:
    """How a model's tokens were drawn when it was last measured; the default where it never was."""
    measured = [
        one.sampling
        for one in recipe.stages
        if isinstance(one, EvalStage) and one.model == stage and one.endpoint is None and is_done(run, one.name)
    ]
    return measured[-1] if measured else SamplingSection()  # type: ignore[call-arg]
