from __future__ import annotations

from pathlib import Path

import pytest

from quintain.interface.errors import InputError
from quintain.interface.files import json_lines, numbered_lines, replacing


def test_an_error_while_a_file_is_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half of the n")
            raise OSError("disk is full")

    with pytest.raises(OSError, match="disk is full"):
        fail()
    assert path.read_text() == "old"


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path, 0o600) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_lines_end_at_newlines_alone_and_blank_ones_count_but_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('"a\u2028b"\n\n  \n"c\x85d"'.encode())
    assert [number for number, _ in numbered_lines(path)] == [1, 4]
    assert list(json_lines(path)) == [(1, "a\u2028b"), (4, "c\x85d")]


def test_a_line_that_is_not_json_is_named_after_those_before_it_were_given(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("1\n{\n")
    found = json_lines(path)
    assert next(found) == (1, 1)
    with pytest.raises(InputError, match=r"a\.jsonl:2: not valid JSON"):
        next(found)
