"""The source of a world over a database: one method for each thing that may be done, for its owner to read and edit."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from string import Template

from quintain.worlds.tables.schema import Column, Table

_TYPES = {"INTEGER": "int", "REAL": "float", "TEXT": "str"}

_HEAD = Template('''"""The world `$world` over data.sqlite: made by `quintain worlds new`, and yours to change.

Take a tool away, rename one, add a rule: `quintain doctor recipe.toml` says whether verdict and tasks still fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from quintain import tool
from quintain.worlds.tables import TableWorld


class $class_name(TableWorld):
    """Looks up and changes entries of $listed."""

    name = $name
    data = Path(__file__).with_name("data.sqlite")
''')

_FIND = Template('''
    @tool
    def $tool(self, column: Literal[$columns], value: str) -> list[dict[str, Any]]:
        """Finds $noun entries by the value of a column.

        Args:
            column: which column.
            value: what it must be.
        """
        return self.find($table, column, value)
''')

_CHANGE = Template('''
    @tool
    def $tool(self, $key: $key_type, column: Literal[$columns], value: str) -> str:
        """Sets one value of a $noun entry.

        Args:
            $key: key of the entry.
            column: which column.
            value: what it becomes.
        """
        return self.change($table, $key, column, value)
''')

_ADD = Template('''
    @tool
    def $tool(self, $parameters) -> str:
        """Adds a $noun entry."""
        values = {$values}
        return self.add($table, values)
''')

_REMOVE = Template('''
    @tool
    def $tool(self, $key: $key_type) -> str:
        """Removes a $noun entry that no other refers to.

        Args:
            $key: key of the entry.
        """
        return self.remove($table, $key)
''')


@dataclass(frozen=True, slots=True)
class Names:
    """What tables and columns are called in Python and by an agent.

    Attributes:
        tools: name of a tool, by what it does and the table.
        parameters: by table, the parameter of each column.
    """

    tools: dict[tuple[str, str], str]
    parameters: dict[str, dict[str, str]]


def names_of(tables: dict[str, Table]) -> Names:
    """Names that Python and every model's tool format take: ASCII letters, digits and underscores."""
    nouns = _identifiers(tables, "table", ())
    tools = {(verb, name): f"{verb}_{nouns[name]}" for name in tables for verb in ("find", "change", "add", "remove")}
    parameters = {
        name: _identifiers(
            [table.key.name, *(one.name for one in table.columns)], "column", ("self", "column", "value")
        )
        for name, table in tables.items()
    }
    return Names(tools, parameters)


def class_name(world: str) -> str:
    """`CornerShop` for `corner_shop`."""
    return "".join(part.capitalize() for part in world.split("_"))


def module_text(world: str, tables: dict[str, Table], names: Names) -> str:
    """The module's source."""
    listed = ", ".join(tables)
    head = _HEAD.substitute(world=world, class_name=class_name(world), listed=_plain(listed), name=_quoted(world))
    return head + "".join(_tools(table, names) for table in tables.values())


def _tools(table: Table, names: Names) -> str:
    parameters = names.parameters[table.name]
    every = [table.key, *table.columns]
    shared = {
        "noun": _plain(table.name),
        "table": _quoted(table.name),
        "key": parameters[table.key.name],
        "key_type": _TYPES[table.key.kind],
    }
    text = _FIND.substitute(shared, tool=names.tools["find", table.name], columns=_literal(every))
    if table.columns:
        text += _CHANGE.substitute(shared, tool=names.tools["change", table.name], columns=_literal(table.columns))
        text += _adding(table, names, shared)
    return text + _REMOVE.substitute(shared, tool=names.tools["remove", table.name])


def _adding(table: Table, names: Names, shared: dict[str, str]) -> str:
    """An integer key is chosen by the database; columns that may be empty come last."""
    parameters = names.parameters[table.name]
    given = [*([table.key] if table.key.kind == "TEXT" else []), *table.columns]
    needed = [one for one in given if one.required or one is table.key]
    free = [one for one in given if one not in needed]
    listed = [f"{parameters[one.name]}: {_TYPES[one.kind]}" for one in needed]
    listed += [f"{parameters[one.name]}: {_TYPES[one.kind]} | None = None" for one in free]
    values = ", ".join(f"{_quoted(one.name)}: {parameters[one.name]}" for one in given)
    return _ADD.substitute(shared, tool=names.tools["add", table.name], parameters=", ".join(listed), values=values)


def _literal(columns: Collection[Column]) -> str:
    return ", ".join(_quoted(one.name) for one in columns)


def _quoted(text: str) -> str:
    """A Python string literal, whatever a name holds."""
    plain = text.replace('"', "") == text and "\\" not in text and text.isprintable()
    return f'"{text}"' if plain else ascii(text)


def _plain(text: str) -> str:
    """A name inside a docstring: nothing in it can end the docstring or escape."""
    return re.sub(r'["\\\n\r]|[^\w ,.-]', "_", text)


def _identifiers(texts: Collection[str], fallback: str, taken: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, text in enumerate(texts, start=1):
        folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
        name = re.sub(r"\W+", "_", folded).strip("_")[:40] or f"{fallback}_{number}"
        name = f"{fallback}_{name}" if name[0].isdigit() or keyword.iskeyword(name) or name in taken else name
        while name in found.values():
            name += "_"
        found[text] = name
    return found
