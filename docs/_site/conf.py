"""The documentation site, built by `make docs`: the Markdown pages as they stand. Nothing is fetched.

The navigation is the index pages themselves: every section of a README.md is a group with its links in their order.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import quintain

ROOT = Path(__file__).parents[2]

project = html_title = "Quintain"
copyright = "The Quintain authors, Apache-2.0"
release = quintain.__version__
root_doc = "docs/README"
include_patterns = ["*.md", "docs/**.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_theme = "furo"
html_additional_pages = {"index": "index.html"}
templates_path = ["templates"]
html_copy_source = False

myst_heading_anchors = 3
default_role = "code"  # docstrings write `names` as Markdown does
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"

attributes: dict[str, list[str]] = {}
INDEXES = ("docs/README", "docs/README.zh", "docs/api/README")
_ENTRY = re.compile(r"^(?:-|\d\.) \[[^\]]+\]\(([^)#]+\.md)\)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)\)")


def navigation(name: str, text: str) -> str:
    """Hidden tables of contents, one a section of an index page; Chinese pages below the Chinese index only."""
    groups = []
    for section in text.split("\n## ")[1:]:
        pages = [page for page in _ENTRY.findall(section) if page.endswith(".zh.md") == name.endswith(".zh")]
        groups.append((section.partition("\n")[0], pages))
    if name == root_doc:
        groups.append(("中文", ["README.zh.md"]))
    table = "```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"
    return "\n".join(table.format(title, "\n".join(pages)) for title, pages in groups if pages)


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Adds the navigation to an index; links to folders, which a site does not have, become their text."""
    home = (ROOT / name).parent
    text = _LINK.sub(lambda link: link[1] if (home / link[2]).is_dir() else link[0], source[0])
    source[0] = f"{text}\n{navigation(name, text)}" if name in INDEXES else text


def keep(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Notes the text of an attribute before napoleon, which takes the words before its first colon for a type."""
    if what in ("attribute", "data", "property"):
        attributes[name] = list(lines)


def restore(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Puts that text back."""
    lines[:] = attributes.pop(name, lines)


def language_of(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Says in each page which language it is in."""
    context["language"] = "zh-CN" if pagename.endswith(".zh") else "en"


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", read)
    app.connect("html-page-context", language_of)
    app.connect("autodoc-process-docstring", keep, priority=100)
    app.connect("autodoc-process-docstring", restore, priority=900)
    return {"parallel_read_safe": True}
