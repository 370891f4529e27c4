"""pass@1, pass@k and pass^k."""

from itertools import combinations

import pytest
from evaluation_episodes import episode
from hypothesis import given
from hypothesis import strategies as st

from quintain.evaluation.estimators import Trials, avg_at_k, pass_at_k, pass_hat_k, trials_by_task
from quintain.interface.errors import InputError


def trials(*counts: tuple[int, int]) -> list[Trials]:
    return [Trials(f"t{index}", f"c{index}", n, c) for index, (n, c) in enumerate(counts)]


def test_avg_at_k_weighs_tasks_alike_however_many_trials_they_have() -> None:
    assert avg_at_k(trials((4, 1), (2, 2), (3, 0))) == [0.25, 1.0, 0.0]


def test_pass_at_k_by_hand() -> None:
    # 4 trials, 1 success: of the 6 pairs, 3 hold it. 5 trials, 2 successes: 1 - 3/10 of the pairs miss both.
    assert pass_at_k(trials((4, 1), (5, 2)), 2) == pytest.approx([0.5, 0.7])


def test_pass_hat_k_by_hand() -> None:
    # 4 trials, 3 successes: 3 of the 6 pairs are both successes.
    assert pass_hat_k(trials((4, 3), (4, 1), (2, 2)), 2) == pytest.approx([0.5, 0.0, 1.0])


@st.composite
def count_and_k(draw: st.DrawFn) -> tuple[int, int, int]:
    n = draw(st.integers(1, 9))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


@given(count_and_k())
def test_estimators_equal_the_mean_over_all_subsets_of_k_trials(case: tuple[int, int, int]) -> None:
    n, c, k = case
    subsets = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(trials((n, c)), k)[0] == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_hat_k(trials((n, c)), k)[0] == pytest.approx(sum(map(all, subsets)) / len(subsets))


@given(st.integers(1, 50).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_at_k_1_all_three_agree(case: tuple[int, int]) -> None:
    one = trials(case)
    assert pass_at_k(one, 1)[0] == pytest.approx(avg_at_k(one)[0])
    assert pass_hat_k(one, 1)[0] == pytest.approx(avg_at_k(one)[0])


@pytest.mark.parametrize("estimator", [pass_at_k, pass_hat_k])
def test_k_above_the_trials_of_a_task_is_refused_with_the_numbers(estimator: object) -> None:
    with pytest.raises(InputError, match=r"k = 4 needs 4 .* 1 of 2 tasks have fewer \(task 't1' has 3\)"):
        estimator(trials((4, 1), (3, 1)), 4)  # type: ignore[operator]


def test_k_below_1_is_refused() -> None:
    with pytest.raises(InputError, match="k = 0"):
        pass_at_k(trials((4, 1)), 0)


def test_infra_errors_are_no_trials() -> None:
    episodes = [episode("a", True), episode("a", None), episode("a", False), episode("b", None)]
    assert trials_by_task(episodes) == [Trials("a", "a", n=2, c=1)]


def test_a_task_keeps_the_cluster_of_its_episodes() -> None:
    found = trials_by_task([episode("a", cluster="doc1"), episode("b", cluster="doc1")])
    assert [task.cluster for task in found] == ["doc1", "doc1"]
