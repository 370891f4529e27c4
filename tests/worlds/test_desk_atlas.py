"""Facts of the built-in collection, checked against what is well known."""

from __future__ import annotations

import pytest

from quintain.worlds.desk import Desk
from quintain.worlds.desk.atlas import atlas, entities
from quintain.worlds.drawing import LANGUAGES

ENTITIES = {entity.key: entity for entity in entities()}


@pytest.mark.parametrize(
    ("key", "language", "attribute", "value"),
    [
        ("country:DE", "en", "capital", "Berlin"),
        ("country:DE", "zh", "capital", "柏林"),
        ("country:FR", "zh", "currency", "欧元"),
        ("country:JP", "en", "calling_code", "81"),
        ("country:BR", "en", "language", "Portuguese"),
        ("country:CH", "en", "neighbours", "5"),
        ("country:KE", "zh", "currency", "肯尼亚先令"),
        ("element:Fe", "en", "number", "26"),
        ("element:Fe", "en", "mass", "55.845"),
        ("element:Au", "zh", "symbol", "Au"),
        ("element:Og", "en", "number", "118"),
    ],
)
def test_well_known_facts(key, language, attribute, value):
    assert ENTITIES[key].facts[language][attribute] == value


@pytest.mark.parametrize(
    ("key", "title"), [("country:DE", "德国"), ("element:Fe", "铁"), ("element:W", "钨"), ("element:Og", "鿫")]
)
def test_chinese_titles(key, title):
    assert ENTITIES[key].titles["zh"] == title


def test_there_are_hundreds_of_documents_of_three_kinds_in_both_languages():
    kinds = [entity.kind for entity in entities()]
    assert kinds.count("country") >= 200
    assert kinds.count("airport") >= 400
    assert kinds.count("element") == 118
    assert len(atlas()) == 2 * len(kinds)


def test_titles_are_unique_and_every_document_is_one_page():
    documents = atlas().documents
    assert len({document.title.casefold() for document in documents}) == len(documents)
    assert all(len(document.pages()) == 1 for document in documents)


def test_doubtful_values_are_left_out_not_filled_in():
    assert "density" not in ENTITIES["element:Og"].facts["en"]  # no one has measured it
    assert "currency" not in ENTITIES["country:US"].facts["en"]  # the package lists several
    assert "neighbours" not in ENTITIES["country:JP"].facts["en"]  # an island, or missing: the package can't tell
    assert all(
        value.strip() and "None" not in value
        for entity in entities()
        for facts in entity.facts.values()
        for value in facts.values()
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_document_is_among_the_hits_for_its_title(language):
    desk = Desk()
    lost = [
        e.key
        for e in entities()
        if e.titles[language] not in [hit.title for hit in desk.documents.search(e.titles[language])]
    ]
    assert lost == []
