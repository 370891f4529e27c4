"""What each kind of stage takes: one class a kind, its keys, defaults and reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from quintain.curation.config import CurationConfig
from quintain.endpoint.config import EndpointConfig, PromptConfig
from quintain.recipe.tables import ContextSection, SamplingSection, Section
from quintain.synthesis.config import FASConfig, TeacherConfig
from quintain.training.config import CPTConfig, SFTConfig
from quintain.training.grpo_config import GRPOConfig


class Stage(Section):
    """What all stages share."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    """Name of the stage's folder in the run."""


def _check_context(context: ContextSection | None, program: str | None, other: str = "") -> None:
    """Raises ValueError where somebody else than the built-in loop around a model decides what is read."""
    who = "a `program`" if program is not None else other
    if context is not None and who:
        raise ValueError(f"`context` is for a model in the built-in loop; {who} minds its own")


class RolloutStage(Stage):
    """Plays tasks with an agent and keeps the episodes."""

    kind: Literal["rollout"]
    pool: str
    agent: str = "oracle"
    """`oracle`, or the name of a training stage, or `base`."""
    samples: int = Field(1, ge=1)
    faults: str | None = None
    """Name of a `[faults.NAME]`."""
    program: str | None = None
    """Name of a `[programs.NAME]` that plays with the model's tokens; none is the built-in loop."""
    context: ContextSection | None = None
    """What the model does when its context fills; none: the episode ends with `limit(context)`."""
    sampling: SamplingSection = SamplingSection()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _context_has_a_reader(self) -> RolloutStage:
        _check_context(self.context, self.program, "the oracle" if self.agent == "oracle" else "")
        return self


class HASStage(Stage):
    """Rewrites past episodes as decisions: at every step the options, the choice, and what came of it."""

    kind: Literal["has"]
    data: list[str]
    """Names of rollout stages."""
    alternatives: int = Field(3, ge=1, le=9)
    """Options besides the action taken; not executed."""
    teacher: TeacherConfig = TeacherConfig()  # type: ignore[call-arg]
    """Who writes them; without an endpoint they are borrowed from other steps, which needs no model."""
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
    world: str | None = None
    """Whose tools the plans call and whose documents are read; needed where the recipe has several worlds."""
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


CPT_SOURCES = ("planning", "reasoning", "has", "general")
"""What a cpt stage may learn from."""


class CPTStage(Stage):
    """Continual pre-training on synthesised samples and general text."""

    kind: Literal["cpt"]
    data: list[str] = []
    """Synthesis stages; or earlier cpt stages, for what was too long for them."""
    text: list[str] = []
    """General text: files and folders, relative to the recipe, or `python-docs`."""
    tokens: dict[str, Annotated[int, Field(ge=1)]] = {}
    """Tokens to learn from by source (`planning`, `reasoning`, `has`, `general`); a source not named is read once."""
    start: str = "base"
    """`base` or the name of an earlier training stage."""
    replay: str | None = None
    """An earlier cpt stage whose documents come again."""
    replay_share: float = Field(0.2, ge=0, lt=1)
    """Share of this stage's tokens that are replay."""
    train: CPTConfig = CPTConfig()

    @field_validator("tokens")
    @classmethod
    def _known_sources(cls, tokens: dict[str, int]) -> dict[str, int]:
        for unknown in (one for one in tokens if one not in CPT_SOURCES):
            raise ValueError(f"no source {unknown!r}; there are {', '.join(CPT_SOURCES)}")
        return tokens


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
    """Names of rollout, recover and curate stages; and of fas stages, whose reasonings are learnt as chat."""
    start: str = "base"
    """`base` or the name of an earlier training stage."""
    only: Literal["success", "all"] = "success"
    """Which episodes of rollout stages are learnt from; a curate stage has chosen already."""
    summarise: bool = False
    """Thoughts are cut to their first and last sentence, of chat and of episodes that no curate stage chose."""
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
    program: str | None = None
    """Name of a `[programs.NAME]` that plays with the model's tokens; none is the built-in loop."""
    context: ContextSection | None = None
    """What the model does when its context fills; none: the episode ends with `limit(context)`."""
    max_tokens: int = Field(128, ge=1)
    """Bound of one turn. Tokens are drawn at temperature 1, nothing cut: the distribution that is trained."""
    train: GRPOConfig = GRPOConfig()

    @model_validator(mode="after")
    def _context_has_a_reader(self) -> GRPOStage:
        _check_context(self.context, self.program)
        return self


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
    program: str | None = None
    """Name of a `[programs.NAME]` that plays with the model's tokens; none is the built-in loop."""
    context: ContextSection | None = None
    """What the model does when its context fills; none: the episode ends with `limit(context)`."""
    endpoint: EndpointConfig | None = None
    """An OpenAI-compatible server that is measured in place of `model`."""
    prompt: PromptConfig = PromptConfig()
    """What the endpoint is told beside the task."""
    sampling: SamplingSection = SamplingSection()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _every_key_has_a_reader(self) -> EvalStage:
        if self.endpoint is None and self.prompt != PromptConfig():
            raise ValueError("`prompt` is told to an `endpoint`; a model of a recipe reads what it was trained on")
        _check_context(self.context, self.program, "" if self.endpoint is None else "an `endpoint`")
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
    "sft": ("rollout", "recover", "curate", "fas"),
}
"""Kinds of stages that each kind may read."""
