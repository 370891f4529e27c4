"""The has stage: from a rollout to decisions, with failures made by rewinding, and on to pre-training."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from loopback import serve
from quintain.commands.commands import run
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError
from quintain.interface.sample import read_samples
from quintain.synthesis.has import shown_observations
from recipe_edits import set_stages

STAGES = """
[[stages]]
kind = "rollout"
name = "demos"
pool = "train"

[[stages]]
kind = "has"
name = "decisions"
data = ["demos"]
alternatives = 2

[[stages]]
kind = "cpt"
name = "cpt"
data = ["decisions"]
tokens = { has = 2000 }
train = { context = 1024, microbatch_tokens = 1024, batch_tokens = 1024, learning_rate = 1e-3 }
"""


@pytest.fixture
def told(recipe_file):
    set_stages(recipe_file, STAGES)
    return recipe_file


def test_successes_are_rewound_into_real_failures_and_both_are_learnt_from(told, tmp_path):
    result = run(told, tmp_path / "run")
    decisions = result["stages"]["decisions"]
    assert decisions["ends"] == {"en right": 12, "en wrong": 12}
    samples = list(read_samples(tmp_path / "run" / "decisions" / "samples.jsonl"))
    played = [*read_journal(tmp_path / "run" / "demos" / "journal")[0]]
    played += read_journal(tmp_path / "run" / "decisions" / "journal")[0]
    by_id = {f"has:{one.id}": one for one in played}
    assert all(shown_observations(sample, by_id[sample.id]) for sample in samples)
    ends = Counter(sample.text.splitlines()[-1] for sample in samples)
    assert ends == {"My decision is Correct": 12, "My decision is Incorrect": 12}
    assert all(by_id[sample.id].success == sample.text.endswith("is Correct") for sample in samples)
    whole = {one.id: one.turns for one in played}
    wrong = [one for one in played if one.parent]
    assert all(one.turns[: one.parent[1]] == whole[one.parent[0]][: one.parent[1]] for one in wrong)
    assert decisions["steps"] == sum(len(by_id[sample.id].turns) for sample in samples)
    assert 0 <= decisions["leaks"]["low"] <= decisions["leaks"]["accuracy"]
    assert result["stages"]["cpt"]["tokens"]["has"] >= 2000
    assert result["stages"]["cpt"]["truncated_tokens"] == {"has": 0}


def test_executed_options_show_what_they_return(told, tmp_path):
    text = told.read_text().replace("alternatives = 2", "alternatives = 2\nexecuted = true\nmask_results = true")
    told.write_text(text[: text.index('[[stages]]\nkind = "cpt"')])
    run(told, tmp_path / "run")
    samples = list(read_samples(tmp_path / "run" / "decisions" / "samples.jsonl"))
    tried = [line for sample in samples for line in sample.text.splitlines() if " returns: " in line]
    assert tried
    for sample in samples:  # an option adds two numbers: what it returns is their sum
        lines = sample.text.splitlines()
        for place, line in enumerate(lines):
            if " returns: " not in line:
                continue
            option, returned = line.split(" returns: ")
            (call,) = [one for one in lines[place - 4 : place] if one.startswith(f"{option}: add ")]
            numbers = json.loads(call.partition("add ")[2])
            assert int(returned) == numbers["a"] + numbers["b"]
    masked = [sample.text[start:end] for sample in samples for start, end in sample.unlearnt]
    assert len(masked) >= len(tried)


def test_a_teacher_writes_the_alternatives_and_its_cost_and_what_was_left_out_are_in_the_manifest(told, tmp_path):
    good = {"thought": "Or so.", "calls": [{"tool": "add", "arguments": {"a": 4, "b": 4}}], "answer": ""}
    unfit = {"thought": "Or so.", "calls": [{"tool": "divide", "arguments": {}}], "answer": ""}

    def respond(request):
        return {"content": json.dumps({"steps": [good, unfit]})}

    with serve(respond) as server:
        teacher = f'teacher = {{ endpoint = {{ model = "m", url = "{server.url}", price_in = 1, price_out = 1 }} }}'
        text = told.read_text().replace("alternatives = 2", f"alternatives = 2\n{teacher}")
        told.write_text(text[: text.index('[[stages]]\nkind = "cpt"')])
        decisions = run(told, tmp_path / "run")["stages"]["decisions"]
    samples = list(read_samples(tmp_path / "run" / "decisions" / "samples.jsonl"))
    assert all('Or so.\nadd {"a": 4, "b": 4}' in one.text for one in samples)
    assert "divide" not in "".join(one.text for one in samples)
    assert decisions["skipped"]["alternatives left out: a call does not fit the toolset"] == decisions["steps"]
    assert decisions["spent"]["requests"] == decisions["steps"]
    assert decisions["spent"]["price"] > 0


def test_rollouts_of_the_same_tasks_are_told_apart(told, tmp_path):
    text = told.read_text().replace('data = ["demos"]', 'data = ["demos", "again"]\nexecuted = true')
    again = '[[stages]]\nkind = "rollout"\nname = "again"\npool = "train"\n\n[[stages]]\nkind = "has"'
    text = text.replace('[[stages]]\nkind = "has"', again)
    told.write_text(text[: text.index('[[stages]]\nkind = "cpt"')])
    decisions = run(told, tmp_path / "run")["stages"]["decisions"]
    samples = list(read_samples(tmp_path / "run" / "decisions" / "samples.jsonl"))
    assert decisions["ends"]["en right"] == decisions["ends"]["en wrong"]
    assert len({one.id for one in samples}) == len(samples) == decisions["samples"]
    assert {one.id.split("/")[0] for one in samples} == {"has:demos", "has:again"}


def test_an_interrupted_stage_plays_no_wrong_turn_twice(told, tmp_path, monkeypatch):
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quintain.pipeline.has.write_samples", full_disk)
    with pytest.raises(OSError, match="No space left"):
        run(told, tmp_path / "run")
    journal = tmp_path / "run" / "decisions" / "journal" / "journal.jsonl"
    before = journal.read_bytes()
    monkeypatch.undo()
    run(told, tmp_path / "run")
    assert journal.read_bytes() == before


def test_successes_alone_are_one_line_with_a_remedy(told, tmp_path):
    told.write_text(told.read_text().replace("alternatives = 2", "detours = false"))
    with pytest.raises(InputError, match=r"stage 'decisions': 12 successes and 0 failures: decisions need both"):
        run(told, tmp_path / "run")


def test_an_unknown_rollout_is_named(told, tmp_path):
    told.write_text(told.read_text().replace('data = ["demos"]', 'data = ["demo"]'))
    with pytest.raises(InputError, match="stage 'decisions': data = 'demo' is not known there; allowed: demos"):
        run(told, tmp_path / "run")
