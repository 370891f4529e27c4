"""A recipe: one TOML file that says what to run. Unknown keys, wrong types and missing files are one-line errors."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from quintain.curation.config import CurationConfig
from quintain.harness.faults import FaultPlan, Wordings
from quintain.inference.endpoint_config import EndpointConfig, PromptConfig
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.interface.faults import KINDS, FaultKind
from quintain.recipe_errors import explain, numbers
from quintain.synthesis.general import PYTHON_DOCS
from quintain.training.config import CPTConfig, SFTConfig
from quintain.training.grpo_config import GRPOConfig

LARGEST = 2**53 - 1
"""Largest whole number that every reader of JSON keeps exactly."""


class Section(BaseModel):
    """A table of a recipe; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelSection(Section):
    """`[model]`: what is trained and how it reads and writes."""

    base: str = "smollm2-135m"
    """Path, hub id, or `smollm2-135m` (the embedded default)."""
    dialect: str = "hermes-compact"
    """How messages look as tokens."""


class ProbeSection(Section):
    """`[[world.probes]]`: a call whose result shows what a tool's results look like, for `tools.lock`."""

    tool: str
    arguments: dict[str, Any] = {}


class WorldSection(Section):
    """`[world]`: where the agent acts."""

    world: str = "quintain.worlds.desk:Desk"
    """`module:Class`; the recipe's folder is on the import path."""
    options: dict[str, Any] = {}
    """Passed to the class."""
    probes: list[ProbeSection] = []
    """Calls run when the tools are locked, and again when they are checked."""


Name = Annotated[str, Field(pattern=r"^\w[\w .-]*$")]
"""What names a file or folder: begins with a letter or digit of any script, and can't leave the run's folder."""

_BUDGET = Budget()


class BudgetSection(Section):
    """`[budget]`: what one episode may use; the defaults are those of `Budget`."""

    turns: int = Field(_BUDGET.turns, ge=1)
    tool_calls: int = Field(_BUDGET.tool_calls, ge=1)
    tokens: int = Field(_BUDGET.tokens, ge=1)
    seconds: float = Field(_BUDGET.seconds, gt=0)
    call_seconds: float = Field(_BUDGET.call_seconds, gt=0)
    observation_bytes: int = Field(_BUDGET.observation_bytes, ge=64)
    format_errors: int = Field(_BUDGET.format_errors, ge=1)

    def budget(self) -> Budget:
        """As the harness takes it."""
        return Budget(**self.model_dump())


Share = Annotated[float, Field(ge=0, le=1)]

_FAULTS = FaultPlan()


class FaultsSection(Section):
    """`[faults.NAME]`: what goes wrong on purpose in the stages that name it; the defaults are those of `FaultPlan`."""

    episodes: Share = _FAULTS.episodes
    rate: Share = _FAULTS.rate
    tools: dict[str, Share] = {}
    kinds: dict[FaultKind, Annotated[float, Field(gt=0)]] = {}
    """Empty: all kinds, equally often."""
    permanent: Share = _FAULTS.permanent
    most: int = Field(_FAULTS.most, ge=1)
    wordings: Wordings = _FAULTS.wordings
    seed: int = _FAULTS.seed

    def plan(self) -> FaultPlan:
        """As the harness takes it."""
        return FaultPlan(**{**self.model_dump(), "kinds": self.kinds or dict.fromkeys(KINDS, 1.0)})


class PoolSection(Section):
    """`[pools.NAME]`: a set of tasks, from a file or from the world's own generator."""

    file: Path | None = Field(None, strict=False)
    """JSON Lines of tasks, relative to the recipe."""
    split: Literal["train", "eval"] | None = None
    """Which side of the world's split by entity to generate from."""
    count: int = Field(100, ge=1)
    """Number of tasks to generate."""
    seed: int = 0
    """Seed of the generator."""
    languages: list[str] = ["en"]
    """Languages of the prompts."""
    templates: list[str] = []
    """Templates to generate from, by name, or `seen`, `held_out`, `long`; empty takes the split's short ones."""

    @model_validator(mode="after")
    def _one_source(self) -> PoolSection:
        if (self.file is None) == (self.split is None):
            raise ValueError("needs either `file` or `split`")
        return self


class SamplingSection(Section):
    """`[sampling]` of a stage: how the model's tokens are drawn."""

    temperature: float = Field(1.0, ge=0)
    """1 measures the policy itself, the one reinforcement learning trains; 0 is greedy."""
    top_p: float = Field(1.0, gt=0, le=1)
    top_k: int = Field(0, ge=0)
    max_tokens: int = Field(128, ge=1)
    """Bound of one turn."""


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
    """Names of rollout stages."""
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


AnyStage = Annotated[
    RolloutStage | RecoverStage | CPTStage | CurateStage | SFTStage | GRPOStage | EvalStage,
    Field(discriminator="kind"),
]


TRAINING = ("cpt", "sft", "grpo")
"""Kinds of stages that leave a model."""

SYNTHESIS: tuple[str, ...] = ("has",)
"""Kinds of stages that leave samples."""


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
    model: ModelSection = ModelSection()
    world: WorldSection = WorldSection()
    budget: BudgetSection = BudgetSection()  # type: ignore[call-arg]
    faults: dict[Name, FaultsSection] = {}
    pools: dict[Name, PoolSection]
    stages: list[AnyStage] = Field(min_length=1)
    targets: list[TargetSection] = []

    @model_validator(mode="after")
    def _names_resolve(self) -> Recipe:
        seen: dict[str, str] = {}
        for stage in self.stages:
            _check_references(stage, seen, self.pools)
            _check_faults(stage, self.faults, self.stages)
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
    if stage.kind == "rollout":
        need("agent", stage.agent, TRAINING, ("oracle", "base"))
    if stage.kind in TRAINING:
        need("start", stage.start, TRAINING, ("base",))
    if stage.kind == "cpt":
        for name in stage.data:
            need("data", name, (*SYNTHESIS, "cpt"))
        if stage.replay is not None:
            need("replay", stage.replay, ("cpt",))
    if stage.kind == "sft":
        for name in stage.data:
            need("data", name, ("rollout", "recover", "curate"))
    if stage.kind == "curate":
        for name in stage.data:
            need("data", name, ("rollout", "recover"))
    if stage.kind == "recover":
        for name in stage.data:
            need("data", name, ("rollout",))
    if stage.kind == "eval":
        need("model", stage.model, TRAINING, ("base",))


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
        if pool.file is not None and not (path.parent / pool.file).is_file():
            raise InputError(f"{path}: pools.{name}.file: no such file: {path.parent / pool.file}")
    for stage in recipe.stages:
        for reference in getattr(stage, "text", ()):
            if reference != PYTHON_DOCS and not (path.parent / reference).exists():
                where = f"{path}: stage {stage.name!r}: text"
                raise InputError(f"{where}: no such file or folder: {path.parent / reference}")
    return recipe


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
