"""A user's own world, tasks and folders may be wrong in any way: one line with cause and remedy, exit code 2."""

from __future__ import annotations

import json
import shutil

import pytest
from safetensors import SafetensorError

from quintain.cli.main import main
from quintain.commands.chat import _questions
from quintain.commands.commands import evaluate, run
from quintain.interface.errors import InfraError, InputError
from quintain.pipeline.reporting import report
from quintain.pipeline.stages import read_metrics
from quintain.training.checkpoint import atomic_folder
from recipe_edits import edit

NO_TOOL = "    @tool\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "from quintain import",
            'raise RuntimeError("no\\nlicence")\nfrom quintain import',
            "fails: RuntimeError: no licence",
        ),
        ("from quintain import", "import sys; sys.exit(3)\nfrom quintain import", "import fails: SystemExit: 3"),
        ("class Counter", "def (:\nclass Counter", "import fails: SyntaxError: invalid syntax"),
        (
            NO_TOOL,
            "    def __init__(self):\n        raise OSError('no db')\n\n    @tool\n",
            "OSError: no db (broken.py:",
        ),
        (NO_TOOL, "    def toolset(self):\n        raise OSError('no tools')\n\n    @tool\n", "OSError: no tools"),
        (NO_TOOL, "    def reset(self, task):\n        raise OSError('no file')\n\n    @tool\n", "reset() of world"),
        ("start = 0", "1 / 0; start = 0", "generate() of world 'broken:Counter' fails: ZeroDivisionError"),
        ("start = 0", "return ['a']; start = 0", "pool 'train': must hold Tasks, found str"),
        ("start = 0", "return 7; start = 0", "TypeError: 'int' object is not iterable"),
        ('f"{split}-{n}", "counter"', 'split, "counter"', "two tasks have the id 'train'; ids must differ"),
        ("str(n + 1)", "str(n + 1) if n else None", "'train-0' has no answer, and other tasks of its template 'plus'"),
        ('{"a": n}, str', '{"a": {n}}, str', "task 'train-0' fails: CanonicalizationError: unsupported type"),
        ('f"{n} + 1?"', '"\\ud800"', "task 'train-0' fails: CanonicalizationError: input contains non-UTF-8"),
        ('f"{n} + 1?"', "n", "task 'train-0': 'prompt' must be a non-empty string, found 0"),
    ],
)
def test_a_broken_world_is_one_line_that_says_where(recipe_file, folder, monkeypatch, old, new, message):
    world = recipe_file.parent / "broken.py"
    world.write_text((recipe_file.parent / "counter.py").read_text())
    edit(world, old, new)
    edit(recipe_file, "counter:Counter", "broken:Counter")
    monkeypatch.delitem(__import__("sys").modules, "broken", raising=False)
    monkeypatch.syspath_prepend(str(recipe_file.parent))
    with pytest.raises(InputError) as caught:
        run(recipe_file, folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reference", [".counter:Counter", "counter:", "no.such:World"])
def test_a_world_that_is_not_there_is_one_line(recipe_file, folder, reference):
    edit(recipe_file, "counter:Counter", reference)
    with pytest.raises(InputError, match="world"):
        run(recipe_file, folder)


def test_options_a_world_does_not_take_are_named(recipe_file, folder):
    edit(recipe_file, '"counter:Counter"', '"counter:Counter"\noptions = { colour = "red" }')
    with pytest.raises(InputError, match="world 'counter' takes no options, found colour"):
        run(recipe_file, folder)


def test_a_file_is_no_folder_for_a_run(recipe_file, folder):
    folder.write_text("mine")
    with pytest.raises(InputError, match="is a file; a run needs a folder"):
        run(recipe_file, folder)
    assert folder.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("recipe.json", b"{", "recipe.json: damaged"),
        ("recipe.json", b"[]", "recipe.json: damaged (no 'recipe'); run the recipe again"),
        ("base/manifest.json", b"\xff", "manifest.json: damaged"),
        ("base/manifest.json", b"{}", "manifest.json: damaged (no 'name'); remove the folder to run the stage again"),
    ],
)
def test_a_damaged_record_of_a_run_is_named_with_the_remedy(recipe_file, folder, name, content, message):
    text = recipe_file.read_text()
    head, *stages = text.split("[[stages]]")
    recipe_file.write_text(f"{head}[[stages]]{stages[0]}")
    run(recipe_file, folder)
    (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        report(folder)
    assert message in str(caught.value)


def test_a_world_may_change_the_working_directory(recipe_file, tmp_path, monkeypatch):
    edit(recipe_file.parent / "counter.py", "return a + b", "import os; os.chdir('/'); return a + b")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "counter", raising=False)
    monkeypatch.syspath_prepend(str(recipe_file.parent))
    assert main(["run", str(recipe_file), "--out", "here"]) == 0
    assert json.loads((tmp_path / "here" / "report.json").read_text())["stages"]


def only_first_stage(recipe_file):
    head, first, *_ = recipe_file.read_text().split("[[stages]]")
    recipe_file.write_text(f"{head}[[stages]]{first}")


@pytest.mark.parametrize("line", ['{"a": 1}', "[1]", "7"])
def test_a_journal_line_that_is_no_record_is_named(recipe_file, folder, line):
    only_first_stage(recipe_file)
    run(recipe_file, folder)
    (folder / "base" / "journal" / "journal.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=r"journal.jsonl:1: damaged record: it needs episode, index, kind, v"):
        report(folder)


def test_a_row_of_metrics_cut_off_by_a_full_disk_is_passed_over(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"loss": 1.5}\n{"loss": 1.')
    assert read_metrics(tmp_path) == [{"loss": 1.5}]


def test_damaged_weights_are_one_line(recipe_file, folder, model_folder, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(model_folder, broken)
    (broken / "model.safetensors").write_bytes(b"xx")
    with pytest.raises(InputError, match="can't be loaded: Error while deserializing header"):
        evaluate(recipe_file, str(broken), "eval", 1, folder)


def test_eval_leaves_out_targets_of_the_recipes_own_stages(recipe_file, folder):
    target = '[[targets]]\nmeasure = "pass1"\nstage = "tuned"\nat_least = 0.5\n[pools.train]'
    edit(recipe_file, "[pools.train]", target)
    assert list(evaluate(recipe_file, None, "eval", 1, folder)["stages"]) == ["eval"]


def test_a_path_that_cannot_be_made_is_one_line_with_exit_code_2(recipe_file, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["run", str(recipe_file), "--out", str(tmp_path / "file" / "run")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("file/run: Not a directory; mend that and run the same command again")


def test_a_full_disk_under_weights_is_one_line_and_leaves_no_half_folder(tmp_path):
    with pytest.raises(InfraError, match="can't be written: No space left"), atomic_folder(tmp_path / "model"):
        raise SafetensorError("No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("temperature", ["-1", "nan"])
def test_a_temperature_below_zero_is_refused(temperature, tmp_path, capsys):
    assert main(["chat", str(tmp_path), "--temperature", temperature]) == 2
    assert "must be at least 0" in capsys.readouterr().err


def test_a_chat_without_standard_input_ends_at_once(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert list(_questions()) == []


def test_what_a_world_prints_does_not_mix_with_the_result(recipe_file, tmp_path, capsys):
    only_first_stage(recipe_file)
    (recipe_file.parent / "loud.py").write_text(
        (recipe_file.parent / "counter.py").read_text().replace("return a + b", "print('hello'); return a + b")
    )
    edit(recipe_file, "counter:Counter", "loud:Counter")
    assert main(["run", str(recipe_file), "--out", str(tmp_path / "run"), "--json"]) == 0
    seen = capsys.readouterr()
    assert json.loads(seen.out)["stages"]
    assert "hello" in seen.err


def test_training_on_nothing_says_how_the_episodes_ended(recipe_file, folder):
    (recipe_file.parent / "lost.py").write_text(
        (recipe_file.parent / "counter.py").read_text().replace("yield Action(answer", "1 / 0; yield Action(answer")
    )
    edit(recipe_file, "counter:Counter", "lost:Counter")
    with pytest.raises(InputError, match=r"12 ended agent_error ZeroDivisionError: division by zero"):
        run(recipe_file, folder)


def test_a_report_without_a_readable_tokenizer_is_one_line(recipe_file, folder):
    run(recipe_file, folder)
    (folder / "sft" / "model" / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"reading the tokenizer in .*sft/model fails: KeyError"):
        report(folder)
