"""A recipe: one TOML file that says what to run. Unknown keys, wrong types and missing files are one-line errors."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from quintain.curation.config import CurationConfig
from quintain.inference.endpoint_config import EndpointConfig, PromptConfig
from quintain.interface.errors import InputError
from quintain.recipe_errors import explain, numbers
from quintain.recipe_tables import (
    BudgetSection,
    FaultsSection,
    ModelSection,
    Name,
    PlanSection,
    PoolSection,
    SamplingSection,
    Section,
    WorldSection,
)
from quintain.synthesis.config import FASConfig, TeacherConfig
from quintain.synthesis.general import PYTHON_DOCS
from quintain.training.config import CPTConfig, SFTConfig
from quintain.training.grpo_config import GRPOConfig

LARGEST = 2**53 - 1
"""Largest whole number that every reader of JSON keeps exactly."""


class Stage(Section):
    """What all stages share."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    """Name of the stage's folder in the run."""


class RolloutStage(Stage):
    """Plays tasks with an agent and keeps the episodes."""

    kind: Literal["rollout"]
    pool: str
    agent: str = "oracle"
    """`oracle`, or the name of a training stage, or `base`."""
    samples: int = Field(1, ge=1)
    faults: str | None = None
    """Name of a `[faults.NAME]`."""
    sampling: SamplingSection = SamplingSection()  # type: ignore[call-arg]


class HASStage(Stage):
    """Rewrites past episodes as decisions: at every step the options, the choice, and what came of it."""

    kind: Literal["has"]
    data: list[str]
    """Names of rollout stages."""
    alternatives: int = Field(3, ge=1, le=9)
    """Options besides the action taken; not executed."""
    detours: bool = True
    """Where successes outnumber failures, rewinds some of them and takes a wrong turn."""
    executed: bool = False
    """Alternatives are tried through the harness, and what they return is shown."""
    mask_bad_steps: bool = False
    """Choices known to be wrong carry no loss."""
    mask_results: bool = False
    """What tools return carries no loss."""
    shuffle_ends: bool = False
    """Verdicts are dealt out anew among the texts of a language: a control that can't teach what is right."""
    seed: int = 0


class FASStage(Stage):
    """First-order action synthesis: documents to an entity memory, its excerpts to plans and reasoning."""

    kind: Literal["fas"]
    world_documents: bool = True
    """Read the world's own documents, those of its training split."""
    documents: list[Annotated[Path, Field(strict=False)]] = []
    """Files and folders of your own, relative to the recipe."""
    data: list[str] = []
    """Names of rollout stages whose tool results enter the memory."""
    tools: list[str] = []
    """Tools whose results are texts about their first argument; needed with `data`."""
    make: FASConfig = FASConfig()  # type: ignore[call-arg]
    teacher: TeacherConfig = TeacherConfig()  # type: ignore[call-arg]
    judge: TeacherConfig | None = None
    """Who judges the plans; none is the teacher itself."""

    @model_validator(mode="after")
    def _tools_with_data(self) -> FASStage:
        if bool(self.data) != bool(self.tools):
            raise ValueError("`data` and `tools` go together: which tools' results are texts about their argument?")
        return self


class CPTStage(Stage):
    """Continual pre-training on synthesised samples and general text."""

    kind: Literal["cpt"]
    data: list[str] = []
    """Synthesis stages; or earlier cpt stages, for what was too long for them."""
    text: list[str] = []
    """General text: files and folders, relative to the recipe, or `python-docs`."""
    tokens: dict[str, int] = {}
    """Tokens to learn from by source (`planning`, `reasoning`, `has`, `general`); a source not named is read once."""
    start: str = "base"
    """`base` or the name of an earlier training stage."""
    replay: str | None = None
    """An earlier cpt stage whose documents come again."""
    replay_share: float = Field(0.2, ge=0, lt=1)
    """Share of this stage's tokens that are replay."""
    train: CPTConfig = CPTConfig()


class CurateStage(Stage):
    """Chooses from the episodes of earlier stages what is learnt, and which of their turns carry loss."""

    kind: Literal["curate"]
    data: list[str] = []
    """Names of rollout and recover stages."""
    imports: list[Annotated[Path, Field(strict=False)]] = []
    """Folders `quintain import` wrote, relative to the recipe."""
    mix: CurationConfig = CurationConfig()

    @model_validator(mode="after")
    def _some_source(self) -> CurateStage:
        if not self.data and not self.imports:
            raise ValueError("needs `data`, `imports` or both")
        return self


class SFTStage(Stage):
    """Supervised fine-tuning on the episodes of earlier stages."""

    kind: Literal["sft"]
    data: list[str]
    """Names of rollout and curate stages."""
    start: str = "base"
    """`base` or the name of an earlier training stage."""
    only: Literal["success", "all"] = "success"
    """Which episodes of rollout stages are learnt from; a curate stage has chosen already."""
    train: SFTConfig = SFTConfig()


class GRPOStage(Stage):
    """Reinforcement learning on a pool's tasks, by the model's own episodes."""

    kind: Literal["grpo"]
    pool: str
    start: str = "base"
    """`base` or the name of an earlier training stage; one that already succeeds now and then."""
    validation: str | None = None
    """Pool to measure now and then, for the guard; not the one that is evaluated."""
    faults: str | None = None
    """Name of a `[faults.NAME]`: practice with trouble."""
    max_tokens: int = Field(128, ge=1)
    """Bound of one turn. Tokens are drawn at temperature 1, nothing cut: the distribution that is trained."""
    train: GRPOConfig = GRPOConfig()


class EvalStage(Stage):
    """Measures a model on a pool."""

    kind: Literal["eval"]
    pool: str
    model: str = "base"
    """`base` or the name of a training stage."""
    samples: int = Field(2, ge=1)
    """Episodes per task: pass@1 is their mean, pass@k needs at least k."""
    faults: str | None = None
    """Name of a `[faults.NAME]`: the report then measures recovery."""
    endpoint: EndpointConfig | None = None
    """An OpenAI-compatible server that is measured in place of `model`."""
    prompt: PromptConfig = PromptConfig()
    """What the endpoint is told beside the task."""
    sampling: SamplingSection = SamplingSection()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _prompt_has_an_endpoint(self) -> EvalStage:
        if self.endpoint is None and self.prompt != PromptConfig():
            raise ValueError("`prompt` is told to an `endpoint`; a model of a recipe reads what it was trained on")
        return self


class RecoverStage(Stage):
    """Continues episodes that went wrong, through the harness, and keeps what comes to a right end."""

    kind: Literal["recover"]
    data: list[str]
    """Names of rollout stages."""
    points: int = Field(1, ge=1)
    """Continuations of one episode: after its first trouble, then from the last ones."""
    most_calls: int | None = Field(None, ge=1)
    """Calls a turn may hold; one with more is malformed."""
    corrections: Path | None = Field(None, strict=False)
    """JSON Lines of turns people rewrote, relative to the recipe."""
    teacher: TeacherConfig = TeacherConfig()  # type: ignore[call-arg]
    """Who goes on; without an endpoint it is the rescuer, which knows the world's reference solutions."""


AnyStage = Annotated[
    RolloutStage | RecoverStage | FASStage | HASStage | CPTStage | CurateStage | SFTStage | GRPOStage | EvalStage,
    Field(discriminator="kind"),
]


TRAINING = ("cpt", "sft", "grpo")
"""Kinds of stages that leave a model."""

SYNTHESIS = ("fas", "has")
"""Kinds of stages that leave samples."""

DATA = {
    "recover": ("rollout",),
    "fas": ("rollout", "recover"),
    "has": ("rollout",),
    "cpt": (*SYNTHESIS, "cpt"),
    "curate": ("rollout", "recover"),
    "sft": ("rollout", "recover", "curate"),
}
"""Kinds of stages that each kind may read."""


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
    """Most tokens in the local engine's cache; episodes wait when it is full."""
    model: ModelSection = ModelSection()
    world: WorldSection = WorldSection()
    budget: BudgetSection = BudgetSection()  # type: ignore[call-arg]
    faults: dict[Name, FaultsSection] = {}
    pools: dict[Name, PoolSection]
    stages: list[AnyStage] = Field(min_length=1)
    targets: list[TargetSection] = []
    plan: PlanSection = PlanSection()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _names_resolve(self) -> Recipe:
        seen: dict[str, str] = {}
        for stage in self.stages:
            _check_references(stage, seen, self.pools)
            _check_faults(stage, self.faults, self.stages)
            _check_splits(stage, self.stages, self.pools)
            if stage.name == "pools" or (stage.kind in TRAINING and stage.name in ("base", "oracle")):
                raise ValueError(
                    f"stages: the {stage.kind} stage can't be named {stage.name!r}, which means something else"
                )
            if stage.name in seen:
                raise ValueError(f"stages: two stages are named {stage.name!r}")
            seen[stage.name] = stage.kind
        for target in self.targets:
            if target.measure == "pass1" and seen.get(target.stage) != "eval":
                known = ", ".join(name for name, kind in seen.items() if kind == "eval")
                raise ValueError(f"targets: stage = {target.stage!r} is no evaluation stage; allowed: {known}")
        return self


def _check_references(stage: Any, seen: dict[str, str], pools: dict[str, PoolSection]) -> None:
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


def _check_splits(stage: Any, stages: list[AnyStage], pools: dict[str, PoolSection]) -> None:
    """What was found while evaluation tasks were played may not enter a memory of training."""
    if stage.kind != "fas":
        return
    for one in stages:
        pool = getattr(one, "pool", None)
        if one.name in stage.data and pool and pools[pool].split == "eval":
            raise ValueError(f"stage {stage.name!r}: data = {one.name!r} plays the evaluation pool {pool!r}")


def _check_faults(stage: Any, faults: dict[str, FaultsSection], stages: list[AnyStage]) -> None:
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
