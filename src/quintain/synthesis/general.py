"""General text for continual pre-training, against forgetting: the user's own, or what Python brings along."""

from __future__ import annotations

import ast
import sysconfig
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from quintain.interface.sample import Sample
from quintain.interface.words import language_of
from quintain.synthesis.documents import read_documents

GENERAL = "general"
"""Source of the samples made here."""

PYTHON_DOCS = "python-docs"
"""Names the one text every installation has: Python's own reference and the docstrings of its library, in English."""


def read_text(reference: str, home: Path, skipped: Counter[str]) -> Iterator[Sample]:
    """General text as samples, one at a time: whatever `read_documents` reads, with or without titles.

    Args:
        reference: a file or a folder, or `python-docs`.
        home: what a relative path is relative to.
        skipped: counts what is left out, by reason.

    Raises:
        InputError: there is no such file or folder.
    """
    if reference == PYTHON_DOCS:
        yield from _python_docs()
        return
    for number, document in enumerate(read_documents([home / reference], skipped, titled=False)):
        yield _sample(f"{reference}:{number}", document.source, document.text)


@cache
def _python_docs() -> tuple[Sample, ...]:
    """The topics of Python's language reference, then the docstrings of each module of its library.

    They are kept: every scan of what a model learnt from reads them again, and parsing them takes seconds.
    """
    return tuple(_read_python_docs())


def _read_python_docs() -> Iterator[Sample]:
    topics: dict[str, str] = import_module("pydoc_data.topics").topics
    for name, text in sorted(topics.items()):
        yield _sample(f"python:{name}", f"python:{name}", text.strip())
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(file.read_bytes())
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented))
        text = "\n\n".join(one for one in found if one)
        if text:
            yield _sample(f"python:{file.stem}.py", f"python:{file.stem}.py", text)


def _sample(identity: str, cluster: str, text: str) -> Sample:
    return Sample(id=identity, source=GENERAL, language=language_of(text), cluster=cluster, text=text)
