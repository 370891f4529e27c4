"""When an answer is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.interface.errors import InputError
from quintain.worlds.answers import wrong

QUESTION = "What is the population of Germany?"


def right(gold, answer, question=QUESTION):
    return wrong(gold, answer, question) == ""


@pytest.mark.parametrize(
    "answer",
    ["80783000", "80,783,000", "+80783000", "80783000.0", "８０７８３０００", "The population of Germany is 80783000.",
     "80783000 people", "It has 80,783,000 inhabitants."],
)  # fmt: skip
def test_a_number_is_right_bare_or_in_a_sentence_in_any_usual_spelling(answer):
    assert right({"number": "80783000"}, answer)
    assert right(80783000, answer)


@pytest.mark.parametrize(
    "answer",
    ["80783001", "80783000 or 80783001", "1 2 3 80783000", "80783000, 80783000", "not 80783000", "8078300", "180783000",
     "80783000000", "-80783000", "80783000%", "80 783 000", "between 0 and 80783000", "80,78,3000", "abc80783000",
     "eighty million", "", "Germany", "80783000 thousand", "80.783.000"],
)  # fmt: skip
def test_a_wrong_number_a_hedge_and_several_guesses_fail(answer):
    assert not right({"number": "80783000"}, answer)


def test_only_a_rounded_number_has_a_tolerance_of_half_a_percent():
    gold = {"number": "226.211", "rounded": True}
    assert right(gold, "226.2")
    assert right(gold, "227.3 people per km2")
    assert not right(gold, "227.4")
    assert not right({"number": "226.211"}, "226.2")
    assert right({"number": "55.845"}, "55.845 u")
    assert right(0.5, "0.501")
    assert not right(2, "2.001")


def test_units_with_digits_are_not_numbers():
    assert right({"number": "357114"}, "357114 km2")
    assert right({"number": "7.874"}, "7.874 g/cm3")


@pytest.mark.parametrize(
    "answer", ["Berlin", "berlin.", "ＢＥＲＬＩＮ", "The capital of Germany is Berlin.", "It is Berlin"]
)
def test_a_text_is_right_bare_or_in_a_short_sentence(answer):
    assert right({"text": "Berlin"}, answer, "What is the capital of Germany?")
    assert right("Berlin", answer, "What is the capital of Germany?")


@pytest.mark.parametrize(
    "answer",
    ["Paris", "Paris, Berlin", "Berlin or Paris", "not Berlin", "East Berlin", "Berliner", "Ber lin", "Germany", "",
     "maybe Berlin", "Berlin Paris Rome Madrid"],
)  # fmt: skip
def test_a_list_of_guesses_a_hedge_and_a_longer_or_shorter_name_fail(answer):
    assert not right({"text": "Berlin"}, answer, "What is the capital of Germany?")


def test_accents_and_word_order():
    assert right({"text": "San José"}, "San Jose")
    assert right({"text": "Washington D.C."}, "Washington, D.C.")
    assert not right({"text": "San José"}, "José San")


def test_aliases_are_as_good_as_the_text():
    gold = {"text": "FRA", "aliases": ["FRA airport"]}
    assert right(gold, "FRA airport", "What is the code of Frankfurt am Main International Airport?")
    assert right(gold, "fra")
    assert not right(gold, "MUC")


def test_a_comparison_names_the_winner_alone():
    gold = {"text": "Guinea", "reject": ["Papua New Guinea"]}
    question = "Which has the larger area in km2: Guinea or Papua New Guinea?"
    assert right(gold, "Guinea", question)
    assert right(gold, "Guinea has the larger area.", question)
    assert not right(gold, "Papua New Guinea", question)
    assert not right(gold, "Guinea or Papua New Guinea", question)
    assert not right(gold, "Papua New Guinea and Guinea", question)
    other = {"text": "Papua New Guinea", "reject": ["Guinea"]}
    assert right(other, "Papua New Guinea", question)
    assert not right(other, "Guinea", question)


@pytest.mark.parametrize("answer", ["柏林", "柏林。", "德国的首都是柏林。", "答案是柏林"])
def test_chinese_answers(answer):
    assert right({"text": "柏林"}, answer, "德国的首都是什么？")


@pytest.mark.parametrize("answer", ["巴黎", "巴黎和柏林", "不是柏林", "东柏林", "柏", "德国"])
def test_wrong_chinese_answers(answer):
    assert not right({"text": "柏林"}, answer, "德国的首都是什么？")


def test_chinese_numbers():
    assert right({"number": "80783000"}, "德国的人口是80783000人。", "德国的人口是多少？")
    assert not right({"number": "80783000"}, "8078万", "德国的人口是多少？")


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=6))
def test_naming_several_numbers_is_never_right(numbers):
    assert not right({"number": str(numbers[0])}, ", ".join(map(str, numbers)))


@given(st.text(max_size=80))
def test_no_text_breaks_the_rule_and_only_one_that_holds_the_value_is_right(answer):
    assert not right({"text": "qzxwv"}, answer) or "qzxwv" in answer.casefold()


@given(st.integers(-(10**12), 10**12))
def test_a_number_is_right_with_and_without_separators(number):
    assert right(number, f"{number:,}")
    assert right(number, str(number))
    assert not right(number, str(number + 1))


@pytest.mark.parametrize("gold", [None, True, ["Berlin"], {"value": 3}])
def test_a_gold_answer_of_no_known_form_is_refused(gold):
    with pytest.raises(InputError, match="gold answer"):
        wrong(gold, "Berlin", QUESTION)
