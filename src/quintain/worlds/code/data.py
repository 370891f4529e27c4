"""Data tasks: a table as CSV, a figure for each group, and a plot of it as a Vega-Lite specification.

A plot is checked by its data, so it has to be written in a form that holds them. Vega-Lite is one JSON object that
every viewer of it draws, that libraries such as Altair write, and that the standard library is enough for.
"""

from __future__ import annotations

import csv
import io
import random
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from quintain.worlds.code.drafts import Draft, Template
from quintain.worlds.drawing import Language

_COUNT = 600  # tables of one split


@dataclass(frozen=True, slots=True)
class Table:
    """What a table is about.

    Attributes:
        name: of the file, without its ending.
        groups: columns of names, with the names that occur.
        numbers: columns of numbers, with the largest.
    """

    name: str
    groups: dict[str, list[str]]
    numbers: dict[str, int]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a group's numbers.

    Attributes:
        en: what it is called.
        zh: the same in Chinese.
        expression: Python, from `values` (the group's numbers) and `everything` (all groups' numbers).
        mark: the plot's.
    """

    en: str
    zh: str
    expression: str
    mark: str


_READ: Final = tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))
_PROMPTS: Final[dict[Language, str]] = _READ["prompt"]
_FIGURES: Final = {name: Figure(**one) for name, one in _READ["figures"].items()}
_TABLES: Final = {
    split: [Table(name, **one) for name, one in tables.items()] for split, tables in _READ["tables"].items()
}

_PROGRAM = """import csv
import json
import sys


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


with open(sys.argv[1], newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
groups = {{}}
for row in rows:
    value = number(row[{number!r}])
    if value is not None:
        groups.setdefault(row[{group!r}], []).append(value)
everything = [value for values in groups.values() for value in values]
result = {{name: {expression} for name, values in groups.items()}}
with open("result.json", "w", encoding="utf-8") as file:
    json.dump(result, file)
plot = {{
    "mark": {mark!r},
    "data": {{"values": [{{{group!r}: name, "value": value}} for name, value in result.items()]}},
    "encoding": {{"x": {{"field": {group!r}, "type": "nominal"}}, "y": {{"field": "value", "type": "quantitative"}}}},
}}
with open("plot.json", "w", encoding="utf-8") as file:
    json.dump(plot, file)
"""

_TEST = '''"""Run by the tool `test`: the form of the files alone, not the numbers. It can't be changed."""

import json
import runpy
import sys
import unittest


class Visible(unittest.TestCase):
    def setUp(self):
        sys.argv = ["{target}", "{table}.csv"]
        runpy.run_path("{target}", run_name="__main__")

    def test_result(self):
        with open("result.json", encoding="utf-8") as file:
            self.assertEqual(sorted(json.load(file)), {names!r})

    def test_plot(self):
        with open("plot.json", encoding="utf-8") as file:
            plot = json.load(file)
        self.assertEqual(plot["mark"], {mark!r})
        self.assertEqual(len(plot["data"]["values"]), {count})
        self.assertTrue(plot["encoding"]["x"]["field"] and plot["encoding"]["y"]["field"])
'''


def draw_data(rng: random.Random, split: str, language: Language, template: Template) -> Draft:
    """A table with one figure to find; rows are clean at level 1, have gaps at 2, and are ragged at 3."""
    number_of_table = rng.randrange(_COUNT)
    drawn = random.Random(f"{split} table {number_of_table} {template.level}")
    table, figure, target = drawn.choice(_TABLES[split]), _FIGURES[template.name.removesuffix("_ragged")], "analysis.py"
    group, number = drawn.choice(sorted(table.groups)), drawn.choice(sorted(table.numbers))
    shown, unseen = (_csv(drawn, table, number, template.level) for _ in range(2))
    words = {"table": table.name, "target": target, "group": group, "number": number, "mark": figure.mark}
    program = _PROGRAM.format(group=group, number=number, expression=figure.expression, mark=figure.mark)
    results = [_result(text, group, number, figure.expression) for text in (shown, unseen)]
    test = _TEST.format(**words, names=sorted(results[0]), count=len(results[0]))
    protected = [f"{table.name}.csv", "test_analysis.py"]
    trials = [
        {
            "input": f"{table.name}.csv",
            "data": text,
            "result": result,
            "plot": {"mark": figure.mark, "values": result},
        }
        for text, result in zip((shown, unseen), results, strict=True)
    ]
    return Draft(
        prompt=_PROMPTS[language].format(**words, figure=getattr(figure, language)),
        setup={
            "family": "data",
            "files": dict(zip(protected, (shown, test), strict=True)),
            "protected": protected,
            "tests": "test_analysis",
            "target": target,
            "plan": [
                ["list", {}],
                ["read", {"path": protected[0], "first": 1, "last": 6}],
                ["write", {"path": target, "text": program}],
                ["test", {}],
            ],
        },
        answer={"trials": trials},
        cluster=f"{split}-{table.name}-{number_of_table}",
        key=shown + group + number,
    )


def _csv(rng: random.Random, table: Table, number: str, level: int) -> str:
    """A table's text; each group keeps at least one number."""
    names = {column: rng.sample(values, rng.randint(2, len(values))) for column, values in table.groups.items()}
    count = rng.randint(12, 30)
    rows: list[list[str]] = []
    for at in range(count):
        cells = {column: values[at] if at < len(values) else rng.choice(values) for column, values in names.items()}
        numbers = {column: f"{rng.randint(0, 10 * most) / 10:g}" for column, most in table.numbers.items()}
        if level > 1 and at >= 4 and rng.random() < 0.2:
            numbers[number] = rng.choice(("", "n/a", "-"))
        row = [*cells.values(), *numbers.values()]
        if level > 2 and at >= 4 and rng.random() < 0.25:
            row = rng.choice((row[: len(cells)], [*row, "checked"]))
        rows.append(row)
    rng.shuffle(rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[*table.groups, *table.numbers], *rows])
    return text.getvalue()


def _result(text: str, group: str, number: str, expression: str) -> dict[str, Any]:
    """The figure of every group."""
    groups: dict[str, list[float]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        if (value := _number(row[number])) is not None:
            groups.setdefault(row[group], []).append(value)
    everything = [value for values in groups.values() for value in values]
    formula = compile(expression, "<figure>", "eval")
    return {name: eval(formula, {"values": values, "everything": everything}) for name, values in groups.items()}


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


DATA: Final = {
    name: Template(name, "data", level, splits, draw_data)
    for name, level, splits in (
        ("data_mean", 1, ("train",)),
        ("data_total", 1, ("train",)),
        ("data_largest", 2, ("train",)),
        ("data_spread", 2, ("train",)),
        ("data_spread_ragged", 3, ("train",)),
        ("data_median", 1, ("eval",)),
        ("data_share", 2, ("eval",)),
        ("data_above", 2, ("eval",)),
        ("data_share_ragged", 3, ("eval",)),
    )
}
