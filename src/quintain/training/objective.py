"""What is minimised: log-probabilities and predictions in, a loss and figures to watch out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from quintain.training.head import Logprobs
from quintain.training.tree import Predictions


@dataclass(frozen=True, slots=True)
class Loss:
    """A microbatch's share of the optimiser batch's loss.

    Attributes:
        value: to be back-propagated; the microbatches' values add up to the batch's loss.
        metrics: shares that add up over the microbatches, like `value`.
    """

    value: Tensor
    metrics: dict[str, float] = field(default_factory=dict)


class Objective(Protocol):
    """Turns what the model says into a loss."""

    def __call__(self, logprobs: Logprobs, predictions: Predictions, total_weight: float) -> Loss:
        """The loss of one microbatch.

        Args:
            logprobs: of the predictions `[M]`.
            predictions: of the microbatch `[M]`.
            total_weight: loss weight of the whole optimiser batch, so that the split into microbatches,
                which depends on lengths, changes nothing.
        """
        ...


def cross_entropy(logprobs: Logprobs, predictions: Predictions, total_weight: float) -> Loss:
    """Weighted token cross-entropy in nats, each unit of loss weight counting the same (SFT and CPT)."""
    share = predictions.weights / total_weight
    value = -(share * logprobs.values).sum()
    entropy = float((share * logprobs.entropies).sum())
    return Loss(value, {"loss": float(value.detach()), "entropy": entropy})


def policy_gradient(logprobs: Logprobs, predictions: Predictions, total_weight: float) -> Loss:
    """Advantage-weighted log-likelihood without any clipping (REINFORCE, Williams 1992)."""
    share = predictions.weights / total_weight
    value = -(share * predictions.advantages * logprobs.values).sum()
    return Loss(value, {"loss": float(value.detach())})
