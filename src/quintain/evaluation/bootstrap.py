"""A second 95 % interval that shares no formula with `intervals.mean_interval`: resample whole clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from quintain.evaluation.intervals import (
    LEVEL,
    Estimate,
    Floats,
    by_cluster,
    effective_clusters,
    exact_interval,
    jackknife,
    needs_exact,
)

DRAWS = 4_000
"""Resamples; the ends of an interval then move by about a fortieth of its width from seed to seed."""


def bootstrap_interval(values: Sequence[float], clusters: Sequence[str]) -> Estimate:
    """Mean of per-task values in [0, 1] with a cluster bootstrap interval.

    Fewer than 5 clusters, or clusters without any spread, get the exact interval, as in `mean_interval`.

    Args:
        values: one value a task `[tasks]`.
        clusters: the cluster of each task `[tasks]`.

    Raises:
        InputError: there is no task.
    """
    sums, sizes = by_cluster(values, clusters)
    mean, error = jackknife(sums, sizes)
    if needs_exact(error, len(sums)):
        low, high = exact_interval(float(mean), effective_clusters(sizes))
        return Estimate(float(mean), low, high, len(values), len(sums), "exact")
    low, high = percentiles(sums, sizes, DRAWS)
    return Estimate(float(mean), min(low, float(mean)), max(high, float(mean)), len(values), len(sums), "bootstrap")


def percentiles(sums: Floats, sizes: Floats, draws: int) -> tuple[float, float]:
    """Expanded percentile interval of the mean over clusters drawn with replacement.

    The plain percentile interval is too narrow for few clusters by sqrt((n - 1) / n), and uses the normal
    distribution where Student's belongs. So the percentiles are moved out to
    `Phi(sqrt(n / (n - 1)) t(alpha / 2, n - 1))`: Hesterberg 2015, "What Teachers Should Know About the Bootstrap"
    (The American Statistician 69, arXiv 1411.5279), the expanded percentile interval.

    Args:
        sums: sum of the values of each cluster `[clusters]`.
        sizes: number of its tasks `[clusters]`.
        draws: resamples.
    """
    count = len(sums)
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=draws)
    means = drawn @ sums / (drawn @ sizes)
    tail = stats.norm.cdf(np.sqrt(count / (count - 1)) * stats.t.ppf((1 - LEVEL) / 2, count - 1))
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)
