"""What the scan reads: every text of every file, nested ones and escaped ones too."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.curation.contamination import Item
from quintain.curation.items import BLOCK, read_items, texts_of, unread
from quintain.interface.errors import InputError

JSON = st.recursive(
    st.text(max_size=8) | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_a_journal_line_gives_prompt_thought_arguments_and_result(tmp_path):
    turn = {
        "thought": "我先查一下",
        "calls": [{"id": "c1", "tool": "search", "arguments": json.dumps({"query": "不丹的首都"})}],
        "ids": [1, 2, 3],
        "observations": [{"content": "Thimphu: capital", "value": json.dumps(["不丹", "a page"])}],
    }
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps({"kind": "start"}) + "\n" + json.dumps(turn) + "\n")
    texts = {item.text for item in read_items(path) if item.where == f"{path}:2"}
    assert {"我先查一下", "不丹的首都", "Thimphu: capital", "a page"} <= texts


@given(JSON)
def test_no_text_is_left_out_however_deep_it_lies_and_however_often_it_is_escaped(value):
    leaf = "the leaf that must be found"
    wrapped = json.dumps({"x": [value and "text", {"y": leaf}]})
    assert leaf in list(texts_of({"a": value, "b": wrapped}))


def test_a_text_that_only_looks_like_json_is_read_as_it_is():
    assert list(texts_of("{not json}")) == ["{not json}"]
    assert list(texts_of('"quoted"')) == ["quoted"]


def test_a_folder_is_read_file_by_file_and_a_long_text_in_blocks(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.md").write_text("line one\n" * (BLOCK // 9 + 2))
    (tmp_path / "b.json").write_text('{\n "question": "What is it?"\n}')
    (tmp_path / "weights.bin").write_bytes(b"\x00\xff")
    found = list(read_items(tmp_path))
    assert [item.where.rpartition("/")[2].partition(":")[0] for item in found] == ["notes.md", "notes.md", "b.json"]
    assert found[2] == Item(str(tmp_path / "b.json"), "What is it?")
    assert sum(len(item.text) for item in found[:2]) == 9 * (BLOCK // 9 + 2)


def test_a_torn_last_line_of_a_journal_is_passed_over(tmp_path):
    (tmp_path / "journal.jsonl").write_text('{"a": "whole"}\n{"a": "to')
    assert [item.text for item in read_items(tmp_path)] == ["whole"]


@pytest.mark.parametrize(("name", "message"), [("no.txt", "no such file or folder"), ("bad.jsonl", "bad.jsonl:2: not")])
def test_what_cannot_be_read_is_named(tmp_path, name, message):
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(InputError, match=message):
        list(read_items(tmp_path / name))


def test_folders_behind_links_are_scanned_as_the_memory_reads_them(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("The secret task.")
    (tmp_path / "real" / "b.bin").write_text("x")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "sub").symlink_to(tmp_path / "real")
    assert [item.text for item in read_items(tmp_path / "docs")] == ["The secret task."]
    assert unread(tmp_path / "docs") == {".bin": 1}
