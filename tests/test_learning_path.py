"""The learning path runs as it stands: its Python, its recipes and its commands, with a tiny random model."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from quintain.cli.main import main

DOCS = Path(__file__).parents[1] / "docs"

SMALLER = {
    "learn/3-fine-tune.md": {
        'base = "smollm2-135m"': 'base = "{model}"',
        "count = 400": "count = 8",
        "count = 64": "count = 4",
        "seconds = 150": "seconds = 2",
        "max_tokens = 64": "max_tokens = 8",
    },
    "learn/4-grpo.md": {
        "count = 400": "count = 8",
        "count = 64": "count = 4",
        "seconds = 600": "seconds = 600\nsteps = 1\nvalidate_every = 1",
        "groups = 6": "groups = 2",
        "group_size = 8": "group_size = 4",
        "max_tokens = 64": "max_tokens = 8",
    },
}
"""What a test changes in the recipe of a page, so that it takes seconds."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)


def run_python(page: str) -> None:
    """Runs a page's Python as one session, as a reader would."""
    names: dict = {"__name__": "learn"}
    for number, source in enumerate(blocks(page, "python"), start=1):
        exec(compile(source, f"{page}, block {number}", "exec"), names)


def save_recipe(page: str, model: Path) -> None:
    """Writes the page's recipe under the name in its first line, made smaller."""
    (text,) = blocks(page, "toml")
    name = text.splitlines()[0].removeprefix("# ")
    for old, new in SMALLER[page].items():
        assert old in text, f"{page}: {old} is no longer in {name}"
        text = text.replace(old, new.format(model=model))
    Path(name).write_text(text, encoding="utf-8")


def run_commands(page: str) -> None:
    for line in "".join(blocks(page, "bash")).splitlines():
        program, *arguments = shlex.split(line)
        assert program == "quintain"
        assert main(arguments) == 0, line


@pytest.fixture
def reader(tmp_path, monkeypatch, model_folder):
    """A reader in an empty folder who asks nothing in a chat, with a model that takes no time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEARN_MODEL", str(model_folder))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return model_folder


def test_steps_1_and_2_run_as_they_stand(reader):
    run_python("learn/1-run-an-agent.md")
    run_python("learn/2-data-format.md")


def test_steps_3_and_4_train_and_measure(reader):
    for page, run in (("learn/3-fine-tune.md", "learn-sft"), ("learn/4-grpo.md", "learn-rl")):
        save_recipe(page, reader)
        run_commands(page)
        run_python(page)
        assert Path("runs", run, "report.html").is_file()
    assert list(Path("runs/learn-rl/rl/sheets").glob("*.md"))


@pytest.mark.parametrize("page", ["harness", "budgets-and-outcomes", "prefix-trees", "pass-at-k"])
def test_the_code_of_a_concept_page_runs(page, reader):
    run_python(f"concepts/{page}.md")
