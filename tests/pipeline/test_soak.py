"""The soak's counts: what is missing, there twice or counted otherwise by the metrics does not reconcile."""

from __future__ import annotations

from typing import Any

import pytest

from benchmark_scripts import load_benchmark


@pytest.fixture
def soak() -> Any:
    """The script, as a module."""
    return load_benchmark("soak")


def test_a_finished_step_and_one_under_way_reconcile(soak):
    counts = soak.Counts()
    counts.add({"a", "b", "c"}, [True, True, False], {"episodes": 2, "infra": 1})
    counts.add({"d", "e"}, [True], None)
    planned = soak.GROUPS * soak.GROUP_SIZE  # of the step under way, begun or not
    assert counts == soak.Counts(1, 3 + planned, scored=3, infra=1, pending=planned - 1)
    assert counts.reconciled


@pytest.mark.parametrize(
    ("ends", "row", "twice", "lost"),
    [
        ([True, True], {"episodes": 3, "infra": 0}, 0, 0),  # a row counts an episode that no journal has
        ([True, True], {"episodes": 1, "infra": 0}, 0, 0),  # or none for one that has
        ([True, True], {"episodes": 2, "infra": 0}, 1, 0),
        ([True, True], {"episodes": 2, "infra": 0}, 0, 1),
    ],
)
def test_what_is_wrong_does_not_reconcile(soak, ends, row, twice, lost):
    counts = soak.Counts(twice=twice, lost=lost)
    counts.add({"a", "b"}, ends, row)
    assert not counts.reconciled
