"""Canonical JSON and its digests (RFC 8785)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values

from quintain.interface.canonical import canonical_json, digest, digest_bytes


def test_the_example_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'\u0042"\\\\"/',
        "literals": [None, True, False],
    }
    expected = (
        r"""{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"""
        r""""string":"€$\u000f\nA'B\"\\\\\"/"}"""
    )
    assert canonical_json(value) == expected.encode()


def test_keys_are_sorted_by_utf16_code_units() -> None:
    # by code points, U+FB33 would come before U+1F600
    assert canonical_json({"\ufb33": 1, "\U0001f600": 2, "€": 3}) == '{"€":3,"\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, b"x", object(), {1: 2}])
def test_a_value_without_one_json_form_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_json(value)


@given(value=json_values)
def test_canonical_json_reads_back_and_has_one_spelling(value: Any) -> None:
    data = canonical_json(value)
    assert json.loads(data, parse_int=float) == value  # numbers are doubles in RFC 8785
    assert canonical_json(json.loads(json.dumps(value, indent=1))) == data


@given(items=st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), st.integers(0, 9), max_size=6))
def test_the_order_of_keys_does_not_change_the_digest(items: dict[str, int]) -> None:
    assert digest(items) == digest(dict(reversed(items.items())))


def test_a_digest_is_the_sha256_of_the_canonical_bytes() -> None:
    assert digest({"b": 1, "a": "茶"}) == "sha256:" + hashlib.sha256('{"a":"茶","b":1}'.encode()).hexdigest()
    assert digest_bytes(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
