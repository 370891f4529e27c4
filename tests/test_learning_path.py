"""The learning path runs as it stands, in its order, in one folder: its Python, its files and its commands.

The test shortens what a reader runs by `--minutes 1` and nothing else; by default it also puts a tiny random model in
place of the real one. What the pages show in Chinese is the same, block by block.
"""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from quintain.cli.main import main
from quintain.viewing.app import Viewer
from quintain.viewing.index import Index

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STEPS = ("1-run-an-agent", "2-data-format", "3-fine-tune", "4-grpo")
SCALED = ("learn.toml", "arithmetic.toml")
"""Recipes that train: they say how long they take, so `--minutes` can shorten them."""


def blocks(page: str, languages: str = "python|toml|bash") -> list[tuple[str, str]]:
    """Language and text of every block that a reader runs or saves, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```({languages})\n(.*?)^```", text, re.M | re.S)


def saved_as(text: str) -> str | None:
    """The file's name, where a block's first line is nothing but that."""
    match = re.fullmatch(r"# (\w+\.(?:py|toml))", text.partition("\n")[0])
    return match[1] if match else None


def follow(page: str, base: str) -> None:
    """Does what a page says: saves its files, runs its Python as one session, gives its commands."""
    names: dict = {"__name__": "learn"}
    for number, (language, text) in enumerate(blocks(page), start=1):
        name = saved_as(text)
        if name is not None:
            Path(name).write_text(text.replace('base = "smollm2-135m"', f'base = "{base}"'), encoding="utf-8")
        elif language == "python":
            exec(compile(text, f"{page}, block {number}", "exec"), names)
        elif language == "bash":  # TOML without a name is an excerpt
            for line in text.splitlines():
                give(line)


def give(line: str) -> None:
    """A command, as it stands but for the shortening."""
    program, *arguments = shlex.split(line)
    assert program == "quintain"
    if arguments[0] == "run" and arguments[1] in SCALED:
        arguments += ["--minutes", "1"]
    assert main(arguments) == 0, line


def look(run: Path, port: int) -> None:
    """In place of `quintain view`, which serves until a person ends it: what its page would list."""
    assert port == 8765
    index = Index(run, {})
    assert "<html" in Viewer(index).page()
    index.close()


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A reader in an empty folder who asks nothing in a chat."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("quintain.viewing.view.view", look)
    return tmp_path


PARTS = (STEPS[:2], STEPS[2:3], STEPS[3:])
"""What needs nothing of the pages before: step 2 reads what step 1 wrote."""


def walk(steps: tuple[str, ...], base: str) -> None:
    for step in steps:
        follow(f"learn/{step}.md", base)
    if "4-grpo" in steps:
        assert list(Path("runs/learn-rl/rl/sheets").glob("*.md")), "a person has something to read"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("steps", PARTS, ids=" ".join)
def test_the_path_runs_as_it_stands(steps, reader, monkeypatch, model_folder):
    monkeypatch.setenv("LEARN_MODEL", str(model_folder))
    walk(steps, str(model_folder))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("steps", PARTS, ids=" ".join)
def test_the_path_runs_on_the_real_model(steps, reader):
    walk(steps, "smollm2-135m")


@pytest.mark.parametrize("step", STEPS)
def test_the_chinese_page_shows_the_same_files_and_commands(step):
    assert blocks(f"learn/{step}.zh.md") == blocks(f"learn/{step}.md")


@pytest.mark.parametrize("name", ["arithmetic_world.py", "arithmetic.toml"])
def test_the_example_is_what_step_4_shows(name):
    (shown,) = (text for _, text in blocks("learn/4-grpo.md") if saved_as(text) == name)
    source = (ROOT / "examples" / "arithmetic" / name).read_text(encoding="utf-8")
    assert shown.removeprefix(f"# {name}\n") == source.removeprefix(f"# {name}\n")


@pytest.mark.parametrize("name", SCALED)
def test_every_recipe_of_the_path_promises_at_most_20_minutes(name):
    (text,) = (text for step in STEPS for _, text in blocks(f"learn/{step}.md", "toml") if saved_as(text) == name)
    assert 'measure = "minutes"' in text
    assert "at_most = 20" in text


def test_minutes_need_a_recipe_that_says_how_long_it_takes(reader, capsys):
    recipe = next(text for _, text in blocks("learn/2-data-format.md", "toml"))
    Path("data.toml").write_text(recipe, encoding="utf-8")
    assert main(["run", "data.toml", "--minutes", "1"]) == 2
    assert '[[targets]] measure = "minutes", at_most = 20' in capsys.readouterr().err


@pytest.mark.parametrize("page", ["harness", "budgets-and-outcomes", "prefix-trees", "pass-at-k"])
def test_the_code_of_a_concept_page_runs(page, reader):
    follow(f"concepts/{page}.md", "")
