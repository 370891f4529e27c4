"""What a world is made from: a SQLite file, an SQL script or CSV files, as plain tables in memory."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError
from quintain.synthesis.documents import Skip, decode
from quintain.worlds.rows import quoted

MAX_BYTES = 200_000_000
_STEPS = 200_000_000
"""Instructions of SQLite's machine after which an SQL script is stopped (some ten seconds)."""

_HEAD = b"SQLite format 3\0"

_CHOICES = re.compile(r"""["`\[]?(\w+)["`\]]?\s+IN\s*\(((?:\s*'[^']*'\s*,?)+)\)""", re.IGNORECASE)
"""A check of a column against a list of texts, as in `CHECK (status IN ('open', 'done'))`."""


@dataclass(slots=True)
class RawTable:
    """A table as it was found.

    Attributes:
        name: of the table.
        columns: names in order.
        rows: values in order.
        key: the declared primary key where it is one column, else "".
        refers: the table each declared reference names, by column; None: nothing was declared, so references are to be
            recognised by names and values.
        required: columns that must not be empty.
        types: declared types by column, for tables without rows.
        choices: texts a column may have, where a check says so.
    """

    name: str
    columns: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    key: str = ""
    refers: dict[str, str] | None = None
    required: set[str] = field(default_factory=set)
    types: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)


def read_sources(paths: Sequence[Path]) -> list[RawTable]:
    """Tables of one database, of one SQL script, or of CSV files or a folder of them.

    Raises:
        InputError: a file is missing, of another kind, broken, or holds no table.
    """
    files = [file for path in paths for file in (_csv_files(path) if path.is_dir() else [path])]
    if not files:
        raise InputError(f"{paths[0]}: no *.csv in this folder")
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: no such file")
        if file.stat().st_size > MAX_BYTES:
            raise InputError(f"{file}: {file.stat().st_size} bytes > {MAX_BYTES}; give a smaller extract")
    scripts = [file for file in files if file.suffix.lower() != ".csv"]
    if scripts and len(files) > 1:
        raise InputError(f"{scripts[0]}: give one database or one .sql file, or only CSV files")
    if not scripts:
        return _csv_tables(files)
    return _sqlite_tables(files[0])


def _csv_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() == ".csv")


def _csv_tables(files: Sequence[Path]) -> list[RawTable]:
    tables = [_csv_table(file) for file in files]
    names = [table.name.casefold() for table in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two CSV files are named {twice!r}; the name becomes the table's")
    return tables


def _csv_table(file: Path) -> RawTable:
    try:
        text = decode(file.read_bytes(), Counter())
    except Skip as reason:
        raise InputError(f"{file}: {reason}; save it as UTF-8 CSV") from None
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    try:
        header = [name.strip() for name in next(lines, [])]
        rows = [(lines.line_num, row) for row in lines if row]
    except csv.Error as error:
        raise InputError(f"{file}:{lines.line_num}: not valid CSV: {error}") from None
    if not any(header):
        raise InputError(f"{file}: empty; the first line must name the columns")
    folded = [name.casefold() for name in header]
    wrong = next((name for name in folded if not name or folded.count(name) > 1), None)
    if wrong is not None:
        raise InputError(f"{file}:1: column {wrong!r} {'occurs twice' if wrong else 'has no name'}; names must differ")
    for number, row in rows:
        if len(row) != len(header):
            raise InputError(f"{file}:{number}: {len(row)} fields, the first line names {len(header)} columns")
    values = [[_typed(value) for value in row] for _, row in rows]
    return RawTable(file.stem, header, _whole_columns(values, [row for _, row in rows]))


def _delimiter(text: str) -> str:
    """The one of comma, semicolon, tab and bar that the first line has most of."""
    first = text.partition("\n")[0]
    return max(",;\t|", key=first.count)


def _typed(value: str) -> Any:
    """A CSV field: empty is None; a number only where its spelling is the usual one, so that 007 stays a text."""
    text = value.strip()
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if abs(number) < 2**53 and (str(number) == text or (kind is float and text.count(".") == 1 and text[0] != ".")):
            return number
    return text or None


def _whole_columns(values: list[list[Any]], texts: list[list[str]]) -> list[list[Any]]:
    """A column holds numbers only if all of its values are numbers; else its texts as they are written."""
    mixed = {
        at
        for at in range(len(values[0]) if values else 0)
        if len({isinstance(row[at], str) for row in values if row[at] is not None}) > 1
    }
    return [
        [
            (text.strip() or None) if at in mixed else value
            for at, (value, text) in enumerate(zip(row, raw, strict=True))
        ]
        for row, raw in zip(values, texts, strict=True)
    ]


def _sqlite_tables(file: Path) -> list[RawTable]:
    with file.open("rb") as opened:
        binary = opened.read(len(_HEAD)) == _HEAD
    if not binary and file.suffix.lower() != ".sql":
        raise InputError(f"{file}: neither a SQLite database nor *.sql or *.csv")
    try:
        connection = _opened(file) if binary else _run_script(file)
        connection.execute("PRAGMA trusted_schema = OFF")
        found = [_raw(connection, name) for name in _table_names(connection)]
        connection.close()
    except sqlite3.Error as error:
        hint = "" if binary else "; a script may only make and fill tables, in SQLite's dialect"
        raise InputError(f"{file}: {' '.join(str(error).split())}{hint}") from None
    if not found:
        raise InputError(f"{file}: no tables")
    return found


def _opened(file: Path) -> sqlite3.Connection:
    """Opens a database to read, and what a program that has it open wrote but did not move into the file yet."""
    pending = any(file.with_name(file.name + ending).exists() for ending in ("-wal", "-journal"))
    mode = "mode=ro" if pending else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _run_script(file: Path) -> sqlite3.Connection:
    """Runs a script in memory: it reaches no other file, and ends."""
    try:
        text = decode(file.read_bytes(), Counter())
    except Skip as reason:
        raise InputError(f"{file}: {reason}; save it as UTF-8") from None
    connection = sqlite3.connect(":memory:")
    connection.set_authorizer(_allow)
    left = [_STEPS // 100_000]
    connection.set_progress_handler(lambda: _count_down(left), 100_000)
    connection.executescript(text)
    connection.set_authorizer(None)
    connection.set_progress_handler(None, 0)
    return connection


def _allow(action: int, first: str | None, second: str | None, *_: Any) -> int:
    """Another database, an extension, or a setting other than of references has no place in a script of tables."""
    forbidden = action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    forbidden |= action == sqlite3.SQLITE_PRAGMA and str(first).lower() not in ("foreign_keys", "encoding")
    forbidden |= action == sqlite3.SQLITE_FUNCTION and str(second).lower() == "load_extension"
    return sqlite3.SQLITE_DENY if forbidden else sqlite3.SQLITE_OK


def _count_down(left: list[int]) -> int:
    left[0] -= 1
    return int(left[0] < 0)


def _table_names(connection: sqlite3.Connection) -> list[str]:
    """Ordinary tables in the order of their creation; views and virtual tables hold no rows of their own."""
    plain = {row[1] for row in connection.execute("PRAGMA table_list") if row[0] == "main" and row[2] == "table"}
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    return [name for (name,) in connection.execute(query) if name in plain]


def _raw(connection: sqlite3.Connection, name: str) -> RawTable:
    info = list(connection.execute(f"PRAGMA table_info({quoted(name)})"))
    keys = [row[1] for row in info if row[5]]
    several = Counter(row[0] for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})"))
    refers = {
        row[3]: row[2] for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})") if several[row[0]] == 1
    }
    columns = [row[1] for row in info]
    rows = [list(row) for row in connection.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(name)}")]
    (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)).fetchone()
    return RawTable(
        name,
        columns,
        rows,
        key=keys[0] if len(keys) == 1 else "",
        refers=refers,
        required={row[1] for row in info if row[3]},
        types={row[1]: row[2].upper() for row in info},
        choices={column: re.findall(r"'([^']*)'", texts) for column, texts in _CHOICES.findall(sql)},
    )
