"""The documentation site builds without a warning, its links resolve, and it holds every public name."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import quintain

pytest.importorskip("sphinx", reason="Sphinx is not installed (pip install 'quintain[docs]')")

ROOT = Path(__file__).parents[1]
SETTINGS = ROOT / "docs" / "_site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by the command of `make docs`."""
    folder = tmp_path_factory.mktemp("site")
    settings = "sphinx -q -W --keep-going -c docs/_site ."
    assert settings in (ROOT / "Makefile").read_text(encoding="utf-8")
    command = [sys.executable, "-m", *settings.split(), str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    return folder


pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_every_link_and_asset_is_part_of_the_site(site):
    assert runpy.run_path(str(SETTINGS / "links.py"))["broken"](site) == []


def test_a_link_to_nothing_and_an_asset_from_elsewhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html">x</a><a href="#c">y</a><script src="https://example.com/x.js">')
    broken = runpy.run_path(str(SETTINGS / "links.py"))["broken"](tmp_path)
    assert broken == ["a.html: b.html", "a.html: #c", "a.html: https://example.com/x.js"]


def test_the_reference_holds_every_public_name_with_its_docstring(site):
    page = (site / "docs" / "api" / "quintain.html").read_text(encoding="utf-8")
    assert [name for name in quintain.__all__ if f'id="quintain.{name}"' not in page] == []
    assert "One thing to do in a world" in page


@pytest.mark.parametrize(
    ("index", "first"), [("README", "learn/1-run-an-agent.html"), ("README.zh", "learn/1-run-an-agent.zh.html")]
)
def test_both_languages_have_their_navigation(site, index, first):
    page = (site / "docs" / f"{index}.html").read_text(encoding="utf-8")
    sidebar = page.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    assert f'href="{first}"' in sidebar
