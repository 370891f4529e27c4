"""General text: the user's files as they are, or Python's own documentation."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from quintain.interface.errors import InputError
from quintain.synthesis.general import read_text


def test_text_and_json_lines_become_samples_and_the_rest_is_counted(tmp_path):
    (tmp_path / "a.txt").write_text("Rivers run.", encoding="utf-8")
    lines = [json.dumps({"text": "河流奔向大海。"}, ensure_ascii=False), "{", json.dumps({"body": "x"})]
    (tmp_path / "b.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "c.bin").write_bytes(b"\x00")
    skipped: Counter[str] = Counter()
    found = list(read_text(".", tmp_path, skipped))
    assert [(one.source, one.language, one.text) for one in found] == [
        ("general", "en", "Rivers run."),
        ("general", "zh", "河流奔向大海。"),
    ]
    assert skipped == {"lines that are not JSON": 1, "lines without title and text": 1, "of another kind": 1}


def test_pythons_documentation_is_english_prose_with_ids_of_its_own():
    found = list(islice(read_text("python-docs", Path(), Counter()), 100))
    assert len({one.id for one in found}) == len(found) == 100
    assert {one.language for one in found} == {"en"}
    assert any("iterable" in one.text for one in found)


def test_a_text_that_is_not_there_says_what_may_be_given(tmp_path):
    with pytest.raises(InputError, match=r"documents not found: .*nowhere; give a folder of"):
        list(read_text("nowhere", tmp_path, Counter()))
