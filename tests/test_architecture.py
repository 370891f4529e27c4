"""Imports point one way, and every file can be read in one sitting."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "quintain"
LONGEST_FILE = 400

ALLOWED = {
    "interface": set(),
    "endpoint": {"interface"},
    "harness": {"interface"},
    "worlds": {"interface", "endpoint", "harness"},
    "inference": {"interface", "endpoint"},
    "agents": {"interface", "endpoint", "inference"},
    "curation": {"interface"},
    "training": {"interface"},
    "evaluation": {"interface"},
    "synthesis": {"interface", "endpoint", "inference", "agents", "harness", "curation"},
    "cluster": {
        "interface",
        "endpoint",
        "harness",
        "worlds",
        "inference",
        "agents",
        "curation",
        "training",
        "evaluation",
        "synthesis",
    },
}
"""What each folder may import besides itself; modules beside the folders see everything."""

for folder in ("recipe", "pipeline", "doctor", "export", "serving", "viewing", "commands", "studies", "cli"):
    ALLOWED[folder] = {"", *ALLOWED}
"""The program around the parts: each of its folders sees the parts and the ones before it."""

FILES = sorted(SOURCE.rglob("*.py"))


def home(file: Path) -> str:
    """The folder of a source file, "" for the modules beside the folders."""
    parts = file.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def below(name: str) -> str:
    """What `from quintain import NAME` imports: a folder or module, or else the package itself."""
    there = (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()
    return f"quintain.{name}" if there else "quintain"


def imported(tree: ast.AST) -> set[str]:
    """First names below `quintain` of all imports, also those inside functions; "" for `quintain` itself."""
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            package = node.module == "quintain"
            modules += [below(alias.name) for alias in node.names] if package else [str(node.module)]
    paths = [module.split(".") for module in modules]
    return {path[1] if len(path) > 1 else "" for path in paths if path[0] == "quintain"}


def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


LEAVES = {file.stem for file in FILES if home(file) == "" and file.stem != "__init__" and not imported(parse(file))}
"""Modules beside the folders that import nothing of quintain: anyone may use them."""


def test_every_folder_has_a_rule() -> None:
    assert {home(file) for file in FILES} - {""} <= set(ALLOWED)


def test_the_rules_themselves_have_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(ALLOWED):
        ready = {folder for folder, needs in ALLOWED.items() if folder not in done and needs - {""} <= done}
        assert ready, f"cycle among {set(ALLOWED) - done}"
        done |= ready


def test_a_folder_imports_only_what_lies_to_its_left() -> None:
    wrong = {
        str(file.relative_to(SOURCE)): found
        for file in FILES
        if home(file)
        and (found := sorted(imported(parse(file)) - ALLOWED.get(home(file), set()) - {home(file)} - LEAVES))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import quintain.worlds.desk", {"worlds"}),
        ("from quintain.agents.model import Model", {"agents"}),
        ("from quintain import harness, cli", {"harness", "cli"}),
        ("def f():\n    import quintain", {""}),
        ("import json, os.path\nfrom quintainish import x", set()),
    ],
)
def test_every_form_of_import_is_seen(code: str, found: set[str]) -> None:
    assert imported(ast.parse(code)) == found


TODAY = re.compile(r"\btime\.time\(|\b(datetime|date)\.(now|today|utcnow)\(")
DATED = {
    "agents/gateway/protocol.py",
    "commands/init/tools.py",
    "commands/inspecting.py",
    "curation/review.py",
    "curation/seal.py",
    "progress.py",
}
"""They write down or compare what day it is. What is measured or waited for goes by clocks that nobody sets."""


def test_no_time_is_measured_by_a_clock_that_may_jump() -> None:
    assert {str(file.relative_to(SOURCE)) for file in FILES if TODAY.search(file.read_text(encoding="utf-8"))} == DATED


def test_a_file_is_at_most_400_lines() -> None:
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}
