"""People's corrections: one line each, refused with its number, or a point to go on from."""

from __future__ import annotations

import json

import pytest

from evaluation.evaluation_episodes import answer, call, episode
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.synthesis.corrections import homeless_corrections, read_corrections
from synthesis.test_repair import TOOLS

EPISODE = episode("t", False, turns=[call(query="x"), answer("12")])


def read(path, *lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return list(read_corrections(path, [EPISODE], lambda world: TOOLS))


def test_a_line_is_a_point_with_what_to_do_first(tmp_path):
    search = {"episode": "t#0", "turn": 0, "thought": "y", "calls": [{"tool": "search", "arguments": {"query": "y"}}]}
    points = read(tmp_path / "c.jsonl", search, "", {"episode": "t#0", "turn": 1, "answer": "13"})
    assert [(one.turns, one.kind, one.id) for one in points] == [(0, "person", "t#0+0p1"), (1, "person", "t#0+1p3")]
    assert points[0].first == Action(thought="y", calls=(Call("0", "search", {"query": "y"}),))
    assert points[1].first == Action(answer="13")


def test_corrections_of_other_stages_episodes_are_passed_over(tmp_path):
    assert read(tmp_path / "c.jsonl", {"episode": "other#0", "turn": 0, "answer": "13"}) == []


def test_a_line_may_say_of_which_stage_its_episode_is(tmp_path):
    line = json.dumps({"stage": "own", "episode": "t#0", "turn": 0, "answer": "13"})
    (tmp_path / "c.jsonl").write_text(line)
    found = {name: list(read_corrections(tmp_path / "c.jsonl", [EPISODE], lambda world: TOOLS, name)) for name in HOMES}
    assert [len(points) for points in found.values()] == [1, 0]


HOMES = ("own", "demos")


def test_lines_without_a_home_are_told_and_those_with_two_refused(tmp_path):
    path = tmp_path / "c.jsonl"
    lines = [
        {"episode": "t#0", "turn": 0, "answer": "1"},
        {"stage": "demos", "episode": "u#0", "turn": 0, "answer": "1"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert homeless_corrections(path, {"t#0": ["own"], "u#0": ["own"]}) == [f"{path}:2: u#0"]
    assert homeless_corrections(path, {"t#0": ["own"], "u#0": HOMES}) == []
    with pytest.raises(InputError, match=r"c.jsonl:1: stages own, demos have an episode 't#0'; name one .* `stage`"):
        homeless_corrections(path, {"t#0": HOMES})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "c.jsonl:1: invalid JSON"),
        ({"episode": "t#0", "answer": "x"}, "c.jsonl:1: turn: field required"),
        ({"episode": "t#0", "turn": 0}, "has either `calls` or an `answer`"),
        ({"episode": "t#0", "turn": 0, "anser": "x", "answer": "x"}, "anser: extra inputs are not permitted"),
        ({"episode": "t#0", "turn": 2, "answer": "x"}, "episode 't#0' has turns 0 to 1, not 2"),
        (
            {"episode": "t#0", "turn": 0, "calls": [{"tool": "search", "arguments": {"limit": 2}}]},
            "'query' is a required property",
        ),
        ({"episode": "t#0", "turn": 0, "calls": [{"tool": "find", "arguments": {}}]}, "no tool named 'find'"),
        (
            {"episode": "t#0", "turn": 0, "calls": [{"tool": "search", "arguments": {"query": float("nan")}}]},
            "arguments of search are no JSON",
        ),
    ],
)
def test_a_wrong_line_is_named_with_its_fault(tmp_path, line, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path / "c.jsonl", line)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="corrections not found"):
        list(read_corrections(tmp_path / "none.jsonl", [], lambda world: TOOLS))
