"""Distance between what was trained on and what is measured, by hand."""

from __future__ import annotations

import math

import pytest

from quintain.curation.distance import distances
from quintain.interface.tasks import Task


def tasks(*rows):
    return [
        Task(f"{number}", "desk", "?", cluster=cluster, template=template, tags=(f"hops:{hops}", "lang:en"))
        for number, (cluster, template, hops) in enumerate(rows)
    ]


def test_equal_shares_are_0_apart_and_nothing_in_common_is_1():
    training = tasks(("country:FR", "lookup", 1), ("country:FR", "lookup", 1))
    found = distances(training, tasks(("element:He", "lookup", 1)))
    assert (found["templates"].apart, found["templates"].new) == (0, 0)
    assert (found["entities"].apart, found["entities"].new) == (1, 1)
    assert (found["collections"].apart, found["collections"].new) == (1, 1)
    assert found["languages"].apart == 0


def test_half_of_it_new_is_as_the_formula_says():
    training = tasks(("a", "lookup", 1), ("b", "lookup", 1))
    found = distances(training, tasks(("c", "lookup", 1), ("d", "lookup", 2)))["hops"]
    # P = (1, 0), Q = (1/2, 1/2), M = (3/4, 1/4): D = (log2(4/3) + 1/2 log2(2/3) + 1/2 log2(2)) / 2
    divergence = (math.log2(4 / 3) + 0.5 * math.log2(2 / 3) + 0.5) / 2
    assert found.apart == pytest.approx(math.sqrt(divergence), abs=1e-4)
    assert found.new == 0.5
