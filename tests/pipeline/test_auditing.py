"""Evaluation stays out of training: sealed pools are opened by evaluation alone, and what training saw is said."""

from __future__ import annotations

import json
import shutil

import pytest

from quintain.cli.main import main
from quintain.commands.commands import run
from quintain.commands.pools import audit_files
from quintain.curation.seal import log_path, openings, read_key, read_log
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError
from recipe_edits import edit


@pytest.fixture
def sealed(recipe_file):
    """The recipe with its evaluation pool sealed, as a user would do it."""
    home = recipe_file.parent
    command = ["pool", "seal", str(recipe_file), "eval", "--out", str(home / "eval.sealed"), "--key"]
    assert main([*command, str(home / "eval.key")]) == 0
    edit(recipe_file, 'split = "eval"\ncount = 4', 'sealed = "eval.sealed"\nkey = "eval.key"')
    return home / "eval.sealed"


def opened(sealed):
    return openings(read_log(sealed, read_key(sealed.with_suffix(".key"))))


def evaluation(folder, stage):
    record = json.loads((folder / "report.json").read_text())
    return next(one for one in record["stages"] if one["name"] == stage)


def leak(recipe_file, *lines):
    """Gives the training pool tasks from a file."""
    task = '{{"id": "x{0}", "world": "counter", "prompt": "{1}", "setup": {{"a": {2}}}, "answer": "{3}"}}'
    rows = [task.format(n, prompt, a, a + 1) for n, (prompt, a) in enumerate(lines)]
    (recipe_file.parent / "train.jsonl").write_text("\n".join(rows) + "\n")
    edit(recipe_file, 'split = "train"\ncount = 12', 'file = "train.jsonl"')


def test_an_evaluation_opens_a_sealed_pool_and_the_log_says_for_which_checkpoint(recipe_file, folder, sealed):
    run(recipe_file, folder)
    (base, once), (tuned, also_once) = opened(sealed).items()
    assert base.endswith("tiny") or "/" in base
    assert tuned.startswith("small/sft@")
    assert (once, also_once) == (1, 1)
    assert evaluation(folder, "tuned")["evaluation"]["overall"]["counts"]["planned"] == 8
    assert evaluation(folder, "tuned")["audit"]["openings"][tuned] == 1
    assert "sealed pool opened 2 times" in " ".join(evaluation(folder, "tuned")["notes"])
    run(recipe_file, folder)
    assert sum(opened(sealed).values()) == 2


def test_a_run_keeps_no_task_of_a_sealed_pool_but_its_manifest(recipe_file, folder, sealed):
    run(recipe_file, folder)
    assert sorted(path.name for path in (folder / "pools").iterdir()) == [
        "eval.manifest.json",
        "train.jsonl",
        "train.manifest.json",
    ]
    manifest = json.loads((folder / "pools" / "eval.manifest.json").read_text())
    assert (manifest["tasks"], manifest["world"]) == (4, "counter")


@pytest.mark.parametrize("stage", ['kind = "rollout"\nname = "demos"\npool = "train"'])
def test_a_stage_that_does_not_evaluate_may_not_name_a_sealed_pool(recipe_file, folder, sealed, stage, capsys):
    edit(recipe_file, stage, stage.replace('"train"', '"eval"'))
    assert main(["run", str(recipe_file), "--out", str(folder)]) == 2
    assert "stage 'demos': pool 'eval' is sealed; only evaluation stages may open it" in capsys.readouterr().err
    assert opened(sealed) == {}


def test_training_refuses_a_copy_of_a_sealed_task_wherever_it_comes_from(recipe_file, folder, sealed):
    leak(recipe_file, ("1 + 1?", 1), ("1002 + 1?", 1002))
    with pytest.raises(InputError, match=r"stage 'demos': pool train: task x1 holds a task of the sealed pool 'eval'"):
        run(recipe_file, folder)


def test_what_nobody_named_as_sealed_is_refused_by_its_canary(recipe_file, folder, sealed, tmp_path, capsys):
    """Episodes of a sealed pool in another recipe, and in the command that curates without one."""
    text = recipe_file.read_text()
    recipe_file.write_text(text.partition('[[stages]]\nkind = "rollout"')[0])
    run(recipe_file, folder)
    assert main(["curate", str(folder / "base"), "--out", str(tmp_path / "lessons")]) == 2
    assert "evaluation data is never learnt from" in capsys.readouterr().err
    assert not (tmp_path / "lessons").exists()
    other = recipe_file.with_name("other.toml")
    head = text.partition("[pools.eval]")[0]
    imports = json.dumps([str(folder / "base")])
    other.write_text(f'{head}[[stages]]\nkind = "curate"\nname = "chosen"\nimports = {imports}\n')
    assert main(["run", str(other), "--out", str(tmp_path / "other")]) == 2
    assert "holds a task of a sealed pool (canary)" in capsys.readouterr().err


def test_training_refuses_episodes_of_a_sealed_pool_by_their_canary(recipe_file, folder, sealed):
    run(recipe_file, folder)
    episodes, _ = read_journal(folder / "base" / "journal")
    assert all(any(tag.startswith("canary:quintain-canary-") for tag in one.tags) for one in episodes)
    shutil.rmtree(folder / "sft")
    shutil.copy(folder / "base" / "journal" / "journal.jsonl", folder / "demos" / "journal" / "journal.jsonl")
    with pytest.raises(InputError, match=r"demos/journal/journal.jsonl:1 holds a task of the sealed pool 'eval'"):
        run(recipe_file, folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('key = "eval.key"\n', "", "`sealed` and `key` go together"),
        ('sealed = "eval.sealed"\n', 'sealed = "eval.sealed"\nsplit = "eval"\n', "needs exactly one of"),
        ('"eval.key"', '"no.key"', "pools.eval.key: no such file"),
        ('"eval.key"', '"other.key"', "is the wrong key for"),
    ],
)
def test_a_wrong_key_or_a_pool_with_two_sources_is_one_line(recipe_file, folder, sealed, old, new, message, capsys):
    (sealed.parent / "other.key").write_text("0" * 64)
    edit(recipe_file, old, new)
    assert main(["run", str(recipe_file), "--out", str(folder)]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_scores_are_reported_apart_for_tasks_that_training_has_seen(recipe_file, folder):
    leak(recipe_file, ("1 + 1?", 1), ("1002 + 1?", 1002))
    run(recipe_file, folder)
    base, tuned = evaluation(folder, "base"), evaluation(folder, "tuned")
    assert list(base["evaluation"]["by_contamination"]) == ["clean"]
    apart = tuned["evaluation"]["by_contamination"]
    assert {name: one["counts"]["scored"] for name, one in apart.items()} == {"clean": 6, "contaminated": 2}
    assert list(tuned["audit"]["training"]["tasks"]) == ["eval-1002"]
    finding = tuned["audit"]["training"]["findings"][0]
    assert (finding["found"], finding["original"], finding["reason"]) == ("1002 + 1?", "1002 + 1?", "same text")
    assert json.loads((folder / "sft" / "contamination.json").read_text())["tasks"] == {"eval-1002": 1}


def test_the_report_states_the_distance_between_training_and_evaluation(recipe_file, folder):
    run(recipe_file, folder)
    distance = evaluation(folder, "tuned")["audit"]["distance"]
    assert distance["templates"] == {"apart": 0.0, "new": 0.0}
    assert distance["entities"] == {"apart": 1.0, "new": 1.0}
    assert evaluation(folder, "base")["audit"]["distance"] == {}


def test_an_audit_shows_both_texts_and_exits_with_1(recipe_file, tmp_path, capsys):
    (tmp_path / "notes.jsonl").write_text('{"text": "all is well"}\n{"text": "1003 + 1?"}\n')
    command = ["pool", "audit", str(recipe_file), str(tmp_path / "notes.jsonl")]
    assert main(command) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("notes.jsonl:2: same text, task eval-1003 of pool eval, 100% of its prompt")
    assert [line.strip() for line in lines[1:3]] == ["here: 1003 + 1?", "task: 1003 + 1?"]
    assert main([*command, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["tasks"] == {"eval-1003": 1}
    (tmp_path / "notes.jsonl").write_text('{"text": "all is well"}\n')
    assert main(command) == 0


def written(path, prompts, **declared):
    """A file of tasks; each cluster is named as `declared` says, or not at all."""
    rows = [{"id": f"{path.stem}-{n}", "world": "counter", "prompt": one} for n, one in enumerate(prompts)]
    rows = [row | {key: value.format(n) for key, value in declared.items()} for n, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_tasks_of_a_training_file_show_its_templates_wording_if_they_say_what_they_are_about(recipe_file):
    asked = "Which value do the club's own sources give for the seats of the boat {}?"
    train = written(recipe_file.with_name("train.jsonl"), map(asked.format, ("Tern", "Plover", "Curlew", "Heron")))
    written(
        recipe_file.with_name("eval.jsonl"), map(asked.format, ("Osprey", "Gannet")), cluster="e{}", template="seats"
    )
    edit(recipe_file, 'split = "train"\ncount = 12', 'file = "train.jsonl"')
    edit(recipe_file, 'split = "eval"\ncount = 4', 'file = "eval.jsonl"')
    assert set(audit_files(recipe_file, [train])["tasks"]) == {"eval-0", "eval-1"}, "these may be copies"
    written(train, map(asked.format, ("Tern", "Plover", "Curlew", "Heron")), cluster="t{}", template="seats")
    assert audit_files(recipe_file, [train])["tasks"] == {}
    written(train, [asked.format("Osprey")] * 4, cluster="t{}", template="seats")
    assert audit_files(recipe_file, [train])["tasks"] == {"eval-0": 4}, "copies are found whatever they are called"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.parquet", b"PAR1\x00\x01", "corpus.parquet is no text in UTF-8: convert it to one of .txt"),
        ("corpus.txt", "1 + 1?".encode("utf-16"), "corpus.txt is no text in UTF-8"),
        ("corpus.jsonl", b"", "no text to search"),
    ],
)
def test_an_audit_calls_nothing_clean_that_it_could_not_read(recipe_file, tmp_path, name, content, message, capsys):
    (tmp_path / name).write_bytes(content)
    assert main(["pool", "audit", str(recipe_file), str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


def test_what_an_audit_passes_over_in_a_folder_is_counted(recipe_file, tmp_path, capsys):
    for name in ("a.txt", "b.parquet", "c/d.parquet", "e.gz"):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("all is well")
    assert main(["pool", "audit", str(recipe_file), str(tmp_path / "corpus")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "not read: 2 .parquet, 1 .gz"


def test_an_audit_opens_sealed_pools_and_says_so_in_their_log(recipe_file, tmp_path, sealed):
    (tmp_path / "notes.txt").write_text("1003 + 1?")
    assert main(["pool", "audit", str(recipe_file), str(tmp_path / "notes.txt")]) == 1
    assert [json.loads(line)["purpose"] for line in log_path(sealed).read_text().splitlines()] == ["seal", "audit"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["seal", "RECIPE", "nothing", "--out", "x", "--key", "y"], "no pool 'nothing'; pools: train, eval"),
        (["audit", "RECIPE", "no-such-file"], "no such file or folder: no-such-file"),
    ],
)
def test_a_wrong_command_is_one_line(recipe_file, arguments, message, capsys):
    assert main(["pool", *[str(recipe_file) if one == "RECIPE" else one for one in arguments]]) == 2
    assert message in capsys.readouterr().err
