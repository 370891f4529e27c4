"""The manners of the command line: what a person at a terminal and a program behind a pipe can count on."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from quintain.cli.main import main, make_parser
from quintain.progress import log_to, say

ROOT = Path(__file__).parents[1]
NO_RESULT = ("chat", "serve", "view", "mcp-serve", "completion")


def leaves(parser: argparse.ArgumentParser, name: str = "") -> dict[str, argparse.ArgumentParser]:
    """Every command that can be given, by its name."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        return {name: parser}
    return {k: v for key, one in below[0].choices.items() for k, v in leaves(one, f"{name} {key}".strip()).items()}


LEAVES = leaves(make_parser())


@pytest.mark.parametrize("name", [name for name in LEAVES if name not in NO_RESULT])
def test_every_command_with_a_result_prints_it_as_json_if_asked(name):
    assert "--json" in LEAVES[name].format_help()


@pytest.mark.parametrize("name", LEAVES)
def test_every_argument_is_explained(name):
    actions = [one for one in LEAVES[name]._actions if one.dest != "help"]
    assert [one.dest for one in actions if not one.help] == []


def shown(page: Path) -> list[list[str]]:
    """The arguments of every `quintain` command in a page's shell blocks."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```(?:bash|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"^[A-Z_]+=\S+ ", "", line) for line in "".join(blocks).splitlines()]
    commands = [one for line in lines for one in re.split(r" (?:&&|[>|]) ", line) if one.startswith("quintain ")]
    return [shlex.split(one, comments=True)[1:] for one in commands]


SHOWN = {shlex.join(one): one for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] for one in shown(page)}


@pytest.mark.parametrize("arguments", SHOWN.values(), ids=SHOWN)
def test_every_command_that_a_page_shows_is_taken(arguments):
    make_parser().parse_args(arguments)


def test_the_page_names_every_exit_code_of_the_program():
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == ["0", "1", "2", "130"]


def test_the_core_has_at_most_15_dependencies_each_with_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.split(r"[^\w-]", one)[0] for one in project["dependencies"]]
    assert len(names) <= 15
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    core = page.partition("## Core")[2].partition("\n## ")[0]
    assert re.findall(r"^\| ([a-z0-9-]+) \|", core, re.MULTILINE) == sorted(names)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_is_a_script_that_knows_commands_options_and_choices(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "quintain" in script
    assert "--accept-drift" in script
    assert "sharegpt" in script


def test_bash_completes_a_command(tmp_path, capsys):
    main(["completion", "bash"])
    script = tmp_path / "quintain"
    script.write_text(capsys.readouterr().out)
    code = f'source {script}; COMP_WORDS=(quintain doc); COMP_CWORD=1; _shtab_quintain; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["doctor"]


def test_an_interrupted_run_says_how_to_go_on_and_one_that_keeps_nothing_does_not(monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("quintain.commands.commands.run", interrupted)
    monkeypatch.setattr("quintain.commands.chat.chat", interrupted)
    assert main(["run", "my recipe.toml", "--out", "runs/x"]) == 130
    assert capsys.readouterr().err.endswith("To go on: quintain run 'my recipe.toml' --out runs/x\n")
    assert main(["chat", "runs/x"]) == 130
    assert capsys.readouterr().err == "quintain: interrupted\n"


def test_a_real_ctrl_c_ends_with_130():
    code = "import signal, sys, time; from quintain.cli import main; import quintain.commands.commands as c; "
    code += "signal.signal(signal.SIGINT, signal.default_int_handler); "  # a shell's background jobs ignore it
    code += "c.run = lambda *_: (print('up', flush=True), time.sleep(60)); sys.exit(main(['run', 'r.toml']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"up\n", "what a world prints goes to standard error"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_what_is_said_during_a_run_is_logged_with_the_time_and_what_ended_it(tmp_path):
    def work() -> None:
        with log_to(tmp_path / "log.txt"):
            say("sft: done\nbefore")
            raise OSError("disk full")

    with pytest.raises(OSError, match="full"):
        work()
    say("not any more")
    said, ended = (tmp_path / "log.txt").read_text().splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d sft: done before", said)
    assert ended.endswith(" ended by OSError: disk full")


def test_an_error_without_words_ends_the_log_with_its_name_alone(tmp_path):
    with pytest.raises(KeyboardInterrupt), log_to(tmp_path / "log.txt"):
        raise KeyboardInterrupt
    assert (tmp_path / "log.txt").read_text().endswith(" ended by KeyboardInterrupt\n")


def test_help_loads_no_library_that_trains():
    code = (
        "import sys; from quintain.cli.main import make_parser; make_parser().format_help(); "
        "print([m for m in ('torch', 'transformers', 'numpy', 'scipy', 'pydantic', 'jsonschema') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"
