"""Rows for a schema that has none: invented, seeded, and with references that hold."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

from quintain.commands.new_world.sources import RawTable
from quintain.interface.errors import InputError

ROWS = 60
"""Rows of each table."""

_SYLLABLES = [
    "ba",
    "cor",
    "del",
    "fi",
    "gan",
    "hol",
    "ka",
    "lum",
    "mar",
    "nor",
    "pel",
    "ri",
    "sa",
    "tov",
    "ur",
    "ven",
    "wis",
    "zin",
]
_START = date(2024, 1, 1)


def fill(tables: list[RawTable], seed: int) -> None:
    """Gives every table `ROWS` rows, those that are referred to first.

    Raises:
        InputError: tables refer to each other in a circle, and none of these references may be empty.
    """
    rng = random.Random(f"rows {seed}")
    done: dict[str, RawTable] = {}
    while len(done) < len(tables):
        left = [table for table in tables if table.name not in done]
        table = next((one for one in left if not _waits(one, left, required=False)), None) or next(
            (one for one in left if not _waits(one, left, required=True)), None
        )
        if table is None:
            names = ", ".join(one.name for one in left)
            raise InputError(f"tables {names} refer to each other in a circle that must not be empty: give them rows")
        _fill_table(table, done, rng)
        done[table.name] = table


def _waits(table: RawTable, left: list[RawTable], required: bool) -> bool:
    """True if a table refers to one without rows yet; with `required`, only by references that can't be empty."""
    empty = {one.name for one in left} - {table.name}
    refers = (table.refers or {}).items()
    return any(name in empty and (column in table.required or not required) for column, name in refers)


def _fill_table(table: RawTable, done: dict[str, RawTable], rng: random.Random) -> None:
    words = {column: [_word(rng) for _ in range(5)] for column in table.columns}
    for number in range(1, ROWS + 1):
        table.rows.append([_value(table, column, number, words[column], done, rng) for column in table.columns])


def _value(
    table: RawTable, column: str, number: int, words: list[str], done: dict[str, RawTable], rng: random.Random
) -> Any:
    other = (table.refers or {}).get(column)
    if other is not None:
        return _reference(table, column, done.get(other), number, rng)
    kind, name = table.types.get(column, ""), column.lower()
    if column == table.key:
        return number if "INT" in kind else f"{table.name[:1].upper()}{100 + number}"
    if column in table.choices:
        return rng.choice(table.choices[column])
    if "DATE" in kind or "TIME" in kind or "date" in name:
        return (_START + timedelta(days=rng.randrange(700))).isoformat()
    if "INT" in kind or "BOOL" in kind:
        return rng.randrange(2) if "BOOL" in kind else rng.randrange(1, 500)
    if any(word in kind for word in ("REAL", "FLOA", "DOUB", "DEC", "NUM")):
        return rng.randrange(100, 50_000) / 100
    if "name" in name or "title" in name:
        return f"{_word(rng).capitalize()} {_word(rng).capitalize()}"
    return f"{_word(rng)}{number}@example.org" if "mail" in name else rng.choice(words)


def _reference(table: RawTable, column: str, other: RawTable | None, number: int, rng: random.Random) -> Any:
    """A key of the table referred to; of the own one an earlier row's, and None where there is no row yet."""
    if other is not None:
        return rng.choice(other.rows)[other.columns.index(other.key)] if other.key else None
    if (table.refers or {})[column] != table.name or not table.rows:
        return None
    return rng.choice(table.rows)[table.columns.index(table.key)] if table.key else None


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.choice((2, 3))))
