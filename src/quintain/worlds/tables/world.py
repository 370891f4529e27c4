"""A world over the tables of a database: what the worlds that `quintain worlds new` writes are built on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.messages import DECLINE_PREFIXES, Action, Call
from quintain.interface.tasks import Task
from quintain.interface.words import fold
from quintain.worlds.answers import wrong
from quintain.worlds.rows import added, changed, differences, open_copy, quoted, removed, set_against
from quintain.worlds.tables.schema import Column, Table, read_schema

MOST_ROWS = 20
"""Rows one look-up shows."""

LOG = "quintain_log"
"""What was looked up and seen in this episode; no tool reads or writes it."""


class TableWorld(World):
    """Looks up and changes rows of a database through tools; what counts is the database at the end.

    A subclass names its database and has a tool for each thing that may be done, by `find`, `change`, `add` and
    `remove`. An episode succeeds if exactly the rows changed that had to, every row it rests on was seen, and the
    answer is right where one was asked for.

    Attributes:
        data: the SQLite file; every table has one key column.
    """

    data: ClassVar[Path]
    instructions: ClassVar[str] = (
        "Work on the tables with the tools, and change nothing that was not asked for. Reply with the short answer, or "
        "`Done` after a change. If an entry does not exist, reply `Cannot answer: <reason>`."
    )

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self.tables: dict[str, Table] = {}

    def data_digest(self) -> str:
        """Digest of every row."""
        return _digest_of(self.name, self.data)

    def reset(self, task: Task) -> None:
        """Opens a copy of the database."""
        self.restore(_image(self.data))
        self.database.execute(f"CREATE TABLE {LOG}(id INTEGER PRIMARY KEY, kind TEXT, about TEXT)")

    def snapshot(self) -> bytes:
        """The database as SQLite serializes it."""
        return self.database.serialize()

    def restore(self, state: bytes) -> None:
        """Takes a state back."""
        self.database = open_copy(state)
        self.tables = {name: table for name, table in read_schema(self.database).items() if name != LOG}

    def close(self) -> None:
        """Closes the database."""
        self.database.close()

    def find(self, table: str, column: str, value: str) -> list[dict[str, Any]]:
        """Rows whose column has a value, letters' case aside.

        Raises:
            ValueError: more than `MOST_ROWS` rows have it.
        """
        self._log("asked", [table, column, fold(value)])
        typed = _read(self.tables[table].column(column), value)
        where = f"FROM {quoted(table)} WHERE {quoted(column)} = ? COLLATE NOCASE"
        (count,) = self.database.execute(f"SELECT count(*) {where}", (typed,)).fetchone()
        if count > MOST_ROWS:
            raise ValueError(f"{count} rows of {table} have {column} {value!r}, at most {MOST_ROWS} are shown")
        rows = [dict(row) for row in self.database.execute(f"SELECT * {where}", (typed,))]
        for row in rows:
            self._log("seen", [table, row[self.tables[table].key.name]])
        return rows

    def change(self, table: str, key: Any, column: str, value: str) -> str:
        """Sets one value of a row.

        Raises:
            ValueError: there is no such row, or the value does not fit the column.
        """
        old = self._row(table, key)[column]
        typed = self._checked(self.tables[table].column(column), _read(self.tables[table].column(column), value))
        name = quoted(self.tables[table].key.name)
        self.database.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = ? WHERE {name} = ?", (typed, key))
        self._log("wrote", changed(table, key, column, old, typed))
        return f"{table} {key}: {column} is now {typed}"

    def add(self, table: str, values: Mapping[str, Any]) -> str:
        """Adds a row; values of None are left empty.

        Raises:
            ValueError: its key is taken, or a value does not fit its column.
        """
        one = self.tables[table]
        typed = {name: self._checked(one.column(name), value) for name, value in values.items()}
        if one.key.name in typed and self._rows(table, typed[one.key.name]):
            raise ValueError(f"{table} {typed[one.key.name]!r} exists already")
        names, marks = ", ".join(map(quoted, typed)), ", ".join("?" * len(typed))
        made = self.database.execute(f"INSERT INTO {quoted(table)}({names}) VALUES({marks})", tuple(typed.values()))
        given = [one.key.name] if one.key.name in typed else []
        row = {name: typed.get(name) for name in (*given, *(column.name for column in one.columns))}
        self._log("wrote", added(table, row))
        return f"added {table} {typed.get(one.key.name, made.lastrowid)}"

    def remove(self, table: str, key: Any) -> str:
        """Removes a row that no other refers to.

        Raises:
            ValueError: there is no such row, or others refer to it.
        """
        row = dict(self._row(table, key))
        for other in self.tables.values():
            for column in (one for one in other.columns if one.refers == table):
                query = f"SELECT count(*) FROM {quoted(other.name)} WHERE {quoted(column.name)} = ?"
                (count,) = self.database.execute(query, (key,)).fetchone()
                if count:
                    raise ValueError(f"{count} rows of {other.name} refer to {table} {key}")
        self.database.execute(f"DELETE FROM {quoted(table)} WHERE {quoted(self.tables[table].key.name)} = ?", (key,))
        self._log("wrote", removed(table, row))
        return f"removed {table} {key}"

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """Rows the task rests on seen, look-ups made, and changes made at some time."""
        seen, asked, wrote = (self._logged(kind) for kind in ("seen", "asked", "wrote"))
        done = {f"saw {table} {key}": [table, key] in seen for table, key in task.answer["seen"]}
        done |= {
            f"looked for {value}": [table, column, fold(value)] in asked
            for table, column, value in task.answer["asked"]
        }
        return done | {line: line in wrote for line in task.answer["changes"]}

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Compares the rows with what they must be, the look-ups with what the answer rests on, and the answer."""
        found = differences(open_copy(_image(self.data)), self.database, (LOG,))
        missing, strange = set_against(found, task.answer["changes"])
        reasons = [f"not asked for: {line}" for line in strange] + [f"missing: {line}" for line in missing]
        left = [name for name, done in self.milestones(task).items() if not done]
        reasons += [f"not in this episode: {name}" for name in left if name not in task.answer["changes"]]
        fault = _answer_fault(task, episode.answer)
        reasons += [fault] if fault else []
        return Verdict(success=not reasons, reasons=tuple(reasons))

    def solution(self, task: Task) -> Solution:
        """The calls the generator planned, through the tools alone.

        Raises:
            NotImplementedError: the task has no plan.
        """
        if "plan" not in task.setup:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        for number, (name, arguments) in enumerate(task.setup["plan"]):
            yield Action(calls=(Call(f"c{number}", name, arguments),))
        yield Action(answer=task.setup["said"])

    def _row(self, table: str, key: Any) -> sqlite3.Row:
        rows = self._rows(table, key)
        if not rows:
            raise ValueError(f"no {table} {key!r}")
        return rows[0]

    def _rows(self, table: str, key: Any) -> list[sqlite3.Row]:
        name = quoted(self.tables[table].key.name)
        return list(self.database.execute(f"SELECT * FROM {quoted(table)} WHERE {name} = ?", (key,)))

    def _checked(self, column: Column, value: Any) -> Any:
        if value is None and column.required:
            raise ValueError(f"{column.name} must not be empty")
        if value is not None and column.refers and not self._rows(column.refers, value):
            raise ValueError(f"{column.name}: no {column.refers} {value!r}")
        return value

    def _log(self, kind: str, about: list[Any] | str) -> None:
        text = json.dumps(about, ensure_ascii=False)
        self.database.execute(f"INSERT INTO {LOG}(kind, about) VALUES(?, ?)", (kind, text))

    def _logged(self, kind: str) -> list[Any]:
        return [json.loads(row[0]) for row in self.database.execute(f"SELECT about FROM {LOG} WHERE kind = ?", (kind,))]


def _read(column: Column, value: str) -> int | float | str:
    """A text as a value of a column.

    Raises:
        ValueError: the column holds numbers and the text is none.
    """
    if column.kind == "TEXT":
        return value
    try:
        number = int(value) if column.kind == "INTEGER" else float(value)
        if abs(number) < 2**63:  # what SQLite holds; no infinity and no NaN either
            return number
    except ValueError:
        pass
    wanted = "a whole number" if column.kind == "INTEGER" else "a number"
    raise ValueError(f"{column.name} must be {wanted}, found {value!r}")


def _answer_fault(task: Task, answer: str | None) -> str:
    """What is wrong with the answer, "" if nothing is."""
    if answer is None or not answer.strip():
        return "no answer"
    if answer.lstrip().startswith(DECLINE_PREFIXES) != task.answer["declined"]:
        return "answered, though there is no such entry" if task.answer["declined"] else "declined without need"
    value = task.answer["value"]
    return wrong(value, answer, task.prompt) if value is not None else ""


@cache
def _image(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _digest_of(name: str, path: Path) -> str:
    """Of the rows, not of SQLite's file: that differs between its versions."""
    connection = open_copy(_image(path))
    return digest({"world": name, "rows": list(connection.iterdump())})
