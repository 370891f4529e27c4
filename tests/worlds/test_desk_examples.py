"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest

import pytest

from quintain.interface import words
from quintain.worlds import answers
from quintain.worlds.desk import calculator


@pytest.mark.parametrize("module", [answers, calculator, words])
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
