"""Reads what the package `bfcl-eval` ships of BFCL v4 (Patil et al. 2025). Nothing of it is copied into Quintain.

The package is installed without its dependencies, which are every vendor's client library; none of them is imported.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError

PACKAGE = "bfcl_eval"
INSTALL = "pip install 'quintain[bfcl]' && pip install --no-deps bfcl-eval"


@dataclass(frozen=True, slots=True)
class Entry:
    """One task as BFCL states it.

    Attributes:
        category: such as `parallel_multiple`.
        record: the task's JSON object.
        answer: its `ground_truth`; None where calling nothing is right.
    """

    category: str
    record: dict[str, Any]
    answer: list[Any] | None


def folder() -> Path:
    """Where the package's files are.

    Raises:
        InputError: it is not installed.
    """
    found = find_spec(PACKAGE)
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        raise InputError(f"the worlds of BFCL need the package bfcl-eval: {INSTALL}")
    return Path(places[0])


def read(category: str) -> list[Entry]:
    """The tasks of a category, in their order.

    Raises:
        InputError: the package is missing, or is a version without this category.
    """
    answers = {one["id"]: one["ground_truth"] for one in _lines(f"possible_answer/BFCL_v4_{category}.json", True)}
    return [Entry(category, one, answers.get(one["id"])) for one in _lines(f"BFCL_v4_{category}.json")]


def documented(name: str) -> list[dict[str, Any]]:
    """The functions of an API, as `multi_turn_func_doc/NAME.json` describes them."""
    return list(_lines(f"multi_turn_func_doc/{name}.json"))


@cache
def digest_of(*names: str) -> str:
    """SHA-256 over data files, by their paths below the package's `data`."""
    found = hashlib.sha256()
    for name in names:
        found.update(_file(name).read_bytes())
    return f"sha256:{found.hexdigest()}"


def _lines(name: str, optional: bool = False) -> list[dict[str, Any]]:
    """The records of a file, which has one a line whatever its ending says."""
    path = folder() / "data" / name
    if optional and not path.is_file():
        return []
    return [json.loads(line) for line in _file(name).read_text(encoding="utf-8").splitlines()]


def _file(name: str) -> Path:
    path = folder() / "data" / name
    if not path.is_file():
        raise InputError(f"bfcl-eval {metadata.version('bfcl-eval')} has no {name}; Quintain reads BFCL v4")
    return path
