"""The recover stage: oracle's and model's episodes go on to a right end, and only those are learnt."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from quintain.commands.commands import run
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError
from quintain.interface.failures import recovered
from recipe_edits import edit, set_stages

STAGES = """
[faults.rough]
episodes = 1.0
rate = 1.0
kinds = { server_error = 1, tool_gone = 1 }

[[stages]]
kind = "rollout"
name = "struck"
pool = "train"
faults = "rough"

[[stages]]
kind = "rollout"
name = "own"
pool = "train"
agent = "base"
sampling = { max_tokens = 6 }

[[stages]]
kind = "recover"
name = "recovery"
data = ["struck", "own"]

[[stages]]
kind = "sft"
name = "sft"
data = ["recovery"]
train = { learning_rate = 1e-3, batch_trajectories = 8, epochs = 1 }
"""

MODEL_S_OWN = """
[[stages]]
kind = "rollout"
name = "demos"
pool = "train"

[[stages]]
kind = "sft"
name = "warm"
data = ["demos"]
train = { learning_rate = 1e-3, batch_trajectories = 8, epochs = 1 }

[[stages]]
kind = "rollout"
name = "own"
pool = "train"
agent = "warm"
sampling = { max_tokens = 6 }

[[stages]]
kind = "recover"
name = "recovery"
data = ["own"]
"""


@pytest.fixture
def recovering(recipe_file):
    edit(recipe_file, "count = 12", "count = 6")
    edit(recipe_file, "turns = 3", "turns = 6")
    set_stages(recipe_file, STAGES)
    return recipe_file


def episodes(folder, stage: str):
    return read_journal(folder / stage / "journal")[0]


def test_what_went_wrong_is_continued_and_trained_on(recovering, tmp_path):
    folder = tmp_path / "run"
    result = run(recovering, folder)["stages"]["recovery"]
    kept = episodes(folder, "recovery")
    tries = [
        replace(one, id=f"{name}/{one.id}")  # both stages play the same pool: their episodes have the same ids
        for name in ("struck", "own")
        for one in read_journal(folder / "recovery" / "tries" / name)[0]
    ]
    assert len(kept) == result["episodes"] == sum(one["kept"] for one in result["kinds"].values())
    assert len(tries) == result["tried"] == 12
    assert {one.id for one in kept} == {one.id for one in tries if recovered(one)}
    assert result["kinds"]["server_error"]["kept"] == result["kinds"]["server_error"]["tried"] > 0
    declined = [one for one in kept if one.outcome.kind == "declined"]
    assert len(declined) == result["kinds"]["tool_gone"]["kept"] == result["kinds"]["tool_gone"]["tried"] > 0
    own = [one for one in kept if one.segments]
    assert own  # continuations of what the model began have the tokens of both
    assert all(None not in one.spans for one in own)
    lines = [json.loads(line) for line in (folder / "recovery" / "malformed.jsonl").read_text().splitlines()]
    malformed = [turn for one in episodes(folder, "own") for turn in one.turns if turn.malformed]
    assert len(lines) == sum(one["found"] for one in result["malformed"].values()) == len(malformed) > 0
    manifest = json.loads((folder / "sft" / "manifest.json").read_text())
    assert manifest["result"]["episodes"] == len(kept)


def test_a_recover_stage_interrupted_goes_on_with_what_was_tried(recovering, tmp_path):
    folder = tmp_path / "run"
    run(recovering, folder)
    before = episodes(folder, "recovery")
    manifest = folder / "recovery" / "manifest.json"
    record = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(record | {"status": "running"}))
    tries = folder / "recovery" / "tries" / "struck" / "journal.jsonl"
    lines = tries.read_bytes().splitlines(keepends=True)
    tries.write_bytes(b"".join(lines[: len(lines) // 2]))
    again = run(recovering, folder)["stages"]["recovery"]
    assert again["kinds"] == record["result"]["kinds"]
    assert [(one.id, one.turns[-1].action.answer) for one in episodes(folder, "recovery")] == [
        (one.id, one.turns[-1].action.answer) for one in before
    ]


def test_what_people_rewrote_is_played_first_and_kept_if_it_ends_well(recovering, tmp_path):
    text = recovering.read_text()
    start = text.index('[[stages]]\nkind = "rollout"\nname = "own"')
    stage = '[[stages]]\nkind = "recover"\nname = "recovery"\ndata = ["struck"]\ncorrections = "c.jsonl"\n'
    recovering.write_text(text[:start] + stage)
    lines = [
        {"episode": "train-0#0", "turn": 1, "thought": "By hand.", "answer": "1"},
        {"episode": "train-1#0", "turn": 1, "thought": "By hand.", "answer": "7"},
        {"episode": "trian-1#0", "turn": 1, "answer": "7"},
    ]
    with pytest.raises(InputError, match=r"corrections: no such file: .*c\.jsonl"):
        run(recovering, tmp_path / "run")
    (recovering.parent / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run(recovering, tmp_path / "run")["stages"]["recovery"]
    assert result["kinds"]["person"] == {"tried": 2, "kept": 1}
    assert result["unused_corrections"] == 1
    (by_hand,) = [one for one in episodes(tmp_path / "run", "recovery") if one.id.endswith("p1")]
    assert [turn.action.thought for turn in by_hand.turns[1:]] == ["By hand."]
    lines[1]["answer"] = "2"
    (recovering.parent / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run(recovering, tmp_path / "run")["stages"]["recovery"]
    assert result["kinds"]["person"] == {"tried": 2, "kept": 2}


def test_the_oracle_with_faults_is_not_trained_on_as_it_is(recovering, tmp_path):
    recovering.write_text(recovering.read_text().replace('data = ["recovery"]', 'data = ["struck"]'))
    with pytest.raises(InputError, match="put a `recover` stage between"):
        run(recovering, tmp_path / "run")


def test_what_a_trained_model_began_is_continued_by_a_run_that_finds_all_before_done(recovering, tmp_path):
    set_stages(recovering, MODEL_S_OWN)
    folder = tmp_path / "run"
    first = run(recovering, folder)["stages"]["recovery"]
    shutil.rmtree(folder / "recovery")
    assert run(recovering, folder)["stages"]["recovery"] | {"seconds": 0} == first | {"seconds": 0}
    assert first["tried"] > 0
