"""What a database of a world looks like: tables with one key column, columns of three kinds, references."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal

from quintain.worlds.rows import quoted

Kind = Literal["INTEGER", "REAL", "TEXT"]
KINDS: tuple[Kind, ...] = ("INTEGER", "REAL", "TEXT")


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `refers` names the table whose key its values are, "" if it is no reference."""

    name: str
    kind: Kind
    required: bool = False
    refers: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its key and the other columns. An integer key is chosen by SQLite."""

    name: str
    key: Column
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """The column of that name, the key included.

        Raises:
            ValueError: there is none.
        """
        found = next((one for one in (self.key, *self.columns) if one.name == name), None)
        if found is None:
            raise ValueError(f"table {self.name!r} has no column {name!r}")
        return found


def read_schema(connection: sqlite3.Connection) -> dict[str, Table]:
    """The tables of a database that `create` laid out, in the order of their creation."""
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    return {name: _table(connection, name) for (name,) in connection.execute(query).fetchall()}


def create(connection: sqlite3.Connection, table: Table) -> None:
    """Makes an empty table."""
    columns = [f"{quoted(table.key.name)} {table.key.kind} PRIMARY KEY", *map(_declared, table.columns)]
    connection.execute(f"CREATE TABLE {quoted(table.name)}({', '.join(columns)})")


def _declared(column: Column) -> str:
    required = " NOT NULL" if column.required else ""
    return f"{quoted(column.name)} {column.kind}{required}" + (
        f" REFERENCES {quoted(column.refers)}" if column.refers else ""
    )


def _table(connection: sqlite3.Connection, name: str) -> Table:
    refers = {row[3]: row[2] for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})")}
    rows = list(connection.execute(f"PRAGMA table_info({quoted(name)})"))
    columns = {
        row[1]: Column(row[1], next(kind for kind in KINDS if kind == row[2]), bool(row[3]), refers.get(row[1], ""))
        for row in rows
    }
    (key,) = (row[1] for row in rows if row[5])
    return Table(name, columns[key], tuple(one for column, one in columns.items() if column != key))
