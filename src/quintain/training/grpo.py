"""The GRPO objective on prefix trees, put together from small functions; shapes: `[M]` predictions, `[K]` members.

Every token of the optimiser batch counts the same, whatever the length of its episode (token-level
normalisation: Yu et al. 2025, DAPO, arXiv 2503.14476): the trainer divides by the loss weight of the whole batch.
There is one update per batch, so one ratio says all: current policy over the policy that sampled the token, be it
older or only computed by another program.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quintain.training.head import Logprobs
from quintain.training.objective import Loss
from quintain.training.tree import Predictions

_MOST_LOG_RATIO = 20.0
"""exp(20) is still a number in float32; beyond it every rule below has long cut the token off."""


def importance_ratio(logprobs: Tensor, behaviour: Tensor) -> Tensor:
    """Probability under the current policy over that under the one that sampled, with gradient `[M]`."""
    return (logprobs - behaviour).clamp(-_MOST_LOG_RATIO, _MOST_LOG_RATIO).exp()


def clip_higher(ratio: Tensor, advantages: Tensor, low: float, high: float, cap: float) -> Tensor:
    """PPO's clipped surrogate, to be maximised `[M]`.

    The upper clip is wider than the lower one, so that unlikely tokens can rise (DAPO, arXiv 2503.14476).
    Outside of the clip the ratio is an importance weight truncated at `cap`: PPO leaves that of a bad action that
    became likely unbounded. The action is still pushed down, with weight `cap` (truncated importance sampling:
    Ionides 2008; Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training"); dual-clip
    PPO (Ye et al. 2020, arXiv 1912.09729) has the same value and would let go of it.
    """
    clipped = ratio.clamp(1.0 - low, 1.0 + high)
    truncated = ratio * (ratio.detach().clamp(max=cap) / ratio.detach())
    return torch.minimum(truncated * advantages, clipped * advantages)


def k3_kl(logprobs: Tensor, reference: Tensor, ratio: Tensor) -> Tensor:
    """KL of the current policy from the reference, estimated at sampled tokens `[M]`.

    k3 = p_ref / p - log(p_ref / p) - 1 (Schulman 2020, "Approximating KL divergence"): never negative, low variance.
    Weighted by the importance ratio, *with* its gradient: only then is the estimate's gradient that of the KL
    when another policy sampled (DeepSeek-V3.2, arXiv 2512.02556).
    """
    difference = (reference - logprobs).clamp(-_MOST_LOG_RATIO, _MOST_LOG_RATIO)
    return ratio * (difference.exp() - difference - 1.0)


def sequence_mask(log_ratio: Tensor, predictions: Predictions, limit: float) -> Tensor:
    """Whose surrogate counts `[examples]`: 0 for a bad example that the current policy would hardly write.

    Masks an example with a negative advantage whose mean log p_behaviour - log p over its tokens exceeds `limit`
    (off-policy sequence masking: DeepSeek-V3.2, arXiv 2512.02556). Pushing such sequences further down
    moves the policy where nothing was sampled; good examples are kept, however old. The KL counts for all of them.
    """
    examples = predictions.member_examples
    count = int(examples.max()) + 1 if len(examples) else 0
    member = predictions.member_predictions
    zeros = log_ratio.new_zeros(count)
    weight = zeros.index_add(0, examples, predictions.member_weights)
    drift = zeros.index_add(0, examples, -log_ratio.detach()[member] * predictions.member_weights) / weight
    bad = zeros.index_add(0, examples, predictions.advantages[member] * predictions.member_weights) < 0
    return (~(bad & (drift > limit))).to(log_ratio.dtype)


def masked_weights(mask: Tensor, predictions: Predictions) -> Tensor:
    """Loss weight of each prediction once masked examples are left out `[M]`."""
    kept = predictions.member_weights * mask[predictions.member_examples]
    return torch.zeros_like(predictions.weights).index_add(0, predictions.member_predictions, kept)


@dataclass(slots=True)
class GRPOObjective:
    """Clipped policy gradient plus KL.

    Attributes:
        clip_low: the ratio may fall this far below 1.
        clip_high: and rise this far above.
        ratio_cap: truncation of importance weights.
        off_policy_limit: of `sequence_mask`, in nats a token.
        kl: weight of the KL from the reference, if the trainer has one.
    """

    clip_low: float
    clip_high: float
    ratio_cap: float
    off_policy_limit: float
    kl: float

    def __call__(self, logprobs: Logprobs, predictions: Predictions, total_weight: float) -> Loss:
        """The loss of one microbatch."""
        values = logprobs.values
        log_ratio = values - predictions.behaviour
        ratio = importance_ratio(values, predictions.behaviour)
        weights = masked_weights(sequence_mask(log_ratio, predictions, self.off_policy_limit), predictions)
        share = weights / total_weight
        surrogate = clip_higher(ratio, predictions.advantages, self.clip_low, self.clip_high, self.ratio_cap)
        value = -(share * surrogate).sum()
        full = predictions.weights / total_weight
        outside = (ratio < 1.0 - self.clip_low) | (ratio > 1.0 + self.clip_high)
        metrics = {
            "entropy": _sum(full * logprobs.entropies),
            "ratio": _sum(full * ratio),
            "clipped": _sum(full * outside),
            "masked": _sum(full - share),
            "mismatch": _sum(full * log_ratio.abs()),
        }
        if logprobs.reference is not None:
            divergence = (full * k3_kl(values, logprobs.reference, ratio)).sum()
            value = value + self.kl * divergence
            metrics["kl"] = float(divergence.detach())
        return Loss(value, {"loss": float(value.detach()), **metrics})


def _sum(values: Tensor) -> float:
    return float(values.detach().sum())
