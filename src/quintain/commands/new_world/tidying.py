"""From tables as they were found to a database every world can work on: one key a table, three kinds of values."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from quintain.commands.new_world.filling import fill
from quintain.commands.new_world.sources import RawTable
from quintain.interface.errors import InputError
from quintain.worlds.rows import quoted
from quintain.worlds.tables.schema import Column, Kind, Table, create
from quintain.worlds.tables.world import LOG

MAX_TABLES = 8
"""Tables of a world: each has up to four tools."""

MAX_ROWS = 1000
"""Rows of a table: every turn saves the database."""

MAX_COLUMNS = 100
"""Columns of a table: each is a parameter of a tool."""

Made = tuple[sqlite3.Connection, dict[str, Table], list[str]]


def tidy(found: Sequence[RawTable], wanted: Sequence[str], seed: int) -> Made:
    """Lays the tables out in a database in memory.

    Args:
        found: tables as read.
        wanted: names of those to take; empty takes all.
        seed: of rows for a schema without any.

    Returns:
        the database, its tables, and a line for everything that was left out or made up.

    Raises:
        InputError: there are too many tables, an unknown one is wanted, a name is taken, or nothing is left.
    """
    notes: list[str] = []
    chosen = _chosen(found, wanted)
    if not any(table.rows for table in chosen):
        if not all(table.types for table in chosen):
            raise InputError(f"{chosen[0].name}: no rows; CSV files need some")
        fill(chosen, seed)
        notes.append("no table has rows: invented some")
    for table in chosen:
        _cut(table, notes)
    kept = [table for table in chosen if table.rows and table.columns]
    notes += [f"{table.name} is empty: left out" for table in chosen if table not in kept]
    for table in kept:
        _give_key(table)
    made = _tables(kept, notes)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for table in kept:
        create(connection, made[table.name])
        marks = ", ".join("?" * len(table.columns))
        names = ", ".join(map(quoted, table.columns))
        connection.executemany(f"INSERT INTO {quoted(table.name)}({names}) VALUES({marks})", table.rows)
    return connection, made, notes


def _chosen(found: Sequence[RawTable], wanted: Sequence[str]) -> list[RawTable]:
    names = [table.name for table in found]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise InputError(f"--tables: no table {unknown[0]!r}; there are {', '.join(names)}")
    chosen = [table for table in found if not wanted or table.name in wanted]
    if len(chosen) > MAX_TABLES:
        raise InputError(
            f"{len(chosen)} tables > {MAX_TABLES} of one world; choose some with --tables {','.join(names[:3])}"
        )
    taken = [one.name for one in chosen if one.name.casefold() == LOG or one.name.casefold().startswith("sqlite_")]
    if taken:
        raise InputError(f"table {taken[0]!r}: this name is kept for the database itself; rename the table")
    return chosen


def _cut(table: RawTable, notes: list[str]) -> None:
    """Leaves out rows beyond `MAX_ROWS`, columns beyond `MAX_COLUMNS`, and columns with binary data."""
    if len(table.rows) > MAX_ROWS:
        notes.append(f"{table.name}: the first {MAX_ROWS} of {len(table.rows)} rows are taken")
        del table.rows[MAX_ROWS:]
    if len(table.columns) > MAX_COLUMNS:
        notes.append(f"{table.name}: the first {MAX_COLUMNS} of {len(table.columns)} columns are taken")
        table.columns = table.columns[:MAX_COLUMNS]
        table.rows = [row[:MAX_COLUMNS] for row in table.rows]
    binary = [at for at in range(len(table.columns)) if any(isinstance(row[at], bytes) for row in table.rows)]
    if binary:
        notes.append(f"{table.name}: binary data left out: {', '.join(table.columns[at] for at in binary)}")
    table.rows = [[value for at, value in enumerate(row) if at not in binary] for row in table.rows]
    table.columns = [name for at, name in enumerate(table.columns) if at not in binary]


def _give_key(table: RawTable) -> None:
    """Keeps the declared key, or takes an `id`, or numbers the rows."""
    usual = ("id", f"{table.name}_id", f"{_singular(table.name)}_id")
    named = [name for name in table.columns if name.casefold() in {one.casefold() for one in usual}]
    fit = [name for name in (table.key, *named) if name in table.columns and _identifies(table, name)]
    if fit:
        table.key = fit[0]
        return
    table.key = next(name for name in ("row_id", "row_number", "quintain_row") if name not in table.columns)
    table.columns.insert(0, table.key)
    table.rows = [[number, *row] for number, row in enumerate(table.rows, start=1)]


def _identifies(table: RawTable, name: str) -> bool:
    """True if a column has another whole number, or another text, in every row."""
    values = _values(table, name)
    kinds = {type(value) for value in values}
    return kinds in ({int}, {str}) and len(set(values)) == len(values)


def _values(table: RawTable, name: str) -> list[Any]:
    at = table.columns.index(name)
    return [row[at] for row in table.rows]


def _tables(kept: list[RawTable], notes: list[str]) -> dict[str, Table]:
    refers = {table.name: _references(table, kept, notes) for table in kept}
    made = {}
    for table in kept:
        columns = [
            Column(
                name, _kind(table, name), name in table.required and name != table.key, refers[table.name].get(name, "")
            )
            for name in table.columns
        ]
        key = next(one for one in columns if one.name == table.key)
        made[table.name] = Table(table.name, key, tuple(one for one in columns if one is not key))
    return made


def _kind(table: RawTable, name: str) -> Kind:
    """By what a column holds; texts among numbers make it a text."""
    kinds = {type(value) for value in _values(table, name) if value is not None}
    if kinds and kinds <= {int}:
        return "INTEGER"
    if kinds and kinds <= {int, float}:
        return "REAL"
    at = table.columns.index(name)
    for row in table.rows:
        row[at] = None if row[at] is None else str(row[at])
    return "TEXT"


def _references(table: RawTable, kept: list[RawTable], notes: list[str]) -> dict[str, str]:
    """References whose every value names a row; declared ones, or those that names and values suggest."""
    by_name = {one.name.casefold(): one for one in kept}
    found = {}
    for column in (name for name in table.columns if name != table.key):
        target = by_name.get(
            (table.refers.get(column, "") if table.refers is not None else _suggested(column, kept)).casefold()
        )
        if target is None:
            continue
        values = {value for value in _values(table, column) if value is not None}
        strange = values - set(_values(target, target.key))
        if not strange and values:
            found[column] = target.name
        elif table.refers is not None and values:
            notes.append(
                f"{table.name}.{column}: {len(strange)} values name no row of {target.name}: taken as plain values"
            )
    return found


def _suggested(column: str, kept: list[RawTable]) -> str:
    """The table that a column like `customer_id` is about, "" if there is none."""
    name = column.casefold()
    stem = (
        name.removesuffix("_id") if name.endswith("_id") else name.removesuffix("id") if column.endswith("Id") else ""
    )
    return next((table.name for table in kept if stem in (table.name.casefold(), _singular(table.name).casefold())), "")


def _singular(name: str) -> str:
    """A guess that is only used where values bear it out: categories, boxes, customers."""
    for ending, instead in (("ies", "y"), ("xes", "x"), ("ses", "s"), ("s", "")):
        if name.casefold().endswith(ending):
            return name[: -len(ending)] + instead
    return name
