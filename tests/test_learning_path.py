"""The learning path runs as it stands: its Python, its recipes and its commands, with a tiny random model."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"

SMALLER = {
    'base = "smollm2-135m"': 'base = "{model}"',
    "count = 400": "count = 8",
    "count = 64": "count = 4",
    "seconds = 150": "seconds = 2",
    "max_tokens = 64": "max_tokens = 8",
}
"""What a test changes in a recipe of the path, so that it takes seconds."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)


def run_python(page: str) -> None:
    """Runs a page's Python as one session, as a reader would."""
    names: dict = {"__name__": "learn"}
    for number, source in enumerate(blocks(page, "python"), start=1):
        exec(compile(source, f"{page}, block {number}", "exec"), names)


def save_recipe(page: str, model: Path) -> None:
    """Writes the page's recipe under the name in its first line, made smaller."""
    for text in blocks(page, "toml"):
        name = text.splitlines()[0].removeprefix("# ")
        for old, new in SMALLER.items():
            assert old in text, f"{page}: {old} is no longer in {name}"
            text = text.replace(old, new.format(model=model))
        Path(name).write_text(text, encoding="utf-8")


def run_commands(page: str) -> None:
    for line in "".join(blocks(page, "bash")).splitlines():
        program, *arguments = shlex.split(line)
        assert program == "quintain"
        command = [sys.executable, "-m", "quintain.cli", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def reader(tmp_path, monkeypatch, model_folder):
    """A reader in an empty folder, with a model that takes no time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEARN_MODEL", str(model_folder))
    return model_folder


def test_steps_1_and_2_run_as_they_stand(reader):
    run_python("learn/1-run-an-agent.md")
    run_python("learn/2-data-format.md")


def test_step_3_trains_and_measures(reader):
    save_recipe("learn/3-fine-tune.md", reader)
    run_commands("learn/3-fine-tune.md")
    run_python("learn/3-fine-tune.md")
    assert Path("runs/learn-sft/report.html").is_file()


@pytest.mark.parametrize("page", ["harness", "budgets-and-outcomes", "prefix-trees", "pass-at-k"])
def test_the_code_of_a_concept_page_runs(page, reader):
    run_python(f"concepts/{page}.md")
