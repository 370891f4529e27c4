"""The package as others get it: wheel and sdist, on every Python it names, each extra alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if "Python :: 3." in one]
HEAVY = {"vllm", "verifiers"}
"""Extras that take minutes to work out, and gigabytes; both are tried by hand as their pages say."""
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - {"dev"} - HEAVY)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
    return folder


def wheel_of(built: Path) -> Path:
    return next(built.glob("*.whl"))


def test_the_wheel_holds_every_file_of_the_package_and_the_recipes(built):
    package = ROOT / "src" / "quintain"
    files = {f"quintain/{path.relative_to(package)}" for path in package.rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name}
    wanted |= {f"quintain/_recipes/{path.name}" for path in (ROOT / "recipes").glob("*.toml")}
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        found = set(wheel.namelist())
    assert wanted - found == set()
    assert {name.split("/")[0].split("-")[0] for name in found} == {"quintain"}


def test_the_sdist_holds_what_the_tests_need(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    assert {"pyproject.toml", "LICENSE", "CHANGELOG.md", "tests/conftest.py", "docs/README.md"} <= names


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_installs_alone_and_runs(built, tmp_path, version):
    python = _venv(version, tmp_path / "venv")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel_of(built))], check=True)
    where = {"cwd": tmp_path, "capture_output": True, "text": True}
    assert subprocess.run([python, "-m", "quintain", "--version"], **where).stdout.startswith("quintain ")
    assert "quickstart" in subprocess.run([python, "-m", "quintain", "--help"], **where).stdout
    code = "from quintain import Budget, Episode, Harness, Journal, Task, Toolset, Verdict, World, tool"
    assert subprocess.run([python, "-c", code], **where).returncode == 0
    lacking = subprocess.run([python, "-m", "quintain", "quickstart"], **where)
    assert lacking.returncode == 2
    assert "pip install 'quintain[quickstart]'" in lacking.stderr


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with nothing in it; dry runs leave it so."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin" / "python"


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_can_be_had_alone(built, fresh, extra):
    assert _refused(fresh, f"quintain[{extra}] @ {wheel_of(built).as_uri()}") == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_all_extras_go_together_so_each_has_what_it_needs_for_every_python(built, tmp_path, version):
    python = _venv(version, tmp_path / "venv")
    assert _refused(python, f"quintain[{','.join(EXTRAS)}] @ {wheel_of(built).as_uri()}") == ""


def _refused(python: Path, wanted: str) -> str:
    """Why pip finds no set of versions; empty if it does."""
    command = [python, "-m", "pip", "install", "--quiet", "--dry-run", wanted]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def _venv(version: str, folder: Path) -> Path:
    """The Python of a fresh environment; skips where that version is not on this machine."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    for python in _interpreters(version):
        if subprocess.run([python, "-c", asked], capture_output=True, text=True).stdout.strip() == version:
            subprocess.run([python, "-m", "venv", str(folder)], check=True)
            return folder / "bin" / "python"
    pytest.skip(f"no Python {version} here")


def _interpreters(version: str) -> Iterator[Path]:
    """Where one may be: the tests' own, on the path (pyenv's stand-ins fail), or among pyenv's versions."""
    yield Path(sys.executable)
    on_path = (Path(folder) / f"python{version}" for folder in os.get_exec_path())
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from filter(Path.is_file, chain(on_path, sorted(pyenv.glob(f"versions/{version}.*/bin/python"))))
