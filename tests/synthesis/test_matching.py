"""When a value stands in a text, and when an answer matches."""

from __future__ import annotations

import pytest

from quintain.synthesis.matching import matches, names, stands


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("The capital is São Tomé.", "sao tome", True),
        ("Nigeria is larger.", "Niger", False),
        ("城市是Yaounde。", "Yaounde", True),
        ("中国的首都", "中国", True),
        ("Area 12 of 120", "120", True),
        ("Area 1200", "120", False),
        ("anything", "", False),
    ],
)
def test_a_name_stands_as_whole_words(text, name, found):
    assert names(text, name) is found


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [("4222", "It reached 4,222 thousand.", True), ("-5", "It lies at −5 m.", True), ("12.5", "12.50 km2", True)],
)
def test_a_number_stands_however_it_is_written(value, text, found):
    assert stands(value, text) is found


@pytest.mark.parametrize(
    ("gold", "answer", "question", "right"),
    [
        (["6"], "The sum is 6.", "", True),
        (["6"], "2 + 4 = 6", "", False),
        (["6"], "2 + 4 = 6", "What do 2 and 4 add up to?", True),
        (["6"], "6 or 7", "", False),
        (["3.142"], "about 3.14", "", True),
        (["Chad"], "It is Chad.", "", True),
        (["Chad", "12"], "It is Chad.", "", False),
        (["Chad", "12"], "Chad, with 12", "", True),
        ([], "anything", "", False),
    ],
)
def test_an_answer_holds_every_gold_value_and_no_stray_number(gold, answer, question, right):
    assert matches(gold, answer, question) is right
