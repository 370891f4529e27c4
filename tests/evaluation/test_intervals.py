"""Intervals and paired tests that resample clusters."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmark_scripts import load_benchmark
from quintain.evaluation.intervals import jackknife, mean_interval, paired_difference, sign_flip_p
from quintain.interface.errors import InputError

benchmark = load_benchmark("coverage")

REPEATS = 6_000
# Three standard errors of a coverage of 0.95 estimated from 6,000 repeats.
NOISE = 3 * (0.95 * 0.05 / REPEATS) ** 0.5


@pytest.mark.parametrize("difficulty", benchmark.DIFFICULTIES)
@pytest.mark.parametrize("clusters", [30, 100])
def test_interval_covers_93_to_97_percent_where_tasks_are_clustered(difficulty: str, clusters: int) -> None:
    found = benchmark.coverage(difficulty, clusters, REPEATS, bootstrapped=1, draws=10)
    assert 0.93 - NOISE <= found["logit_t"] <= 0.97 + NOISE
    assert found["pooled_wilson"] < 0.80, "pooled trials pretend to know what they do not"


@pytest.mark.parametrize("difficulty", benchmark.DIFFICULTIES)
def test_the_bootstrap_covers_as_well_there(difficulty: str) -> None:
    found = benchmark.coverage(difficulty, 60, 400, bootstrapped=400, draws=400)["bootstrap"]
    assert found >= 0.93 - 3 * (0.95 * 0.05 / 400) ** 0.5


@pytest.mark.parametrize("clusters", [2, 3, 4, 5, 8])
def test_few_clusters_still_cover(clusters: int) -> None:
    sums, sizes, truth = benchmark.simulate("u_shaped", clusters, 400)
    covered = 0
    for cluster_sums, cluster_sizes in zip(sums, sizes, strict=True):
        counts = cluster_sizes.astype(int)
        values = np.repeat(cluster_sums / cluster_sizes, counts).tolist()
        found = mean_interval(values, np.repeat(np.arange(clusters), counts).astype(str).tolist())
        covered += found.low <= truth <= found.high
    assert covered / 400 >= 0.93


def test_jackknife_of_equal_clusters_is_the_standard_error_of_their_means() -> None:
    means = np.array([0.1, 0.5, 0.3, 0.9, 0.7])
    mean, error = jackknife(means * 2, np.full(5, 2.0))
    assert mean == pytest.approx(0.5)
    assert error == pytest.approx(means.std(ddof=1) / 5**0.5)


def test_tasks_of_one_cluster_count_as_one_witness() -> None:
    values = [0.0, 1.0] * 20
    apart = mean_interval(values, [f"c{index}" for index in range(40)])
    together = mean_interval(values, [f"c{value}-{index // 8}" for index, value in enumerate(values)])
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_all_fail_is_the_exact_clopper_pearson_interval_on_clusters() -> None:
    found = mean_interval([0.0] * 100, [f"c{index % 50}" for index in range(100)])
    assert found.method == "exact"
    assert (found.value, found.low) == (0, 0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 50))
    assert found.high == pytest.approx(stats.binomtest(0, 50).proportion_ci(0.95, "exact").high)


def test_all_pass_mirrors_all_fail() -> None:
    found = mean_interval([1.0] * 20, [f"c{index}" for index in range(20)])
    assert (found.value, found.high, found.method) == (1, 1, "exact")
    assert found.low == pytest.approx(0.025 ** (1 / 20))


def test_one_cluster_tells_next_to_nothing() -> None:
    found = mean_interval([0.5, 0.5, 0.0, 1.0], ["doc"] * 4)
    assert (found.low, found.high) == (0, 1)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from("abcdefgh")), min_size=1, max_size=40)
)
def test_an_interval_holds_its_mean_lies_in_0_1_and_has_width(tasks: list[tuple[float, str]]) -> None:
    found = mean_interval([value for value, _ in tasks], [cluster for _, cluster in tasks])
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high - found.low > 0.01


def test_no_task_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no scored task"):
        mean_interval([], [])


def test_a_value_outside_0_1_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        mean_interval([1.5], ["c"])


def test_paired_difference_by_hand_and_against_the_paired_t_test() -> None:
    rng = np.random.default_rng(3)
    before = rng.binomial(4, 0.4, size=60) / 4
    after = np.minimum(1, before + rng.binomial(1, 0.3, size=60) / 4)
    found = paired_difference(before.tolist(), after.tolist(), [f"c{index}" for index in range(60)])
    reference = stats.ttest_rel(after, before).confidence_interval(0.95)
    assert found.estimate.value == pytest.approx((after - before).mean())
    assert found.estimate.low == pytest.approx(reference.low, abs=0.003)
    assert found.estimate.high == pytest.approx(reference.high, abs=0.003)
    assert found.p_value < 0.001


def test_pairing_removes_the_difficulty_of_tasks() -> None:
    clusters = [f"c{index}" for index in range(50)]
    before = [0.0, 0.75] * 25
    after = [0.25, 0.75] * 25
    found = paired_difference(before, after, clusters).estimate
    first, second = mean_interval(before, clusters), mean_interval(after, clusters)
    unpaired = math.hypot(first.high - first.low, second.high - second.low)
    assert found.high - found.low < 0.5 * unpaired


@pytest.mark.parametrize("step", [0.0, 1.0, -1.0, 0.5])
def test_a_difference_that_every_cluster_shows_still_has_width(step: float) -> None:
    before = [max(0.0, -step)] * 30
    after = [value + step for value in before]
    found = paired_difference(before, after, [f"c{index}" for index in range(30)]).estimate
    share = 1 - 0.025 ** (1 / 30)
    assert found.method == "exact"
    assert found.low == pytest.approx(step * (1 - share) - share)
    assert found.high == pytest.approx(step * (1 - share) + share)


def test_sign_flip_p_by_hand() -> None:
    # 4 clusters, all better: of 16 sign patterns only the two extreme ones reach the sum.
    assert sign_flip_p(np.array([1.0, 1.0, 0.5, 0.25])) == 2 / 16
    assert sign_flip_p(np.array([1.0, -1.0])) == 1.0
    assert sign_flip_p(np.zeros(5)) == 1.0


def test_sampled_sign_flips_agree_with_enumeration() -> None:
    sums = np.array([0.3, -0.2, 0.5, 0.1, 0.4, -0.6, 0.2, 0.35, 0.15, -0.05, 0.25, 0.45, -0.3, 0.55, 0.05, -0.1])
    exact = np.mean([abs(np.dot(signs, sums)) >= sums.sum() - 1e-9 for signs in product((-1, 1), repeat=16)])
    assert sign_flip_p(sums) == pytest.approx(exact, abs=0.012)


def test_difference_covers_and_rejects_at_the_stated_level_without_an_effect() -> None:
    rng = np.random.default_rng(11)
    covered = rejected = 0
    clusters = [f"c{index // 2}" for index in range(80)]
    for _ in range(300):
        chance = np.repeat(rng.beta(0.3, 0.3, size=40), 2)
        before, after = (rng.binomial(2, chance) / 2 for _ in range(2))
        found = paired_difference(before.tolist(), after.tolist(), clusters)
        covered += found.estimate.low <= 0 <= found.estimate.high
        rejected += found.p_value <= 0.05
    assert covered / 300 >= 0.92
    assert rejected / 300 <= 0.08
