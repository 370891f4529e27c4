"""Where our estimators and those of Inspect AI (version 0.3.285) estimate the same thing, they agree.

The numbers are what that version printed for the data below. With Inspect installed the last tests ask it again.
"""

from __future__ import annotations

import numpy as np
import pytest

from quintain.evaluation.estimators import Trials, avg_at_k, pass_at_k, pass_hat_k
from quintain.evaluation.intervals import by_cluster, jackknife

VALUES = [1.0, 0.5, 0.25, 0.0, 1.0, 0.75, 0.5, 0.0]
PAIRS = ["a", "a", "b", "b", "c", "c", "d", "d"]
UNEVEN = ["a", "a", "b", "b", "b", "c", "d", "e"]
MEAN, STANDARD_ERROR, BY_PAIRS, BY_UNEVEN = 0.5, 0.1417366773784602, 0.1839950180484968, 0.11048543456039805
PASS_AT = {1: [0, 0.25, 0.5, 0.75, 1], 2: [0, 0.5, 5 / 6, 1, 1], 3: [0, 0.75, 1, 1, 1], 4: [0, 1, 1, 1, 1]}
PASS_HAT = {1: [0, 0.25, 0.5, 0.75, 1], 2: [0, 0, 1 / 6, 0.5, 1], 3: [0, 0, 0, 0.25, 1], 4: [0, 0, 0, 0, 1]}
"""By k, for 0 to 4 successes in 4 trials."""


def ours(clusters: list[str]) -> tuple[float, float]:
    mean, error = jackknife(*by_cluster(VALUES, clusters))
    return float(mean), float(error)


def sandwich(clusters: list[str]) -> float:
    """The clustered standard error written anew: squared sums of residuals, times G / (G - 1)."""
    residuals = np.array(VALUES) - np.mean(VALUES)
    names = sorted(set(clusters))
    sums = [sum(one for one, name in zip(residuals, clusters, strict=True) if name == wanted) for wanted in names]
    return float(np.sqrt(np.square(sums).sum() * len(names) / (len(names) - 1)) / len(VALUES))


def test_tasks_without_common_content_have_the_usual_standard_error():
    assert ours([str(number) for number in range(8)]) == pytest.approx((MEAN, STANDARD_ERROR))
    assert pytest.approx(STANDARD_ERROR) == np.std(VALUES, ddof=1) / 8**0.5


def test_clusters_of_one_size_have_inspects_clustered_standard_error():
    assert sandwich(PAIRS) == pytest.approx(BY_PAIRS)
    assert ours(PAIRS)[1] == pytest.approx(BY_PAIRS)


def test_clusters_of_several_sizes_get_a_wider_one_by_the_jackknife():
    assert sandwich(UNEVEN) == pytest.approx(BY_UNEVEN)
    assert BY_UNEVEN < ours(UNEVEN)[1] < 1.25 * BY_UNEVEN


@pytest.mark.parametrize("k", PASS_AT)
def test_pass_at_k_and_pass_hat_k_agree(k):
    trials = [Trials(str(c), str(c), 4, c) for c in range(5)]
    assert pass_at_k(trials, k) == pytest.approx(PASS_AT[k])
    assert pass_hat_k(trials, k) == pytest.approx(PASS_HAT[k])
    assert avg_at_k(trials) == pytest.approx(PASS_AT[1])


def test_inspect_itself_still_says_so():
    scorer = pytest.importorskip("inspect_ai.scorer", reason="inspect-ai is not installed")

    def scores(clusters):
        pairs = zip(VALUES, clusters, strict=True)
        return [
            scorer.SampleScore(score=scorer.Score(value=value), sample_metadata={"cluster": name})
            for value, name in pairs
        ]

    assert scorer.mean()(scores(PAIRS)) == pytest.approx(MEAN)
    assert scorer.stderr()(scores(PAIRS)) == pytest.approx(STANDARD_ERROR)
    assert scorer.stderr(cluster="cluster")(scores(PAIRS)) == pytest.approx(BY_PAIRS)
    assert scorer.stderr(cluster="cluster")(scores(UNEVEN)) == pytest.approx(BY_UNEVEN)
    for reducer, table in ((scorer.pass_at, PASS_AT), (scorer.pass_k, PASS_HAT)):
        for k, expected in table.items():
            runs = [[scorer.Score(value=1.0)] * c + [scorer.Score(value=0.0)] * (4 - c) for c in range(5)]
            assert [reducer(k)(one).value for one in runs] == pytest.approx(expected)
