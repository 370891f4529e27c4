"""Settings of training, each with a default and the reason for it."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from quintain.interface.errors import InputError
from quintain.launch import by_torchrun

SUMMARY = "training.json"
"""In the folder of a trained model: what it was trained on (digests of toolset, dialect and world data) and how."""


class TrainConfig(BaseModel):
    """What every kind of training needs. Defaults suit 7B-14B models; a recipe for another size says so.

    Attributes:
        learning_rate: peak rate. 1e-5 is the upper end of what keeps a 7B-14B model's other skills; a 135M
            model needs about 1e-4, LoRA about ten times the rate of full training.
        warmup: share of the run in which the rate rises. AdamW's moments are noise for the first steps.
        weight_decay: AdamW's decay of matrices. Small: fine-tuning should stay near where it started.
        clip: most gradient norm of a step. 1.0 stops single odd batches and rarely binds otherwise.
        microbatch_tokens: most tokens computed at once, shared prefixes counted once; a matter of memory
            only, never of the result.
        recompute: keep each layer's input alone and compute the rest again for the gradient (Chen et al. 2016): a third
            more time for a fraction of the memory, which long contexts need.
        precision: what layers compute in. `bfloat16` halves memory and time of a GPU; the weights themselves, sums of
            gradients and moments stay float32. Needs `torchrun`, be it with one process.
        checkpoint_seconds: time between checkpoints, what a crash can cost at most.
        seed: of the order of the data and of LoRA's start.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    learning_rate: float = Field(default=1e-5, gt=0)
    warmup: float = Field(default=0.05, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)
    microbatch_tokens: int = Field(default=16_384, gt=0)
    recompute: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"
    checkpoint_seconds: float = Field(default=600.0, ge=0)
    seed: int = 0


def check_precision(config: TrainConfig) -> None:
    """Refuses to compute in less than float32 where nothing keeps float32 weights beside.

    Raises:
        InputError: this process was not started by `torchrun`.
    """
    if config.precision != "float32" and not by_torchrun():
        raise InputError(
            f"precision = {config.precision!r} keeps float32 masters by FSDP2: start with "
            "`torchrun --nproc-per-node 1 -m quintain run ...`, or leave precision out"
        )


class SFTConfig(TrainConfig):
    """Supervised fine-tuning (behaviour cloning).

    Attributes:
        epochs: passes over the data. Two: a third mostly memorises.
        seconds: training time after which it stops even if epochs are left, the learning rate having
            reached 0 by then. None: no bound.
        tokens: tokens of examples, context included, after which it stops instead of after `epochs`: what makes data
            of different amounts comparable. None: no such budget.
        chat: where `data` holds chat, whether that comes first or mixed with the trajectories: the same examples in the
            same number of steps. First, for a model that answers well learns to act faster (Su et al. 2025).
        chat_tokens: tokens of chat that are learnt from. None: all of it once.
        conflict: at how many moments of the run, from before the first step to after the last, the gradients of acting
            and of answering are compared (`training/conflict.py`). 0: never, for it costs time and changes nothing.
        batch_trajectories: examples per optimiser step. 64 of them hold some 100k loss-bearing tokens at 7B's
            usual episode lengths, enough for a steady gradient.
        lora_rank: rank of the adapters; 0 trains all weights.
        window_turns: longest run of turns in one example; longer episodes are cut at turn borders. 16 is the
            upper end of the useful range of 8-16: the later half of a window carries the loss.
    """

    epochs: int = Field(default=2, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    chat: Literal["first", "mixed"] = "first"
    chat_tokens: int | None = Field(default=None, gt=0)
    conflict: int = Field(default=0, ge=0)
    batch_trajectories: int = Field(default=64, gt=0)
    lora_rank: int = Field(default=0, ge=0)
    window_turns: int = Field(default=16, ge=2)


class RopeConfig(BaseModel):
    """A longer context by changed rotary position embeddings; exactly one of the two.

    Attributes:
        theta: new base. Raising it is the simplest extension that holds up after some training (Xiong et al. 2023,
            "Effective Long-Context Scaling of Foundation Models").
        yarn: factor of YaRN (Peng et al. 2023), which needs less training: 4 turns 32K into 128K.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    theta: float | None = Field(default=None, gt=1)
    yarn: float | None = Field(default=None, gt=1)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.theta is None) == (self.yarn is None):
            raise ValueError("needs either `theta` or `yarn`")
        return self


class CPTConfig(TrainConfig):
    """Continual pre-training: next-token loss on whole documents.

    Attributes:
        learning_rate: peak. A tenth of the 3e-4 a 7B-30B model is pre-trained with: enough to learn new behaviour,
            little enough to keep the old. A 135M model needs about 2e-4.
        weight_decay: as in pre-training.
        batch_tokens: tokens per optimiser step. A million is a quarter of what 7B-30B models are pre-trained with:
            these runs have fewer steps.
        context: longest document, in tokens. 32K is stage 1 of AgentFounder (Su et al. 2025), 128K its stage 2. A
            longer general text is cut; a longer synthetic document is kept whole for the next stage.
        microbatch_tokens: most tokens computed at once, at least `context`.
        most_epochs: how often a document may come at most, where the token targets ask for more than there is.
            Up to four passes are worth nearly as much as new text (Muennighoff et al. 2023).
        rope: how the context is extended; None keeps the positions the model has.
        seconds: training time after which it stops, the rate having reached 0 by then. None: no bound.
        lora_rank: rank of the adapters; 0 trains all weights.
    """

    learning_rate: float = Field(default=3e-5, gt=0)
    weight_decay: float = Field(default=0.1, ge=0)
    batch_tokens: int = Field(default=2**20, gt=0)
    context: int = Field(default=32_768, ge=2)
    microbatch_tokens: int = Field(default=32_768, gt=0)
    most_epochs: int = Field(default=4, ge=1)
    rope: RopeConfig | None = None
    seconds: float | None = Field(default=None, gt=0)
    lora_rank: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _documents_fit(self) -> Self:
        if self.microbatch_tokens < self.context:
            raise ValueError(
                f"microbatch_tokens = {self.microbatch_tokens} < context = {self.context}: "
                "a document is computed at once; raise one or lower the other"
            )
        return self

    def positions(self, known: int, original: int) -> int:
        """Positions of a model whose context is extended as `rope` says.

        Args:
            known: positions it has.
            original: those it had before any scaling.

        Raises:
            InputError: the context is longer.
        """
        if self.rope is None and self.context > known:
            raise InputError(
                f"context {self.context} tokens > the model's {known} positions; "
                "lower context, or set rope = { yarn = N } or rope = { theta = N }"
            )
        if self.rope is not None and self.rope.yarn is not None and self.rope.yarn * original < self.context:
            raise InputError(
                f"context {self.context} tokens > {original} positions x yarn = {self.rope.yarn:g}; "
                f"set yarn = {math.ceil(self.context / original)} or lower context"
            )
        return known if self.rope is None else max(known, self.context)
