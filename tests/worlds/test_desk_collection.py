"""Collections: search, pages, and a user's own files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.till import Script
from quintain import Harness, Task
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.interface.words import words
from quintain.worlds.desk import Desk
from quintain.worlds.desk.collection import PAGE_WIDTH, Collection, Document
from quintain.worlds.desk.readers import MAX_BYTES, read_collection


def collection(*documents):
    return Collection([Document(*document) for document in documents], "test")


def titles(hits):
    return [hit.title for hit in hits]


def test_the_longest_title_in_the_query_comes_first_then_the_best_text():
    documents = collection(
        ("Guinea", "A country with Conakry."),
        ("Papua New Guinea", "A country with Port Moresby."),
        ("Conakry", "A city in Guinea."),
        ("Tea", "Leaves in water."),
    )
    assert titles(documents.search("population of Papua New Guinea"))[:2] == ["Papua New Guinea", "Guinea"]
    assert titles(documents.search("guinea"))[0] == "Guinea"
    assert titles(documents.search("port moresby")) == ["Papua New Guinea"]
    assert documents.search("zzz") == []
    assert documents.search("") == []


def test_chinese_is_searched_by_characters_and_pairs():
    documents = collection(
        ("德国", "国家。首都：柏林。"), ("中国", "国家。首都：北京。"), ("Germany", "Capital: Berlin. 德国")
    )
    assert titles(documents.search("德国的首都")) == ["德国"]
    assert titles(documents.search("北京"))[0] == "中国"
    assert titles(documents.search("Berlin Germany")) == ["Germany"]
    assert words("德国人") == ["德", "国", "人", "德国", "国人"]


def test_equal_scores_keep_the_order_of_the_collection():
    documents = collection(*((f"Note {letter}", "the same text") for letter in "dcba"))
    assert titles(documents.search("same text")) == ["Note d", "Note c", "Note b"]


def test_titles_are_found_without_case_accents_and_width():
    documents = collection(("Côte d'Ivoire", "A country."))
    assert documents.find(" cote D'IVOIRE ") is documents.documents[0]
    assert documents.find("Cote") is None


def test_documents_without_words_do_no_harm():
    documents = collection(("!!!", "..."))
    assert documents.search("anything") == []
    assert documents.find("!!!") is not None


@given(st.text(alphabet="ab 德国。\n", max_size=1500))
def test_pages_hold_the_whole_text_and_none_is_longer_than_a_page(text):
    pages = Document("T", text).pages()
    assert "".join("".join(pages).split()) == "".join(text.split())
    assert all(sum(4 if char in "德国" else 1 for char in page) <= PAGE_WIDTH for page in pages)


def test_a_hit_shows_its_first_sentence_unless_the_title_says_it():
    assert Document("Iron", "A metal. It rusts.").snippet() == "A metal"
    assert Document("FRA airport", "Airport. City: Frankfurt.").snippet() == ""
    assert Document("Note", "x" * 100).snippet() == "x" * 37 + "..."
    assert Document("德国", "国家或地区。首都：柏林。").snippet() == "国家或地区"
    assert Document("Heron", "# Heron\n\n## About it\n\nA rowing boat. Fast.").snippet() == "A rowing boat"
    assert Document("夜间划船", "夜间划船\n\n在河上举行。").snippet() == "在河上举行"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("# Tea shop\n\nTea costs 3 euros.", encoding="utf-8")
    (tmp_path / "b.txt").write_text("Coffee costs 4 euros.", encoding="utf-8")
    html = "<html><head><title>Juice</title><style>p{}</style></head><body><p>Juice <b>costs</b> 5</p></body></html>"
    (tmp_path / "sub" / "c.html").write_text(html, encoding="utf-8")
    lines = [{"title": "茶", "text": "三元。"}, {"title": "Tea shop", "text": "Another\u2028one."}]
    broken = ["{", "[]", json.dumps({"title": "x"}), '{"title": "\\ud800", "text": "y"}', ""]
    jsonl = "\n".join([*(json.dumps(line, ensure_ascii=False) for line in lines), *broken])
    (tmp_path / "d.jsonl").write_text(jsonl, encoding="utf-8")
    return tmp_path


def test_a_folder_of_text_markdown_html_and_json_lines_is_a_collection(folder):
    found = read_collection(folder)
    assert {document.title: document.text for document in found.documents} == {
        "Tea shop": "# Tea shop\n\nTea costs 3 euros.",
        "b": "Coffee costs 4 euros.",
        "茶": "三元。",
        "Tea shop (2)": "Another\u2028one.",
        "Juice": "Juice costs 5",
    }
    assert found.skipped == {
        "lines that are not JSON": 1,
        "lines without title and text": 2,
        "lines with half a character": 1,
    }


def test_unreadable_files_are_skipped_and_counted_by_reason(folder):
    (folder / "e.txt").write_bytes(b"")
    (folder / "f.txt").write_bytes(b"caf\xe9")
    (folder / "g.txt").write_bytes(b"a\0b")
    (folder / "h.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    (folder / "i.pdf").write_bytes(b"%PDF")
    (folder / "j.html").write_text("<script>1</script>", encoding="utf-8")
    found = read_collection(folder)
    assert len(found) == 5
    reasons = {"empty": 2, "not UTF-8": 1, "binary": 1, "larger than 5 MB": 1, "of another kind": 1}
    assert reasons.items() <= found.skipped.items()


@pytest.mark.parametrize("make", ["missing", "nothing", "unreadable"])
def test_a_collection_without_documents_is_refused_in_one_line(tmp_path, make):
    path = tmp_path / "docs"
    if make != "missing":
        path.mkdir()
    if make == "unreadable":
        (path / "a.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match=r"not found|no readable document") as caught:
        Desk(collection=str(path))
    assert "\n" not in str(caught.value)
    assert make != "unreadable" or "1 not UTF-8" in str(caught.value)


def test_the_digest_follows_the_documents(tmp_path):
    digests = []
    for name, text in (("a", "one"), ("b", "one"), ("c", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(text)
        digests.append(Desk(collection=str(tmp_path / name)).data_digest())
    assert digests[0] == digests[1] != digests[2]
    assert Desk().data_digest() not in digests


async def test_a_user_s_own_collection_and_task_need_no_more_than_a_folder_and_a_line(folder):
    calls = [("search", {"query": "tea"}), ("open", {"title": "tea shop"}), ("open", {"title": "nothing"})]
    actions = [*(Action(calls=(Call("1", *one),)) for one in calls), Action(answer="3 euros")]
    task = Task("t1", "desk", "How many euros does tea cost?", answer=3)
    episode = await Harness(lambda: Desk(collection=str(folder))).run(task, Script(actions))
    assert episode.success
    seen = [turn.observations[0] for turn in episode.turns[:-1]]
    assert seen[0].content.startswith("Tea shop")
    assert "3 euros" in seen[1].content
    assert seen[2].error == "exception"
    assert "search gives titles" in seen[2].content


def test_a_long_document_is_read_page_by_page(tmp_path):
    (tmp_path / "long.txt").write_text("word " * 200)
    desk = Desk(collection=str(tmp_path))
    pages = [desk.open("long", page) for page in (1, 2, 3, 4)]
    assert pages[0].endswith("(page 1 of 4)")
    assert sum(page.count("word") for page in pages) == 200
    with pytest.raises(ValueError, match="has pages 1 to 4, not 5"):
        desk.open("long", 5)


def test_tasks_are_made_for_the_built_in_collection_only(folder):
    with pytest.raises(InputError, match="give its pools a `file`"):
        Desk.generate("eval", 1, 0, ("en",), (), collection=str(folder))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Night Row\n\nThe Night Row takes place at River Tarn.", "Night Row"),
        ("夜间划船\n\n在塔恩河举行。", "夜间划船"),
        ("Night Row\nThe Night Row takes place at River Tarn.", "night_row"),  # a paragraph's first line
        ("It takes place at night.\n\nBring a lamp.", "night_row"),
        ("Date: 6 June\n\nBring a lamp.", "night_row"),
        ("- a lamp\n\n- a coat", "night_row"),
        ("Night Row", "night_row"),
    ],
)
def test_a_text_is_titled_by_a_first_line_that_reads_like_a_title(tmp_path, text, title):
    (tmp_path / "night_row.txt").write_text(text, encoding="utf-8")
    (document,) = read_collection(tmp_path).documents
    assert document.title == title
    assert document.text == text
