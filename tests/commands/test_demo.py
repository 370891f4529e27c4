"""`quintain demo`: one episode of each world, shown."""

from __future__ import annotations

import json

from quintain.cli.main import main
from quintain.commands.commands import recipes_folder


def test_one_episode_of_the_desk_is_shown_turn_by_turn_and_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("world desk: ")
    kinds = [line.split()[0] for line in rest]
    assert kinds[:3] == ["thinks", "calls", "observes"]
    assert kinds[-2:] == ["answers", "verdict"]
    assert "verdict   right; " in rest[-1]
    assert list(tmp_path.iterdir()) == []


def test_every_world_of_a_recipe_is_played(capsys):
    assert main(["demo", str(recipes_folder() / "families.toml"), "--json"]) == 0
    episodes = json.loads(capsys.readouterr().out)["episodes"]
    assert [one["world"] for one in episodes] == ["desk", "maths", "web", "orders", "code"]
    assert all(one["success"] for one in episodes)


def test_a_world_without_a_reference_solution_says_so(capsys):
    till = recipes_folder().parent / "examples" / "till" / "measure.toml"
    assert main(["demo", str(till)]) == 0
    assert "ended     agent_error NotImplementedError: world 'till' has no solution()" in capsys.readouterr().out


def test_a_recipe_that_is_not_there_is_one_line(tmp_path, capsys):
    assert main(["demo", str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
