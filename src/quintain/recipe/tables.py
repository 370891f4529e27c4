"""The tables of a recipe that are no stages: model, world, budget, faults, pools, sampling."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from quintain.agents.window import Window
from quintain.endpoint.config import EndpointConfig
from quintain.harness.faults import FaultPlan, Wordings
from quintain.interface.episode import Budget
from quintain.interface.faults import KINDS, FaultKind
from quintain.interface.generation import Sampling


class Section(BaseModel):
    """A table of a recipe; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelSection(Section):
    """`[model]`: what is trained and how it reads and writes."""

    base: str = "smollm2-135m"
    """Path, hub id, or `smollm2-135m` (the embedded default)."""
    dialect: str = "hermes-compact"
    """How messages look as tokens."""


class EngineSection(Section):
    """`[engine]`: what generates tokens."""

    kind: Literal["local", "vllm", "server"] = "local"
    """`local` computes in this process with the trained model itself, `vllm` in processes of its own, `server` over
    HTTP."""
    options: dict[str, Any] = {}
    """Further arguments of vLLM, such as `tensor_parallel_size`."""
    endpoint: EndpointConfig | None = None
    """Where the server is that holds the model; none begins one of its own."""

    @model_validator(mode="after")
    def _every_key_has_a_reader(self) -> EngineSection:
        if self.options and (self.kind == "local" or self.endpoint is not None):
            raise ValueError("`options` are those of a vLLM that is begun here")
        if self.endpoint is not None and self.kind != "server":
            raise ValueError('`endpoint` needs `kind = "server"`')
        return self


class ClusterSection(Section):
    """`[cluster]`: episodes are played by workers on a Ray cluster, each with an engine of its own."""

    workers: int = Field(ge=1)
    cpus_per_worker: float = Field(1.0, gt=0)
    gpus_per_worker: float = Field(0.0, ge=0)
    episodes_per_worker: int = Field(16, ge=1)
    """Most episodes at once on one worker; the recipe's `concurrency` bounds those on all of them."""


class ProbeSection(Section):
    """`[[world.probes]]`: a call whose result shows what a tool's results look like, for `tools.lock`."""

    tool: str
    arguments: dict[str, Any] = {}


class WorldSection(Section):
    """`[world]`: where the agent acts."""

    world: str = "quintain.worlds.desk:Desk"
    """Its class, spelled as the default is; the recipe's folder is on the import path."""
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


class WorldEntry(WorldSection):
    """`[worlds.NAME]`: one world of several; NAME is the name its tasks spell."""

    world: str
    budget: BudgetSection | None = None
    """What one of its episodes may use, in place of `[budget]`."""


Share = Annotated[float, Field(ge=0, le=1)]

_FAULTS = FaultPlan()


class FaultsSection(Section):
    """`[faults.NAME]`: what goes wrong on purpose in the stages that name it; the defaults are those of `FaultPlan`."""

    episodes: Share = _FAULTS.episodes
    rate: Share = _FAULTS.rate
    tools: dict[str, Share] = {}
    kinds: dict[FaultKind, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = {}
    """Empty: all kinds, equally often."""
    permanent: Share = _FAULTS.permanent
    most: int = Field(_FAULTS.most, ge=1)
    wordings: Wordings = _FAULTS.wordings
    seed: int = _FAULTS.seed

    def plan(self) -> FaultPlan:
        """As the harness takes it."""
        return FaultPlan(**{**self.model_dump(), "kinds": self.kinds or dict.fromkeys(KINDS, 1.0)})


class ProgramSection(Section):
    """`[programs.NAME]`: an agent program of your own, played in place of the built-in loop by stages that name it."""

    function: str | None = None
    """`module:function`, an async function of one `Assignment`; the recipe's folder is on the import path."""
    command: list[str] = []
    """A command line, run in the recipe's folder; the task on standard input, the answer on standard output."""

    @model_validator(mode="after")
    def _one_way(self) -> ProgramSection:
        if (self.function is None) == (not self.command):
            raise ValueError("needs either `function` or `command`")
        return self


class PoolSection(Section):
    """`[pools.NAME]`: a set of tasks, from a file, sealed or not, or from the world's own generator."""

    file: Path | None = Field(None, strict=False)
    """JSON Lines of tasks, relative to the recipe."""
    sealed: Path | None = Field(None, strict=False)
    """A file `quintain pool seal` wrote; only evaluation stages open it."""
    key: Path | None = Field(None, strict=False)
    """The key file of `sealed`."""
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
    shares: dict[str, Annotated[float, Field(gt=0, le=1)]] = {}
    """Share of each world in `count`, where a recipe has several; empty takes all of them equally."""

    @model_validator(mode="after")
    def _one_source(self) -> PoolSection:
        if [self.file, self.sealed, self.split].count(None) != 2:
            raise ValueError("needs exactly one of `file`, `split` and `sealed`")
        if (self.sealed is None) != (self.key is None):
            raise ValueError("`sealed` and `key` go together")
        if self.shares and self.split is None:
            raise ValueError("`shares` divide the tasks of a `split`; those of a file name their world")
        total = sum(self.shares.values())
        if self.shares and abs(total - 1) > 1e-6:
            terms = " + ".join(f"{share:g}" for share in self.shares.values())
            raise ValueError(f"`shares` must sum to 1: {terms} = {total:g}")
        return self


class SamplingSection(Section):
    """`[sampling]` of a stage: how the model's tokens are drawn."""

    temperature: float = Field(1.0, ge=0)
    """1 measures the policy itself, the one reinforcement learning trains; 0 is greedy."""
    top_p: float = Field(1.0, gt=0, le=1)
    top_k: int = Field(0, ge=0)
    max_tokens: int = Field(128, ge=1)
    """Bound of one turn."""
    grammar: bool = False
    """Draw only tokens that keep a turn well-formed; off, because it hides what a model has not learnt."""

    def sampling(self) -> Sampling:
        """As engines take it."""
        return Sampling(**self.model_dump(exclude={"grammar"}))


class ContextSection(Section):
    """`context` of a stage: what the model does when its context fills."""

    tokens: int = Field(ge=1)
    """What prompt, history and the turn to come may fill; at most the model's own context."""
    when_full: Literal["discard-all", "summary"]
    """`discard-all` begins the task afresh with what is left of the budget; `summary` writes a summary and goes on."""

    def window(self) -> Window:
        """As the agent takes it."""
        return Window(**self.model_dump())


class ShapeSection(Section):
    """`[plan.shape]`: a decoder's dimensions, for planning where the model itself is not at hand."""

    layers: int = Field(ge=1)
    hidden: int = Field(ge=1)
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    intermediate: int = Field(ge=1)
    """Width of a feed-forward block, or of one expert."""
    vocabulary: int = Field(ge=1)
    experts: int = Field(1, ge=1)
    experts_used: int = Field(1, ge=1)
    """Experts a token passes through."""
    tied: bool = False
    """Input and output embeddings are one matrix."""


class PlanSection(Section):
    """`[plan]`: the machine `quintain run --plan` reckons with; nothing else reads it."""

    accelerators: int = Field(1, ge=1)
    gib: float = Field(80, gt=0)
    """Memory of one."""
    tflops: float = Field(989, gt=0)
    """Peak of one in the precision that is trained in; 989 is an H100's in bfloat16 without sparsity."""
    utilisation: float = Field(0.35, gt=0, le=1)
    """Share of the peak that training reaches."""
    bandwidth: float = Field(3.35, gt=0)
    """Terabytes a second that one reads from its memory."""
    episode_tokens: int = Field(8192, ge=1)
    """Tokens of an episode, prompt and observations included."""
    generated_tokens: int | None = Field(None, ge=1)
    """Tokens an agent writes in an episode; none takes the budget's."""
    rollout_accelerators: int = Field(0, ge=0)
    """Of all, those that only play; 0 plays and trains on the same."""
    tool_seconds: float = Field(1.0, ge=0)
    """Median time of one turn's tools."""
    tool_p99: float = Field(10.0, ge=0)
    """Time that one turn in a hundred exceeds."""
    price: float | None = Field(None, ge=0)
    """Of one accelerator for an hour."""
    shape: ShapeSection | None = None

    @model_validator(mode="after")
    def _possible(self) -> PlanSection:
        if self.tool_p99 < self.tool_seconds:
            raise ValueError(
                f"tool_p99 = {self.tool_p99:g} is less than tool_seconds = {self.tool_seconds:g}, the median"
            )
        if self.rollout_accelerators >= self.accelerators:
            said = f"rollout_accelerators = {self.rollout_accelerators} of accelerators = {self.accelerators}"
            raise ValueError(f"{said}: none is left to train")
        return self
