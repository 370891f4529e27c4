"""The command line: exit codes, one-line errors, help a newcomer understands, and a chat."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from quintain.cli.main import main, make_parser


def quintain(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quintain", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, input=stdin)


@pytest.mark.parametrize(
    "command", ["quickstart", "run", "doctor", "eval", "study", "report", "compare", "gate", "chat", "tools"]
)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "usage: quintain" in text
    said = text.split("\n\n")[1]
    assert said[0].isupper()
    assert said.endswith("."), "sentences come before the list of options"
    assert "%%" not in text


def test_help_loads_no_model_library():
    code = (
        "import sys; from quintain.cli.main import make_parser; "
        "make_parser().format_help(); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.toml"], "recipe not found: nowhere.toml"),
        (["report", "nowhere"], "nowhere is no run"),
        (["chat", "nowhere"], "nowhere is no run"),
        (["tools", "check", "nowhere.toml"], "recipe not found: nowhere.toml"),
        (["quickstart", "--minutes", "0.1"], "too short"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_json_output_is_json_and_nothing_else(recipe_file, tmp_path):
    done = quintain("run", recipe_file, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["stages"]["demos"]["episodes"] == 12


def test_chat_shows_the_agents_turns(recipe_file, tmp_path):
    assert quintain("run", recipe_file, "--out", tmp_path / "run").returncode == 0
    done = quintain("chat", tmp_path / "run", stdin="3 + 1?\n\n")
    assert done.returncode == 0
    assert "For example: 0 + 1?" in done.stdout
    assert any(word in done.stdout for word in ("answers", "calls", "malformed"))


def test_chat_with_an_unfinished_stage_names_what_is_finished(recipe_file, tmp_path):
    assert quintain("run", recipe_file, "--out", tmp_path / "run").returncode == 0
    done = quintain("chat", tmp_path / "run", "--stage", "grpo")
    assert done.returncode == 2
    assert "finished: sft" in done.stderr


def test_tools_check_exits_1_when_the_tools_changed(recipe_file):
    assert quintain("tools", "lock", recipe_file).returncode == 0
    assert quintain("tools", "check", recipe_file).returncode == 0
    world = recipe_file.parent / "counter.py"
    world.write_text(world.read_text().replace("-> int", "-> str").replace("return a + b", "return str(a + b)"))
    done = quintain("tools", "check", recipe_file)
    assert done.returncode == 1
    assert "add" in done.stdout
