"""SQLite databases as the state of a world: copied, rewound and compared row by row."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection
from typing import Any

Row = dict[str, Any]


def open_copy(image: bytes) -> sqlite3.Connection:
    """A database in memory from what `Connection.serialize` gave.

    Any thread may use the connection, because the harness runs tools on threads of their own, one after the other.
    """
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.deserialize(image)
    return connection


def differences(before: sqlite3.Connection, after: sqlite3.Connection, leave_out: Collection[str] = ()) -> list[str]:
    """What changed between two states of a database, one line for each row that came or went and each changed value.

    A line reads `orders 1042: status "placed" -> "cancelled"`, `refunds + {"item": 7}` or `orders - {"id": 1042, ...}`.
    The key of a new row is left out where SQLite chose it (an integer primary key).

    Args:
        before: the earlier state.
        after: the later state.
        leave_out: tables that don't count, such as a log.
    """
    lines: list[str] = []
    for table in _tables(before) | _tables(after):
        if table not in leave_out:
            lines += _changes(table, _rows(before, table), _rows(after, table), _numbered(after, table))
    return sorted(lines)


def set_against(found: Collection[str], expected: Collection[str]) -> tuple[list[str], list[str]]:
    """Lines that are expected and missing, and lines that nobody asked for."""
    have, want = Counter(found), Counter(expected)
    return sorted((want - have).elements()), sorted((have - want).elements())


def changed(table: str, key: Any, column: str, old: Any, new: Any) -> str:
    """The line of a changed value."""
    return f"{table} {key}: {column} {_text(old)} -> {_text(new)}"


def added(table: str, row: Row) -> str:
    """The line of a new row."""
    return f"{table} + {_text(row)}"


def removed(table: str, row: Row) -> str:
    """The line of a row that is gone."""
    return f"{table} - {_text(row)}"


def quoted(name: str) -> str:
    """A table's or column's name as SQL spells it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda data: f"{len(data)} bytes: {data[:16].hex()}")


def _changes(table: str, old: dict[Any, Row], new: dict[Any, Row], key: str) -> list[str]:
    lines = [removed(table, old[name]) for name in old.keys() - new.keys()]
    for name, row in new.items():
        if name not in old:
            lines.append(added(table, {column: value for column, value in row.items() if column != key}))
        else:
            was = old[name]
            lines += [
                changed(table, name, column, was.get(column), row[column])
                for column in row
                if _differ(was, row, column)
            ]
    return lines


def _differ(old: Row, new: Row, column: str) -> bool:
    """True also where only the type changed: 1 and 1.0 are equal in Python and not the same value."""
    return column not in old or old[column] != new[column] or type(old[column]) is not type(new[column])


def _tables(connection: sqlite3.Connection) -> set[str]:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return {row[0] for row in connection.execute(query)}


def _rows(connection: sqlite3.Connection, table: str) -> dict[Any, Row]:
    """Rows by the value of their one primary key column."""
    if table not in _tables(connection):
        return {}
    key = _key(connection, table)
    return {row[key]: dict(row) for row in connection.execute(f"SELECT * FROM {quoted(table)}")}


def _key(connection: sqlite3.Connection, table: str) -> str:
    keys = [row["name"] for row in connection.execute(f"PRAGMA table_info({quoted(table)})") if row["pk"]]
    assert len(keys) == 1, f"table {table!r} needs one primary key column, found {keys}"
    return str(keys[0])


def _numbered(connection: sqlite3.Connection, table: str) -> str:
    """The primary key's name if it is an integer that SQLite may choose, else ""."""
    if table not in _tables(connection):
        return ""
    rows = list(connection.execute(f"PRAGMA table_info({quoted(table)})"))
    return next((row["name"] for row in rows if row["pk"] and row["type"].upper() == "INTEGER"), "")
