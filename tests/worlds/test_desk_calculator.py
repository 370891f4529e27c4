"""Arithmetic of the `calculate` tool."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.worlds.desk.calculator import MAX_DIGITS, calculate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("80783000 + 66000000", "146783000"),
        ("80783000 / 357114", "226.211"),
        ("(3 + 4) * 2", "14"),
        ("6 / 2", "3"),
        ("2 ** 64 + 1", "18446744073709551617"),
        ("-11 - (-40)", "29"),
        ("364 * 0.3048", "110.947"),
        ("1 / 3000", "0.000333333"),
        ("7 // 2 + 7 % 2", "4"),
        ("12 × 3 ÷ 4", "9"),
        ("（１＋２）*3", "9"),
        ("max(3, 7) - min(3, 7) + abs(-1)", "5"),
        ("round(2.567, 1)", "2.6"),
        ("sqrt(2)", "1.41421"),
        ("21 > 26", "false"),
        ("26 >= 26", "true"),
        ("0 * 5.0", "0"),
        ("1234567.891", "1234567.89"),
    ],
)
def test_values(expression, value):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "cause"),
    [
        ("1 / 0", "division by zero"),
        ("9 ** 9 ** 9", f"more than {MAX_DIGITS} digits"),
        ("10 ** 59 * 10", f"more than {MAX_DIGITS} digits"),
        ("0.1 ** 1000000", f"more than {MAX_DIGITS} digits"),
        ("round(5, -1000000000)", "round to at most"),
        ("'a' * 1000000000", "only numbers"),
        ("'5'", "not a finite number"),
        ("(-8) ** 0.5", "not a finite number"),
        ("1e999", "not a finite number"),
        ("1" * 201, "201 characters"),
        ("80,783,000 + 1", "numbers without separators"),
        ("population / area", "numbers without separators"),
        ("(1).to_bytes(1000000000, 'big')", "numbers without separators"),
        ("__import__('os').system('true')", "numbers without separators"),
        ("[1] * 10", "numbers without separators"),
        ("f'{1:1000000}'", "numbers without separators"),
        ("2 ^ 3", "numbers without separators"),
        ("lambda: 1", "numbers without separators"),
        ("((((1", "numbers without separators"),
        ("1; 2", "numbers without separators"),
        ("1\n2", "numbers without separators"),
        ("total = 3 * 4", "numbers without separators"),
        ("max()", "at least 1 argument"),
        ("", "numbers without separators"),
    ],
)
def test_everything_else_is_one_clear_error(expression, cause):
    with pytest.raises(ValueError, match="cannot calculate") as caught:
        calculate(expression)
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.integers(-(10**20), 10**20), st.integers(-(10**20), 10**20), st.sampled_from("+-*"))
def test_whole_numbers_are_exact(left, right, sign):
    expected = {"+": left + right, "-": left - right, "*": left * right}[sign]
    assert calculate(f"({left}) {sign} ({right})") == str(expected)


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_quotient_is_shown_within_half_a_unit_of_its_sixth_digit(left, right):
    exact = Fraction(left, right)
    assert abs(Fraction(Decimal(calculate(f"{left} / {right}"))) - exact) <= max(exact * Fraction(6, 10**6), 0)


@given(st.text(max_size=60))
def test_no_text_does_more_than_give_a_value_or_one_line(expression):
    try:
        assert "\n" not in calculate(expression)
    except ValueError as error:
        assert str(error).startswith("cannot calculate")  # noqa: PT017
