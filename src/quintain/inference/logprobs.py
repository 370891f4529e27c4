"""Log-probabilities as sampled, from those under the model: engines elsewhere report only the latter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from quintain.interface.generation import FinishReason, Generation, Sampling

ALL = -1
"""The whole vocabulary."""


def wanted(sampling: Sampling, vocabulary: int) -> int:
    """How many of the most probable tokens' log-probabilities are needed beside the sampled one's.

    0 for sampling at temperature 1 with nothing cut, and greedy; `top_k` where only that many can be drawn; otherwise
    the whole vocabulary, which is slow.
    """
    if sampling.temperature == 0 or _plain(sampling):
        return 0
    return sampling.top_k if 0 < sampling.top_k < vocabulary else ALL


def as_sampled(token: int, table: Mapping[int, float], sampling: Sampling) -> float:
    """Log-probability of a token under the distribution it was drawn from.

    Args:
        token: the sampled one.
        table: log-probabilities under the model, of the tokens that `wanted` asks for and of the sampled one.
        sampling: how it was drawn: temperature, then `top_k`, then `top_p`.
    """
    if sampling.temperature == 0:
        return 0.0
    if _plain(sampling):
        return table[token]
    scores = sorted((value / sampling.temperature for value in table.values()), reverse=True)
    scores = scores[: sampling.top_k] if sampling.top_k > 0 else scores
    mass = math.fsum(math.exp(score - scores[0]) for score in scores)
    kept, reached = 0, 0.0
    while kept < len(scores) and reached < sampling.top_p * mass:
        reached += math.exp(scores[kept] - scores[0])
        kept += 1
    own = table[token] / sampling.temperature
    total = math.fsum(math.exp(score - scores[0]) for score in scores[:kept])
    return own - scores[0] - math.log(total)


def generation(
    ids: Sequence[int],
    tables: Sequence[Mapping[int, float]],
    sampling: Sampling,
    finish: FinishReason,
    version: int = 0,
) -> Generation:
    """A generation, from what an engine reports of each of its tokens.

    Args:
        ids: that were drawn.
        tables: log-probabilities at each, as `as_sampled` takes them.
        sampling: how they were drawn.
        finish: why it ended.
        version: of the weights.
    """
    pairs = list(zip(ids, tables, strict=True))
    return Generation(
        ids=tuple(ids),
        logprobs=tuple(table[token] for token, table in pairs),
        sampled_logprobs=tuple(as_sampled(token, table, sampling) for token, table in pairs),
        finish=finish,
        version=version,
    )


def _plain(sampling: Sampling) -> bool:
    """Whether tokens are drawn from the model's own distribution, nothing cut."""
    return sampling.temperature == 1 and sampling.top_p >= 1 and sampling.top_k <= 0
