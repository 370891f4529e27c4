"""`quintain pool seal` and `quintain pool audit`, without the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from quintain.curation.contamination import Finding, Item
from quintain.curation.items import RECORDS, TEXT, read_items, unread
from quintain.curation.seal import seal
from quintain.interface.errors import InputError
from quintain.pipeline.auditing import Auditor
from quintain.pipeline.workshop import Workshop
from quintain.recipe import load_recipe

WIDTH = 240
"""Characters of a text that are printed; the JSON result has all of it."""


def seal_pool(recipe_path: Path, pool: str, out: Path, key: Path) -> str:
    """Seals a pool of a recipe; returns what was done in one line.

    Raises:
        InputError: there is no such pool, it is sealed already, it can't be measured, or a file is in the way.
    """
    workshop = _workshop(recipe_path)
    if pool not in workshop.recipe.pools:
        raise InputError(f"{recipe_path}: no pool {pool!r}; pools: {', '.join(workshop.recipe.pools)}")
    manifest = seal(workshop.pool(pool), workshop.pools.manifest(pool), out, key)
    return f"{out}: {manifest.tasks} tasks sealed; key {key}, canary {manifest.canary}"


def audit_files(recipe_path: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Searches files for the tasks of a recipe's evaluation pools; all of its pools if no stage evaluates.

    Raises:
        InputError: a file is missing, is no JSON or no text, or there is no text at all.
    """
    workshop = _workshop(recipe_path)
    auditor = Auditor(workshop)
    if workshop.recipe.cluster is not None:
        files = [path.resolve() for path in files]
    found = auditor.scan(auditor.scanner_of_opened_pools(), partial(_texts, files), keep=None)
    if not found.items:  # nothing found in nothing would read as clean
        names = ", ".join(map(str, files))
        raise InputError(
            f"{names}: no text to search; of a folder files are read that end in {', '.join(TEXT + RECORDS)}"
        )
    passed_over = sum((unread(path) for path in files if path.is_dir()), Counter[str]())
    note = "not read: " + ", ".join(f"{count} {ending}" for ending, count in passed_over.most_common())
    return {
        "items": found.items,
        "not_read": dict(passed_over),
        "megabytes": found.megabytes,
        "seconds": found.seconds,
        "tasks": found.tasks,
        "findings": [asdict(one) for one in found.findings],
        "lines": [
            *(line for one in found.findings for line in _side_by_side(one)),
            found.line,
            *([note] if passed_over else []),
        ],
    }


def _texts(files: Sequence[Path]) -> Iterator[Item]:
    return chain.from_iterable(map(read_items, files))


def _side_by_side(one: Finding) -> list[str]:
    return [
        f"{one.where}: {one.reason}, task {one.task} of pool {one.pool}, {one.share:.0%} of its {one.field}",
        f"    here: {_short(one.found)}",
        f"    task: {_short(one.original)}",
    ]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _workshop(recipe_path: Path) -> Workshop:
    home = recipe_path.parent.resolve()
    return Workshop(load_recipe(recipe_path), home, home)
