"""The rows of a database on one side of the split, and how prompts name them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from typing import Any

from quintain.worlds.rows import quoted
from quintain.worlds.tables.schema import Column, Table

EVAL_SHARE = 0.4
_LONGEST = 60
"""Characters of a value that a prompt or an answer holds."""


class Rows:
    """The rows of one side of the split, and how prompts name them.

    Args:
        connection: the database.
        tables: its tables.
        split: `train` or `eval`; a row is on one side by its table and key, and a task's rows are all on its side.
    """

    def __init__(self, connection: sqlite3.Connection, tables: dict[str, Table], split: str) -> None:
        self.tables = tables
        self.all = {
            name: {row[table.key.name]: dict(row) for row in connection.execute(f"SELECT * FROM {quoted(name)}")}
            for name, table in tables.items()
        }
        self.mine = {
            name: [key for key in rows if (_share(f"{name} {key}") < EVAL_SHARE) == (split == "eval")]
            for name, rows in self.all.items()
        }

    @cached_property
    def labels(self) -> dict[str, Column]:
        """The column that prompts name a table's rows by: a text that is different in every row, else the key."""
        return {
            name: next(filter(self._names_rows(name), table.columns), table.key) for name, table in self.tables.items()
        }

    @cached_property
    def children(self) -> dict[tuple[str, str, Any], list[Any]]:
        """Keys of the rows that refer to a row, by their table, column and the key referred to."""
        found: dict[tuple[str, str, Any], list[Any]] = defaultdict(list)
        for name, table in self.tables.items():
            for column in (one for one in table.columns if one.refers):
                for key, row in self.all[name].items():
                    if row[column.name] is not None:
                        found[name, column.name, row[column.name]].append(key)
        return found

    def others(self, table: str, column: Column, key: Any) -> list[Any]:
        """Other values a column has, in order; none where it names rows."""
        values = {row[column.name] for row in self.all[table].values()} - {self.all[table][key][column.name], None}
        fit = sorted(value for value in values if plain(value))
        return [] if column in (self.labels[table], self.tables[table].key) else fit

    def referred(self, table: str, key: Any) -> bool:
        """True if some row refers to this one."""
        return any(
            self.children.get((name, column.name, key))
            for name, one in self.tables.items()
            for column in one.columns
            if column.refers == table
        )

    def _names_rows(self, name: str) -> Callable[[Column], bool]:
        rows = self.all[name].values()

        def names(column: Column) -> bool:
            values = [row[column.name] for row in rows]
            texts = [value.casefold() for value in values if isinstance(value, str) and plain(value)]
            return column.kind == "TEXT" and not column.refers and len(set(texts)) == len(values)

        return names


def plain(value: Any) -> bool:
    """True for a value that a prompt can hold as it is."""
    return len(text := str(value)) <= _LONGEST and text.isprintable() and text == text.strip() != ""


def _share(text: str) -> float:
    return int.from_bytes(sha256(text.encode()).digest()[:6]) / 2**48
