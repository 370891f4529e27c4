"""The soak's counts: what is missing, there twice or counted otherwise by the metrics does not reconcile."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("soak_benchmark", BENCHMARKS / "soak.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where its dataclasses look
    spec.loader.exec_module(module)
    return module


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
