"""The memory: statements by entity, from whatever people keep, counted, deduplicated, on disk."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.interface.episode import Episode, Outcome, Usage
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call, Observation, Turn, message
from quintain.interface.words import fold
from quintain.synthesis import documents as reading
from quintain.synthesis.documents import Document, read_documents
from quintain.synthesis.memory import Memory, build
from quintain.synthesis.results import result_documents
from quintain.synthesis.statements import property_of, statements
from quintain.worlds.desk import Desk
from quintain.worlds.desk.atlas import LABELS, entities


def texts(title: str, text: str) -> list[str]:
    return [one.text for one in statements(Document(title, text, "test"))]


def read(*paths: Path) -> tuple[list[Document], Counter[str]]:
    skipped: Counter[str] = Counter()
    return list(read_documents(paths, skipped)), skipped


def test_a_field_becomes_a_sentence_that_can_be_read_alone():
    assert texts("Chad", "Country. Capital: N'Djamena. Area in km2: 1284000.") == [
        "The capital of Chad is N'Djamena.",
        "The area in km2 of Chad is 1284000.",
    ]
    assert texts("乍得", "首都：恩贾梅纳。人口：100。") == ["乍得的首都是恩贾梅纳。", "乍得的人口是100。"]


def test_a_statement_has_the_date_it_speaks_of_or_its_documents():
    said = "Tourist arrivals in France reached 4,222 thousand in June 2025. France lies in Europe somewhere."
    first, second = statements(Document("France", said, "news", "2024-01-02"))
    assert (first.time, first.source) == ("2025-06", "news")
    assert (second.time, second.attribute) == ("2024-01-02", "")


@pytest.mark.parametrize(
    ("entity", "text", "found"),
    [
        ("Rex", "Rex's weight is 31 kg.", ("weight", "31 kg")),
        ("Rex", "The weight of Rex was 31 kg in May 2020.", ("weight in May 2020", "31 kg")),
        ("长城", "长城的长度约为21196公里。", ("长度", "21196公里")),
        ("Rex", "Rex barks at night.", ("", "")),
        ("Rex (dog)", "The owner of Rex (dog) is Ann.", ("owner", "Ann")),
    ],
)
def test_plain_sentences_give_an_attribute_and_a_value(entity, text, found):
    assert property_of(entity, text) == found


@given(st.text(max_size=300), st.text(min_size=1, max_size=30))
def test_any_text_makes_statements_within_bounds(text, title):
    for one in statements(Document(title, text, "test")):
        assert one.text.strip()
        assert one.language in ("en", "zh")
        assert bool(one.attribute) == bool(one.value)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_fact_of_the_desks_collection_is_found_again(language):
    for entity in entities():
        document = entity.document(language)
        found = {one.attribute: one.value for one in statements(Document(document.title, document.text, "atlas"))}
        for name, value in entity.facts[language].items():
            label = LABELS[name][language]
            assert found[label[0].lower() + label[1:]].removesuffix(".") == value.removesuffix("."), (entity.key, name)


def test_files_of_every_kind_are_read(tmp_path):
    (tmp_path / "a.txt").write_text("The price of tea is 3 euros.")
    (tmp_path / "b.md").write_text("# Tea\n\n- Price: **3** euros, see [list](x.html)\n\n# Coffee\nPrice: 4 euros\n")
    (tmp_path / "c.html").write_text("<title>Cocoa</title><script>x()</script><p>Price: 5 euros</p>")
    rows = [{"title": "Milk", "text": "Price: 2 euros", "time": "2025-03-01", "source": "shop"}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, skipped = read(tmp_path)
    assert [one.title for one in found] == ["a", "Tea", "Coffee", "Cocoa", "Milk"]
    assert found[1].text.strip() == "Price: 3 euros, see list"
    assert (found[4].source, found[4].time) == ("shop", "2025-03-01")
    assert not skipped


def test_bad_input_is_counted_by_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", 1_000_000)
    (tmp_path / "empty.txt").write_text("  \n")
    (tmp_path / "empty.md").write_text("# Only a title\n")
    (tmp_path / "empty.html").write_text("<html><script>x()</script></html>")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(100_000_000)
    rows = [b"{broken", b"[]", b'{"title": "a"}', b'{"title": " ", "text": " "}', b'"' + b"x" * 2_500_000 + b'"']
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join([*rows, b'{"title": "Tea", "text": "Price: 3"}']))
    found, skipped = read(tmp_path)
    assert [one.title for one in found] == ["Tea"]
    assert skipped == {
        "empty": 3,
        "HTML without text": 1,
        "of another kind": 1,
        "binary": 1,
        "larger than 1 MB": 2,
        "lines that are not JSON": 1,
        "lines without title and text": 2,
    }


def test_a_page_no_parser_takes_is_counted_and_the_next_one_read(tmp_path):
    (tmp_path / "a.html").write_text("<p>Hello there world</p><![foo bar")
    (tmp_path / "b.html").write_text("<p>Hello there world</p>")
    found, skipped = read(tmp_path)
    assert [one.text for one in found] == ["Hello there world"]
    assert skipped == {"HTML that can't be parsed": 1}


def test_half_characters_anywhere_in_a_record_and_in_a_files_name_are_replaced(tmp_path):
    record = {"title": "A", "text": "Capital: B\ud800", "source": "\ud800", "time": "20\ud800"}
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("Capital: C")
    counts: Counter[str] = Counter()
    build(tmp_path / "memory.sqlite", read_documents([tmp_path], counts), counts)
    assert counts["statements"] == 2
    (first, second), _ = read(tmp_path)
    assert (first.text, first.source, first.time, second.title) == ("Capital: B?", "?", "20?", "caf?")


def test_folders_behind_links_are_read_once_and_those_without_permission_counted(tmp_path, monkeypatch):
    for name in ("real", "docs/closed"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "real" / "a.txt").write_text("Capital: A")
    (tmp_path / "docs" / "sub").symlink_to(tmp_path / "real")
    (tmp_path / "docs" / "loop").symlink_to(tmp_path / "docs")
    scandir = os.scandir

    def closed(path):
        if str(path).endswith("closed"):  # root, who may run the tests, is refused nothing
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    found, skipped = read(tmp_path / "docs")
    assert [one.title for one in found] == ["a"]
    assert skipped == {"folders that can't be read": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_json_lines_of_two_bytes_a_character_are_read(tmp_path, encoding):
    text = "".join(json.dumps({"title": name, "text": "Capital: B"}) + "\n" for name in ("Ann", "Bo"))
    mark = "" if encoding == "utf-16" else "\ufeff"
    (tmp_path / "a.jsonl").write_bytes((mark + text).encode(encoding))
    found, skipped = read(tmp_path)
    assert [one.title for one in found] == ["Ann", "Bo"]
    assert skipped == {reading.REENCODED: 1}


def test_a_link_to_nowhere_is_counted(tmp_path):
    (tmp_path / "gone.md").symlink_to("nowhere.md")
    (tmp_path / "tea.txt").write_text("Price: 3")
    found, skipped = read(tmp_path)
    assert [one.title for one in found] == ["tea"]
    assert skipped == {"can't be read": 1}


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, "[x](" * 100_000, " \n" * 200_000, "# a" + " " * 300_000 + "b\n", "```\n" * 100_001, "#" * 300_000],
    ids=["brackets", "open links", "blank lines", "a spaced title", "fences", "hashes"],
)
def test_markdown_made_to_take_long_is_read_as_fast_as_any_other(tmp_path, text):
    """Time quadratic in the length would be hours here."""
    (tmp_path / "odd.md").write_text(f"{text}\n# Tea\nPrice: 3\n")
    found, _ = read(tmp_path)
    assert found[-1].title in ("Tea", "odd")


@pytest.mark.parametrize(
    ("heading", "title"), [("# Tea", "Tea"), ("# Tea ##", "Tea"), ("# C#", "C#"), ("#  Green tea  ", "Green tea")]
)
def test_a_heading_is_the_title_without_what_closes_it(tmp_path, heading, title):
    (tmp_path / "a.md").write_text(f"{heading}\nSee [the shop](http://shop) and ![it](a.png).\n")
    (one,), _ = read(tmp_path)
    assert one.title == title
    assert one.text.strip() == "See the shop and it."


def test_other_and_mixed_encodings_are_read_and_counted(tmp_path):
    chinese = "长城是中国古代的军事防御工程，长城的长度约为两万一千公里，每年有很多游客来这里参观。\n" * 20
    (tmp_path / "1.txt").write_bytes(chinese.encode("gb18030"))
    (tmp_path / "2.txt").write_bytes(b"Ready.\n" * 50 + chinese.encode("gb18030") + "é ü\n".encode())
    (tmp_path / "3.txt").write_bytes("Tea costs 3 euros.".encode("utf-16"))
    found, skipped = read(tmp_path)
    assert found[0].text == chinese
    assert found[1].text == "Ready.\n" * 50 + chinese + "é ü\n"
    assert found[2].text.lstrip("\ufeff") == "Tea costs 3 euros."
    assert skipped == {reading.REENCODED: 3}


def test_lines_in_an_encoding_that_ends_lines_otherwise_stay_lines(tmp_path):
    """In EBCDIC the byte between them is no end of a line."""
    english = [
        "The long wall was built a long time ago and many people visit it",
        "Every year the old town sells tea and coffee to all who come by",
    ]
    (tmp_path / "1.txt").write_bytes(b"Ready.\n" * 3 + b"\n".join(line.encode("cp037") for line in english))
    (one,), skipped = read(tmp_path)
    assert one.text == "Ready.\n" * 3 + "\n".join(english)
    assert skipped == {reading.REENCODED: 1}


@pytest.mark.parametrize("start", ["", "a"], ids=["even", "odd"])
def test_a_long_text_is_recognised_wherever_a_character_begins(tmp_path, start):
    text = start + "长城是中国古代的军事防御工程，长城的长度约为两万一千公里。\n" * 3600
    (tmp_path / "1.txt").write_bytes(text.encode("gb18030"))
    (one,), _ = read(tmp_path)
    assert one.text == text


def test_a_heading_of_blanks_leaves_the_files_name(tmp_path):
    (tmp_path / "tea.md").write_text("#   \nPrice: 3 euros\n")
    (one,), _ = read(tmp_path)
    assert one.title == "tea"


def test_sentences_that_make_no_statement_are_counted(tmp_path):
    counts: Counter[str] = Counter()
    build(tmp_path / "m", [Document("Tea", f"Hi.\n\nPrice: 3 euros\n{'very ' * 90}dear.", "a")], counts)
    assert counts == {
        "documents en": 1,
        "statements": 1,
        "fragments that say nothing": 1,
        "sentences longer than 400 characters": 1,
    }


def test_adding_the_same_again_changes_nothing(tmp_path):
    tea = Document("Tea", "Price: 3 euros\nOrigin: Assam", "shop")
    longer = Document("TEA", "Price:  3 euros\nColour: black", "another shop")
    counts: Counter[str] = Counter()
    build(tmp_path / "memory.sqlite", [tea, longer], counts)
    again: Counter[str] = Counter()
    found = build(tmp_path / "memory.sqlite", [tea, Document("Tea", "Price: 3 euros\n\nOrigin: Assam", "copy")], again)
    assert counts == {"documents en": 2, "statements": 3, "duplicate statements": 1}
    assert again == {"documents en": 2, "duplicate documents": 2}
    assert found == {"entities en": 1, "statements en": 3, "entities with one statement": 0}


def test_an_entity_with_one_statement_is_counted(tmp_path):
    counts: Counter[str] = Counter()
    found = build(tmp_path / "m", [Document("Tea", "Price: 3 euros", "a"), Document("Milk", "Hi.", "a")], counts)
    assert found["entities with one statement"] == 1
    assert counts["documents without a statement"] == 1


def test_an_interrupted_document_leaves_nothing_behind(tmp_path, monkeypatch):
    with closing(Memory(tmp_path / "m")) as memory:
        insert = memory._insert

        def breaks(one):
            if "Origin" in one.text or "origin" in one.text:
                raise KeyboardInterrupt
            return insert(one)

        monkeypatch.setattr(memory, "_insert", breaks)
        with pytest.raises(KeyboardInterrupt):
            memory.add([Document("Tea", "Price: 3 euros\nOrigin: Assam", "a")], Counter())
    assert build(tmp_path / "m", [], Counter()) == {"entities with one statement": 0}


def test_excerpts_visit_every_entity_once_in_an_order_the_seed_fixes(atlas_memory):
    with closing(Memory(atlas_memory)) as memory:
        first = [one.entity for one in memory.excerpts("en", 1)]
        assert sorted(first) == sorted(title for title, _ in Desk.corpus("train", ("en",)))
        assert first == [one.entity for one in memory.excerpts("en", 1)]
        assert first != [one.entity for one in memory.excerpts("en", 2)]
        assert first != sorted(first)


def test_excerpts_follow_links_and_bring_a_peer(atlas_memory):
    with closing(Memory(atlas_memory)) as memory:
        for one in memory.excerpts("en", 1):
            assert {said.entity for said in one.own} == {one.entity}
            values = {fold(said.value) for said in one.own}
            assert all(fold(said.entity) in values for said in one.linked)
            attributes = {said.attribute for said in one.own}
            assert any(said.attribute in attributes for said in one.peers)
            if one.entity.endswith(" airport"):
                assert one.linked


def test_no_entity_of_the_desks_evaluation_is_in_the_memory_of_training(atlas_memory):
    evaluated = {fold(title) for entity in entities() if entity.split == "eval" for title in entity.titles.values()}
    with closing(Memory(atlas_memory)) as memory:
        held = {
            fold(said.entity) for language in ("en", "zh") for one in memory.excerpts(language, 0) for said in one.all
        }
    assert len(held) > 700
    assert held & evaluated == set()


def test_documents_about_held_out_entities_are_left_out_wherever_they_come_from(tmp_path):
    held_out = frozenset(fold(title) for title, _ in Desk.corpus("eval", ("en",)))
    name = next(title for title, _ in Desk.corpus("eval", ("en",)))
    counts: Counter[str] = Counter()
    found = build(tmp_path / "m", [Document(name.upper(), "Capital: Somewhere", "web")], counts, held_out)
    assert counts == {"documents en": 1, "about an entity held out for evaluation": 1}
    assert "statements en" not in found


def test_tool_results_of_episodes_become_documents():
    def turn(tool, arguments, content, error=""):
        call = Call("c", tool, arguments)
        return Turn(Action(calls=(call,)), (Observation("c", tool, content, error=error),))

    turns = (
        turn("search", {"query": "Chad"}, "Chad: Country."),
        turn("open", {"title": "Chad", "page": 1}, "Capital: N'Djamena."),
        turn("open", {"title": "Chadd"}, "no document", "exception"),
    )
    episode = Episode("e1", "t", "c", "desk", "a", (message("user", "?"),), turns, Outcome("answered"), None, Usage())
    counts: Counter[str] = Counter()
    (found,) = result_documents([episode], {"open"}, counts)
    assert found == Document("Chad", "Capital: N'Djamena.", "episode e1")
    assert counts == {"tool results with an error": 1}


def test_a_folder_in_place_of_a_memory_is_named_and_not_offered_for_removal(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path}: unable to open database file; mend that"):
        Memory(tmp_path)


def test_a_file_that_is_no_memory_is_named(tmp_path):
    (tmp_path / "m").write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(InputError, match=r"m: no memory"):
        Memory(tmp_path / "m")
    with pytest.raises(InputError, match="documents not found"):
        read(tmp_path / "nowhere")
