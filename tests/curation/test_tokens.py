"""Texts become hashed tokens: words in English, characters in Chinese, numbers alike."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.curation.tokens import grams, tokenize

IDEOGRAPH = r"[\u4e00-\u9fff]"
TEXTS = st.text(st.sampled_from("abXY 9.,-\n人口国，"), max_size=40)


def slowly(text: str) -> list[str]:
    """The same by a regular expression; neighbouring numbers are one token."""
    found: list[str] = []
    for token in re.findall(rf"{IDEOGRAPH}|[a-z0-9]+", text.lower()):
        number = token[0].isdigit()
        if not (number and found and found[-1] == "0"):
            found.append("0" if number else token)
    return found


@given(st.lists(TEXTS, max_size=6))
def test_tokens_of_many_texts_are_those_a_regular_expression_finds(texts):
    tokens = tokenize(texts)
    expected = [slowly(text) for text in texts]
    assert np.diff(tokens.bounds).tolist() == [len(one) for one in expected]
    hashes = tokens.masked.tolist()
    names = [token for one in expected for token in one]
    assert len(set(zip(names, hashes, strict=True))) == len(set(names)) == len(set(hashes))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("What is IT?", "what is it"),
        ("１９９８ ＡＢＣ", "1998 abc"),
        ("café", "cafe\u0301"),
        ("naïve", "naive"),
        ("soft\u00adware", "software"),
        ("Straße", "STRASSE"[:4] + "ße"),
    ],
)
def test_case_width_and_accents_make_no_difference(one, two):
    assert tokenize([one]).raw.tolist() == tokenize([two]).raw.tolist()


def test_numbers_are_alike_when_masked_and_differ_when_not():
    one, two = tokenize(["add 12 apples"]), tokenize(["add 7 apples"])
    assert one.masked.tolist() == two.masked.tolist()
    assert one.raw.tolist() != two.raw.tolist()


def test_a_number_in_several_pieces_is_one_token_but_not_across_texts():
    assert np.diff(tokenize(["1,234.5 km", "6 7", "8"]).bounds).tolist() == [2, 1, 1]


def test_two_chinese_characters_count_as_a_word():
    assert tokenize(["法国首都 Paris"]).words.tolist() == [0.5, 0.5, 0.5, 0.5, 1.0]


def test_runs_are_equal_where_their_tokens_are_in_the_same_order():
    tokens = tokenize(["a b c d a b d c"])
    runs = grams(tokens.raw, 2).tolist()
    assert runs[0] == runs[4]
    assert len(set(runs)) == 6  # ab bc cd da bd dc
    assert len(grams(tokens.raw, 9)) == 0


def test_an_excerpt_is_the_text_between_two_tokens_and_stays_in_its_text():
    tokens = tokenize(["One, two; three!", "four"])
    assert tokens.excerpt(1, 1) == "two;"
    assert tokens.excerpt(1, 2) == "two; three!"
    assert tokens.excerpt(3, 3) == "four"


def test_texts_without_tokens_are_no_trouble():
    assert tokenize([]).bounds.tolist() == [0]
    assert tokenize(["", "...", "\ud800"]).bounds.tolist() == [0, 0, 0, 0]
