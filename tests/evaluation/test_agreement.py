"""A judge's marks beside labels: agreement, precision, recall, Cohen's kappa, by hand."""

from __future__ import annotations

import pytest

from quintain.evaluation.agreement import agreement
from quintain.interface.errors import InputError

LABELS = [True] * 6 + [False] * 4
MARKS = [True] * 4 + [False] * 2 + [True] + [False] * 3
EACH = [f"q{n}" for n in range(10)]


def test_a_table_of_four_by_hand():
    """4 right and marked right, 2 right and not, 1 wrong and marked right, 3 neither.

    Observed 7/10; by chance 6/10 * 5/10 + 4/10 * 5/10 = 5/10; kappa = 2/10 / (5/10).
    """
    found = agreement(LABELS, MARKS, EACH)
    assert found.agreement.value == pytest.approx(0.7)
    assert found.precision.value == pytest.approx(4 / 5)
    assert found.recall.value == pytest.approx(4 / 6)
    assert found.kappa.value == pytest.approx(0.4)
    ends = [(end - 0.5) / 0.5 for end in (found.agreement.low, found.agreement.high)]
    assert [found.kappa.low, found.kappa.high] == pytest.approx(ends)


def test_perfect_agreement_is_1_with_an_interval_of_some_width():
    found = agreement(LABELS, LABELS, EACH)
    assert (found.agreement.value, found.kappa.value) == (1.0, 1.0)
    assert found.kappa.low < 0.7


def test_answers_to_one_question_count_as_one_cluster():
    """The same table ten times over says no more about questions than the questions there are."""
    once = agreement(LABELS, MARKS, EACH)
    often = agreement(LABELS * 10, MARKS * 10, EACH * 10)
    assert often.agreement.clusters == 10
    assert (often.kappa.low, often.kappa.high) == pytest.approx((once.kappa.low, once.kappa.high))


def test_a_judge_that_marks_nothing_right_has_no_precision_and_no_agreement_beyond_chance():
    found = agreement(LABELS, [False] * 10, EACH)
    assert (found.precision, found.recall.value, found.kappa.value) == (None, 0.0, 0.0)


@pytest.mark.parametrize("label", [True, False])
def test_labels_of_one_kind_are_refused(label):
    with pytest.raises(InputError, match="give both right and wrong answers"):
        agreement([label] * 3, [True, False, True], EACH[:3])
