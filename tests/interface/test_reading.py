"""Reading a journal episode by episode: order, memory and what is missing."""

from __future__ import annotations

import json

import pytest

from quintain.interface.errors import InputError
from quintain.interface.reading import Unfinished, read_episodes


def write(path, *records):
    lines = [json.dumps({"v": 1, "index": 0, **record}) + "\n" for record in records]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def start(episode):
    return {"kind": "start", "episode": episode}


def end(episode):
    return {"kind": "end", "episode": episode}


def test_interleaved_episodes_come_in_the_order_they_ended_with_the_lines_of_their_records(tmp_path):
    path = write(
        tmp_path / "journal.jsonl",
        start("a"),
        start("b"),
        {"kind": "turn", "episode": "b"},
        {"kind": "turn", "episode": "a"},
        {"kind": "user", "episode": "a", "user": "more", "snapshot": None},
        end("b"),
        {"kind": "turn", "episode": "a"},
        end("a"),
    )
    found = list(read_episodes(path))
    assert [(one.story.id, one.story.line, one.story.turn_lines, one.line) for one in found] == [
        ("b", 2, [3], 6),
        ("a", 1, [4, 7], 8),
    ]
    assert [turn.get("user") for turn in found[1].story.turns] == ["more", None]


def test_episodes_without_an_end_are_left_in_the_table(tmp_path):
    path = write(tmp_path / "journal.jsonl", start("a"), start("b"), end("a"))
    live: dict[str, Unfinished] = {}
    assert [one.story.id for one in read_episodes(path, live)] == ["a"]
    assert list(live) == ["b"]


def test_only_episodes_under_way_are_held(tmp_path):
    path = write(tmp_path / "journal.jsonl", *(record for name in "abcdef" for record in (start(name), end(name))))
    live: dict[str, Unfinished] = {}
    assert [len(live) for _ in read_episodes(path, live)] == [0] * 6


@pytest.mark.parametrize("kind", ["turn", "user", "end"])
def test_a_record_of_an_episode_that_has_not_begun_is_damage_with_its_line(tmp_path, kind):
    path = write(tmp_path / "journal.jsonl", start("a"), {"kind": kind, "episode": "b"})
    with pytest.raises(InputError, match=r"journal.jsonl:2: damaged record: nothing of episode 'b' stands before it"):
        list(read_episodes(path))


def test_a_user_who_speaks_before_the_first_turn_is_damage(tmp_path):
    path = write(tmp_path / "journal.jsonl", start("a"), {"kind": "user", "episode": "a"})
    with pytest.raises(InputError, match="nothing of episode 'a' stands before it"):
        list(read_episodes(path))
