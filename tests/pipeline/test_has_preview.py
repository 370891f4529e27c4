"""`quintain synth --preview` of a has stage: a few decisions and their price, before anything large starts."""

from __future__ import annotations

import json

import pytest

from loopback import serve
from quintain.cli.main import main
from quintain.commands.commands import run
from recipe_edits import set_stages

STAGES = """
[[stages]]
kind = "rollout"
name = "demos"
pool = "train"
samples = 2

[[stages]]
kind = "has"
name = "decisions"
data = ["demos"]
alternatives = 2
"""
EPISODES = 24
"""12 tasks, twice."""


@pytest.fixture
def told(recipe_file):
    set_stages(recipe_file, STAGES)
    return recipe_file


def preview(recipe, folder, count=3):
    return main(["synth", str(recipe), "--preview", str(count), "--out", str(folder)])


def test_before_the_run_reference_solutions_are_told_of_and_nothing_is_played_into_it(told, tmp_path, capsys):
    assert preview(told, tmp_path / "run") == 0
    shown = capsys.readouterr().out
    assert "--- right: 3 samples" in shown
    assert "--- wrong: 3 samples" in shown
    assert shown.count("My decision is Correct") == shown.count("My decision is Incorrect") == 3
    assert f"decisions: at most {2 * EPISODES} decisions: borrowed alternatives cost nothing" in shown
    assert list((tmp_path / "run").glob("*/journal")) == []


def test_a_run_s_own_episodes_are_told_of_and_left_as_they_are(told, tmp_path, capsys):
    run(told, tmp_path / "run")
    kept = {one: one.read_bytes() for one in (tmp_path / "run").glob("*/journal/journal.jsonl")}
    capsys.readouterr()
    assert preview(told, tmp_path / "run", 30) == 0
    shown = capsys.readouterr().out
    assert f"--- right: {EPISODES} samples" in shown
    assert {one: one.read_bytes() for one in kept} == kept


def test_the_price_is_that_of_the_previewed_steps_for_all_decisions_and_replies_are_kept(told, tmp_path, capsys):
    def respond(request):
        step = {"thought": "Or so.", "calls": [{"tool": "add", "arguments": {"a": 4, "b": 4}}], "answer": ""}
        return {"content": json.dumps({"steps": [step]})}

    with serve(respond) as server:
        teacher = f'teacher = {{ endpoint = {{ model = "m", url = "{server.url}", price_in = 1, price_out = 2 }} }}'
        told.write_text(told.read_text().replace("alternatives = 2", f"alternatives = 2\n{teacher}"))
        found = []
        for _ in range(2):
            arguments = ["synth", str(told), "--preview", "2", "--json", "--out", str(tmp_path / "run")]
            assert main(arguments) == 0
            found.append((json.loads(capsys.readouterr().out)["stages"]["decisions"], len(server.requests)))
    (first, asked), (again, after) = found
    assert after == asked
    price = first["whole_run"]
    steps = sum(text.count("I will choose option") for text in texts(first))
    assert asked == steps
    assert price["decisions"] == 2 * EPISODES
    assert price["requests"] == round(steps * 2 * EPISODES / len(texts(first)))
    assert price["price"] == pytest.approx((price["prompt_tokens"] + 2 * price["completion_tokens"]) / 1e6)
    assert again["whole_run"] == price


def texts(stage):
    return [one["text"] for found in stage["samples"].values() for one in found]


def test_where_nothing_can_be_told_yet_one_line_says_why(told, tmp_path, capsys):
    told.write_text(told.read_text().replace("alternatives = 2", "detours = false"))
    assert preview(told, tmp_path / "run") == 0
    assert capsys.readouterr().out == (
        "decisions: no preview: 3 successes and 0 failures (of reference solutions: demos not played yet); "
        "decisions need both in one language of one world\n"
    )


def test_a_recipe_without_synthesis_is_one_line(told, tmp_path, capsys):
    text = told.read_text()
    told.write_text(text[: text.index('[[stages]]\nkind = "has"')])
    assert preview(told, tmp_path / "run") == 2
    assert "has no synthesis stage to preview; kinds: fas, has" in capsys.readouterr().err
