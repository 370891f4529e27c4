"""A training example: token ids with a weight for each. CPT, SFT and GRPO differ only in these numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from quintain.interface.episode import Digests


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids `[T]` and what the loss needs of each.

    Attributes:
        ids: token ids `[T]`.
        weights: loss weight of *predicting* `ids[t]` from `ids[:t]` `[T]`; 0 is context. `weights[0]` is 0.
        advantages: per token `[T]`, for policy-gradient objectives.
        behaviour_logprobs: log-probability under the policy that sampled it `[T]` (0 at context).
        source: where it came from (`sft:expert`, `grpo`, `cpt:has`, ...), for mixes and reports.
        cluster: cluster of its task, so that splits by cluster stay possible.
        episode: id of the episode, or "".
        group: examples of one group share a task and a policy.
        digests: of the interface it was made with.
        version: version of the behaviour policy.
    """

    ids: tuple[int, ...]
    weights: tuple[float, ...]
    advantages: tuple[float, ...] | None = None
    behaviour_logprobs: tuple[float, ...] | None = None
    source: str = ""
    cluster: str = ""
    episode: str = ""
    group: str = ""
    digests: Digests = field(default_factory=Digests)
    version: int = 0

    def __post_init__(self) -> None:
        length = len(self.ids)
        for name in ("weights", "advantages", "behaviour_logprobs"):
            values = getattr(self, name)
            if values is not None and len(values) != length:
                raise ValueError(f"example {self.episode or self.source}: {len(values)} {name} for {length} ids")
        if length and self.weights[0] != 0:
            raise ValueError("example: the first token has no predecessor, so its weight must be 0")

    @property
    def loss_tokens(self) -> int:
        """Number of tokens that carry loss."""
        return sum(1 for weight in self.weights if weight)
