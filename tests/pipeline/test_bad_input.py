"""A user's own world, tasks and folders may be wrong in any way: one line with cause and remedy, exit code 2."""

from __future__ import annotations

import json

import pytest

from quintain.cli import main
from quintain.commands import run
from quintain.interface.errors import InputError
from quintain.reporting import report

NO_TOOL = "    @tool\n"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


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
