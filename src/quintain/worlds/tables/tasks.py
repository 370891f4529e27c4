"""Makes tasks from the rows of a database, level by level: more look-ups and more changes at each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

from quintain.interface.tasks import Task
from quintain.worlds.answers import wrong
from quintain.worlds.drawing import Language
from quintain.worlds.rows import added, changed, removed
from quintain.worlds.tables.contents import Rows, plain
from quintain.worlds.tables.schema import Column
from quintain.worlds.tables.wordings import WORDINGS

LEVELS = (1, 2, 3, 4, 5)
_PATIENCE = 200
"""Draws in a row without a new task after which a level counts as used up."""

Call = list[Any]
"""Tool and arguments."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A task without its wording around it.

    Attributes:
        template: how it was made.
        text: what is asked for.
        main: table and key of the row it is about.
        calls: of the reference solution.
        said: what the reference solution answers.
        changes: lines of the database's difference that must come of it.
        value: the answer, as `answers.wrong` reads it; None for changes.
        seen: table and key of the rows it rests on.
        asked: table, column and value of the look-ups that must fail.
    """

    template: str
    text: str
    main: tuple[str, Any]
    calls: list[Call]
    said: str = "Done"
    changes: list[str] = field(default_factory=list)
    value: Any = None
    seen: list[list[Any]] = field(default_factory=list)
    asked: list[list[str]] = field(default_factory=list)


class Drafter:
    """Drafts tasks of each level.

    Args:
        rows: of one side.
        tools: name of a table's tool, by what it does and the table.
        parameters: of the `add` tool of each table: the parameter of each column.
        rng: of the draws.
        language: of the prompts.
    """

    def __init__(
        self,
        rows: Rows,
        tools: dict[tuple[str, str], str],
        parameters: dict[str, dict[str, str]],
        rng: random.Random,
        language: Language,
    ) -> None:
        self._rows, self._tools, self._parameters, self._rng = rows, tools, parameters, rng
        self._wording = WORDINGS[language]
        self._levels: dict[int, tuple[Callable[[], Draft | None], ...]] = {
            1: (self._read, self._missing),
            2: (self._change, self._remove),
            3: (self._hop, self._add, lambda: self._several(2)),
            4: (self._change_far, self._count, lambda: self._several(3)),
            5: (self._change_all, lambda: self._several(4)),
        }

    def drafts(self, level: int) -> Iterator[Draft]:
        """Drafts of a level, its templates in turn, until too many draws fail."""
        failed = 0
        while failed < _PATIENCE:
            for draw in self._levels[level]:
                made = draw()
                failed = failed + 1 if made is None else 0
                if made is not None:
                    yield made

    def _pick(self) -> tuple[str, Any, dict[str, Any]] | None:
        name = self._rng.choice(list(self._rows.tables))
        if not self._rows.mine[name]:
            return None
        key = self._rng.choice(self._rows.mine[name])
        label = self._rows.all[name][key][self._rows.labels[name].name]
        return (name, key, self._rows.all[name][key]) if plain(label) else None

    def _named(self, table: str, key: Any) -> str:
        label = self._rows.labels[table].name
        return self._wording.named.format(table=table, column=label, value=self._rows.all[table][key][label])

    def _find(self, table: str, key: Any) -> Call:
        label = self._rows.labels[table].name
        return self._finding(table, label, self._rows.all[table][key][label])

    def _finding(self, table: str, column: str, value: Any) -> Call:
        return [self._tools["find", table], {"column": column, "value": str(value)}]

    def _changing(self, table: str, key: Any, column: Column, value: Any) -> Call:
        name = self._parameters[table][self._rows.tables[table].key.name]
        return [self._tools["change", table], {name: key, "column": column.name, "value": str(value)}]

    def _told(self, table: str, key: Any) -> tuple[Column, Any] | None:
        """A column of a row and its value, one that an answer can be compared with."""
        row = self._rows.all[table][key]
        fit = [
            (one, row[one.name])
            for one in self._rows.tables[table].columns
            if one != self._rows.labels[table] and not one.refers and row[one.name] is not None and plain(row[one.name])
        ]
        return self._rng.choice(fit) if fit else None

    def _read(self) -> Draft | None:
        found = self._pick()
        told = found and self._told(found[0], found[1])
        if not found or not told:
            return None
        table, key, _ = found
        column, value = told
        text = self._wording.read.format(column=column.name, entry=self._named(table, key))
        return _answered("read", text, (table, key), [self._find(table, key)], value, [[table, key]])

    def _missing(self) -> Draft | None:
        found = self._pick()
        if not found:
            return None
        table, key, row = found
        label = self._rows.labels[table]
        value = self._invented(table, label, row[label.name])
        column = self._rng.choice(
            [one.name for one in self._rows.tables[table].columns if one != label] or [label.name]
        )
        about = {"table": table, "column": label.name, "value": value}
        text = self._wording.read.format(column=column, entry=self._wording.named.format(**about))
        said = self._wording.missing.format(**about)
        calls = [self._finding(table, label.name, value)]
        return Draft("missing", text, (table, key), calls, said, asked=[[table, label.name, str(value)]])

    def _invented(self, table: str, label: Column, value: Any) -> Any:
        """A value that no row has, made from one that a row has."""
        taken = {str(row[label.name]).casefold() for row in self._rows.all[table].values()}
        while str(value).casefold() in taken:
            value = (
                value + self._rng.randrange(1, 1000) if label.kind != "TEXT" else f"{value}{self._rng.randrange(10)}"
            )
        return value

    def _change(self) -> Draft | None:
        found = self._pick()
        return self._changed("change", *found[:2], []) if found else None

    def _changed(self, template: str, table: str, key: Any, before: list[Call], named: str = "") -> Draft | None:
        """Sets a column of a row to a value that other rows have."""
        row, schema = self._rows.all[table][key], self._rows.tables[table]
        fit = [
            (one, others) for one in schema.columns if not one.refers and (others := self._rows.others(table, one, key))
        ]
        if not fit:
            return None
        column, others = self._rng.choice(fit)
        value = self._rng.choice(others)
        text = self._wording.change.format(column=column.name, entry=named or self._named(table, key), value=value)
        calls = [*(before or [self._find(table, key)]), self._changing(table, key, column, value)]
        lines = [changed(table, key, column.name, row[column.name], value)]
        return Draft(template, text, (table, key), calls, changes=lines, seen=[[table, key]])

    def _remove(self) -> Draft | None:
        found = self._pick()
        if not found or self._rows.referred(*found[:2]):
            return None
        table, key, row = found
        name = self._parameters[table][self._rows.tables[table].key.name]
        calls = [self._find(table, key), [self._tools["remove", table], {name: key}]]
        text = self._wording.remove.format(entry=self._named(table, key))
        return Draft("remove", text, (table, key), calls, changes=[removed(table, row)], seen=[[table, key]])

    def _parent(self) -> tuple[str, Any, Column, str, Any] | None:
        """A row, a reference of it and the row referred to, both on this side."""
        found = self._pick()
        refers = [one for one in self._rows.tables[found[0]].columns if one.refers] if found else []
        if not found or not refers:
            return None
        table, key, row = found
        column = self._rng.choice(refers)
        parent = row[column.name]
        mine = parent in self._rows.mine[column.refers] and (column.refers, parent) != (table, key)
        return (table, key, column, column.refers, parent) if mine else None

    def _hop(self) -> Draft | None:
        found = self._parent()
        told = found and self._told(*found[3:])
        if not found or not told:
            return None
        table, key, column, other, parent = found
        entry = self._named(table, key)
        text = self._wording.hop.format(entry=entry, told=told[0].name, table=other, column=column.name)
        calls = [self._find(table, key), self._by_key(other, parent)]
        return _answered("hop", text, (other, parent), calls, told[1], [[table, key], [other, parent]])

    def _by_key(self, table: str, key: Any) -> Call:
        return self._finding(table, self._rows.tables[table].key.name, key)

    def _change_far(self) -> Draft | None:
        found = self._parent()
        if not found:
            return None
        table, key, column, other, parent = found
        before = [self._find(table, key), self._by_key(other, parent)]
        named = self._wording.far.format(table=other, column=column.name, entry=self._named(table, key))
        made = self._changed("change_far", other, parent, before, named)
        if made is not None:
            made.seen.append([table, key])
        return made

    def _family(self) -> tuple[str, Any, str, Column, list[Any]] | None:
        """A row on this side with 2 to 6 rows that refer to it by one column."""
        keys = [
            (self._rows.tables[table].column(column), table, parent, found)
            for (table, column, parent), found in self._rows.children.items()
            if 2 <= len(found) <= 6
        ]
        fit = [one for one in keys if one[2] in self._rows.mine[one[0].refers]]
        if not fit:
            return None
        column, table, parent, found = self._rng.choice(fit)
        label = self._rows.all[column.refers][parent][self._rows.labels[column.refers].name]
        return (column.refers, parent, table, column, found) if plain(label) else None

    def _count(self) -> Draft | None:
        found = self._family()
        if not found:
            return None
        other, parent, table, column, keys = found
        text = self._wording.count.format(table=table, column=column.name, entry=self._named(other, parent))
        seen = [[other, parent], *([table, key] for key in keys)]
        calls = [self._find(other, parent), self._finding(table, column.name, parent)]
        return _answered("count", text, (other, parent), calls, len(keys), seen)

    def _change_all(self) -> Draft | None:
        found = self._family()
        if not found:
            return None
        other, parent, table, column, keys = found
        values: dict[str, list[Any]] = {
            one.name: self._rows.others(table, one, keys[0])
            for one in self._rows.tables[table].columns
            if not one.refers
        }
        fit = [(name, value) for name, others in values.items() for value in others]
        if not fit:
            return None
        name, value = self._rng.choice(fit)
        rows = {key: self._rows.all[table][key] for key in keys}
        target = self._rows.tables[table].column(name)
        different = [key for key, row in rows.items() if row[name] != value]
        every = self._wording.every.format(table=table, column=column.name, entry=self._named(other, parent))
        text = self._wording.change.format(column=name, entry=every, value=value)
        calls = [self._find(other, parent), self._finding(table, column.name, parent)]
        calls += [self._changing(table, key, target, value) for key in different]
        lines = [changed(table, key, name, rows[key][name], value) for key in different]
        seen = [[other, parent], *([table, key] for key in keys)]
        return Draft("change_all", text, (other, parent), calls, changes=lines, seen=seen)

    def _add(self) -> Draft | None:
        """A new entry like one there is, that refers to a row found by its label."""
        found = self._parent()
        if not found:
            return None
        table, key, column, other, parent = found
        schema, row = self._rows.tables[table], dict(self._rows.all[table][key])
        del row[schema.key.name]
        if schema.key.kind == "TEXT":
            row = {schema.key.name: self._invented(table, schema.key, key), **row}
        label = self._rows.labels[table]
        if label.name in row and label != schema.key:
            row[label.name] = self._invented(table, label, row[label.name])
        told = {name: value for name, value in row.items() if value is not None and name != column.name}
        if not all(map(plain, told.values())):
            return None
        words = self._wording
        listed = words.between.join(words.value.format(column=name, value=value) for name, value in told.items())
        values = words.with_values.format(listed=listed) if told else ""
        text = words.add.format(table=table, column=column.name, entry=self._named(other, parent), told=values)
        given = {self._parameters[table][name]: value for name, value in row.items() if value is not None}
        calls = [self._find(other, parent), [self._tools["add", table], given]]
        return Draft("add", text, (other, parent), calls, changes=[added(table, row)], seen=[[other, parent]])

    def _several(self, count: int) -> Draft | None:
        """Changes of `count` different rows in one task."""
        made: dict[tuple[str, Any], Draft] = {}
        for _ in range(4 * count):
            one = self._rng.choice((self._change, self._remove))()
            if one is not None and len(made) < count:
                made.setdefault(one.main, one)
        if len(made) < count:
            return None
        drafts = list(made.values())
        text = " ".join(f"{number}. {one.text}" for number, one in enumerate(drafts, start=1))
        made_of = partial(_joined, drafts)
        return Draft(
            f"several_{count}",
            self._wording.several.format(listed=text),
            drafts[0].main,
            made_of("calls"),
            changes=made_of("changes"),
            seen=made_of("seen"),
        )


def _joined(drafts: list[Draft], name: str) -> list[Any]:
    return [one for draft in drafts for one in getattr(draft, name)]


def _answered(
    template: str, text: str, main: tuple[str, Any], calls: list[Call], value: Any, seen: list[list[Any]]
) -> Draft | None:
    """A question, if its answer can be told right from wrong and is not said in the question."""
    gold = {"text": value} if isinstance(value, str) else {"number": str(value)}
    if wrong(gold, str(value), text) or not wrong(gold, text, text):
        return None
    return Draft(template, text, main, calls, str(value), value=gold, seen=seen)


def make_task(draft: Draft, world: str, split: str, level: int, language: Language) -> Task:
    """The task of a draft; the same content gives the same id."""
    asked = sha256(f"{draft.text} {draft.changes} {draft.said}".encode()).hexdigest()[:10]
    table, key = draft.main
    return Task(
        id=f"{world}-{split}-{level}-{draft.template}-{asked}",
        world=world,
        prompt=draft.text,
        setup={"plan": draft.calls, "said": draft.said},
        answer={
            "changes": draft.changes,
            "value": draft.value,
            "seen": draft.seen,
            "asked": draft.asked,
            "declined": bool(draft.asked),
        },
        cluster=f"{table}:{key}",
        template=draft.template,
        tags=(f"lang:{language}", f"hops:{len(draft.calls)}", f"level:{level}"),
    )
