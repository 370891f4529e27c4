"""Settings of training, each with a default and the reason for it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

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
        checkpoint_seconds: time between checkpoints, what a crash can cost at most.
        seed: of the order of the data and of LoRA's start.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    learning_rate: float = Field(default=1e-5, gt=0)
    warmup: float = Field(default=0.05, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)
    microbatch_tokens: int = Field(default=16_384, gt=0)
    checkpoint_seconds: float = Field(default=600.0, ge=0)
    seed: int = 0


class SFTConfig(TrainConfig):
    """Supervised fine-tuning (behaviour cloning).

    Attributes:
        epochs: passes over the data. Two: a third mostly memorises.
        seconds: training time after which it stops even if epochs are left, the learning rate having
            reached 0 by then. None: no bound.
        batch_trajectories: examples per optimiser step. 64 of them hold some 100k loss-bearing tokens at 7B's
            usual episode lengths, enough for a steady gradient.
        lora_rank: rank of the adapters; 0 trains all weights.
        window_turns: longest run of turns in one example; longer episodes are cut at turn borders. 16 is the
            upper end of the useful range of 8-16: the later half of a window carries the loss.
    """

    epochs: int = Field(default=2, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    batch_trajectories: int = Field(default=64, gt=0)
    lora_rank: int = Field(default=0, ge=0)
    window_turns: int = Field(default=16, ge=2)
