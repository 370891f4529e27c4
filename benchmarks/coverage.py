"""Do 95 % intervals hold the truth 95 % of the time where tasks share their difficulty?

Every repeat draws an evaluation from a known difficulty, so the true pass@1 is known. Reported for each difficulty and
number of clusters: coverage of the t interval on the logit scale, of the cluster bootstrap, and of the pooled Wilson
interval that counts trials as if they were independent.

python benchmarks/coverage.py --out benchmarks/results/coverage.json     # about three minutes
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from support.results import write_result

from quintain.evaluation.bootstrap import percentiles
from quintain.evaluation.intervals import jackknife, logit_t

SAMPLES = 4
"""Episodes a task."""

DIFFICULTIES: dict[str, tuple[float, float]] = {
    "u_shaped": (0.2, 0.2),
    "beta": (2.0, 1.0),
    "mostly_solved": (1.0, 0.25),
}
"""Alpha and beta of the distribution of a cluster's success probability; all tasks of a cluster share it."""

CLUSTERS = (30, 60, 100, 200)
REPEATS = 6_000
BOOTSTRAPPED = 1_500
"""Repeats of which the bootstrap, which is slow, sees the first so many."""
DRAWS = 1_000


def simulate(difficulty: str, clusters: int, repeats: int) -> tuple[Any, Any, float]:
    """Sums and sizes `[repeats, clusters]` of evaluations with 1 to 4 tasks a cluster, and the true pass@1."""
    rng = np.random.default_rng(7)
    alpha, beta = DIFFICULTIES[difficulty]
    sizes = rng.integers(1, 5, size=(repeats, clusters)).astype(float)
    chances = rng.beta(alpha, beta, size=(repeats, clusters))
    sums = rng.binomial((sizes * SAMPLES).astype(int), chances) / SAMPLES
    return sums, sizes, alpha / (alpha + beta)


def covered(low: Any, high: Any, truth: float) -> float:
    """Share of the intervals that hold the truth."""
    return float(((np.asarray(low) <= truth) & (truth <= np.asarray(high))).mean())


def wilson(sums: Any, sizes: Any) -> tuple[Any, Any]:
    """The pooled Wilson interval (Wilson 1927) of each repeat, trials taken for independent."""
    trials = sizes.sum(1) * SAMPLES
    share = sums.sum(1) * SAMPLES / trials
    z = stats.norm.ppf(0.975)
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    reach = z * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / (1 + z**2 / trials)
    return centre - reach, centre + reach


def coverage(difficulty: str, clusters: int, repeats: int, bootstrapped: int, draws: int) -> dict[str, float]:
    """Coverage of the three intervals."""
    sums, sizes, truth = simulate(difficulty, clusters, repeats)
    pairs = zip(sums[:bootstrapped], sizes[:bootstrapped], strict=True)
    ends = np.array([percentiles(one, size, draws) for one, size in pairs])
    return {
        "logit_t": covered(*logit_t(*jackknife(sums, sizes), clusters), truth),
        "bootstrap": covered(ends[:, 0], ends[:, 1], truth),
        "pooled_wilson": covered(*wilson(sums, sizes), truth),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    rows = []
    for difficulty in DIFFICULTIES:
        for clusters in CLUSTERS:
            found = coverage(difficulty, clusters, REPEATS, BOOTSTRAPPED, DRAWS)
            rows.append({"difficulty": difficulty, "clusters": clusters, **found})
            print(f"{difficulty:<14} {clusters:>4} clusters", *(f"{name} {share:.3f}" for name, share in found.items()))
    result = {"samples": SAMPLES, "repeats": REPEATS, "bootstrapped": BOOTSTRAPPED, "draws": DRAWS, "coverage": rows}
    write_result(options.out, result)


if __name__ == "__main__":
    main()
