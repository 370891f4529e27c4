"""`quintain worlds new`, without the command line: a world of one's own from a database, an SQL script or CSV files."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from string import Template
from typing import Any

from quintain.commands.new_world.acceptance import Acceptance, Examined
from quintain.commands.new_world.measured import MakeAgent
from quintain.commands.new_world.module import Names, class_name, module_text, names_of
from quintain.commands.new_world.sources import read_sources
from quintain.commands.new_world.tidying import tidy
from quintain.interface.errors import InputError
from quintain.interface.messages import Call
from quintain.interface.tasks import Task, save_tasks
from quintain.progress import say
from quintain.recipe.user_code import load_world
from quintain.worlds.drawing import Language, known_languages
from quintain.worlds.rows import quoted
from quintain.worlds.tables.contents import Rows
from quintain.worlds.tables.schema import Table
from quintain.worlds.tables.tasks import LEVELS, Drafter, make_task

SPLITS = ("train", "eval")
MEASURED = 20
"""Tasks of a level that the given agent plays."""

_RECIPE = Template("""# The world `$world` over your tables: measure, learn from reference solutions, measure again.
name = "$world"
seed = 1

[model]
base = "smollm2-135m"

[world]
world = "$module:$class_name"

[budget]
turns = $turns
tool_calls = $turns
tokens = $tokens

[pools.train]
file = "train.jsonl"

[pools.eval]           # no row that a task of it is about is one of a training task
file = "eval.jsonl"

[[stages]]
kind = "eval"
name = "base"
pool = "eval"
samples = 1
sampling = { temperature = 0.0, max_tokens = 96 }

[[stages]]
kind = "rollout"
name = "demos"
pool = "train"
agent = "oracle"

[[stages]]
kind = "sft"
name = "sft"
data = ["demos"]

[stages.train]
learning_rate = 2e-4   # a 135M model needs a larger rate than the 1e-5 of a 7B one
batch_trajectories = 4
microbatch_tokens = 3072
epochs = 2

[[stages]]
kind = "eval"
name = "tuned"
model = "sft"
pool = "eval"
samples = 1
sampling = { temperature = 0.0, max_tokens = 96 }
""")


def new_world(
    sources: Sequence[Path],
    out: Path,
    *,
    name: str | None = None,
    tables: Sequence[str] = (),
    count: int = 40,
    languages: Sequence[str] = ("en",),
    seed: int = 0,
    agent: MakeAgent | None = None,
) -> dict[str, Any]:
    """Writes a folder with a world over the sources' tables, its tasks and a recipe.

    Every task is played before it is kept: by its reference solution, a silent and a random agent, and spoiled
    solutions. Levels are raised one by one; a given agent is measured at each, and the first level that it never solves
    is the last.

    Args:
        sources: a SQLite file, an .sql script, CSV files, or a folder of CSV files.
        out: the folder to write; it must not exist.
        name: of the world; by default the folder's.
        tables: names of those to take; empty takes all.
        count: tasks of each level and side.
        languages: of the prompts, `en`, `zh` or both in turn.
        seed: of all draws.
        agent: makes the one whose pass rate is measured by level; None measures nobody.

    Returns:
        `folder`, `tables` (rows by table), `notes`, `levels` and `lines`.

    Raises:
        InputError: the sources can't be read, a language is unknown, or no task holds what a task must.
    """
    world, spoken = _world_name(name or out.name), known_languages("worlds new:", languages)
    if out.exists():
        raise InputError(f"{out} exists already; give another --out")
    connection, made, notes = tidy(read_sources(sources), tables, seed)
    names = names_of(made)
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _write_world(partial, world, connection, made, names)
        levels, tasks = _levels(_Maker(partial, world, connection, made, names, spoken, seed), count, agent)
        _write_tasks(partial, world, tasks)
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    rows = {table: connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0] for table in made}
    listed = ", ".join(f"{table} {number}" for table, number in rows.items())
    totals = ", ".join(f"{len(tasks[split])} in {split}.jsonl" for split in SPLITS)
    lines = [f"tables (rows): {listed}", *notes, *(one["line"] for one in levels)]
    lines += [f"{out}: {totals}; now `quintain doctor {out / 'recipe.toml'}`"]
    return {"folder": str(out), "tables": rows, "notes": notes, "levels": levels, "lines": lines}


class _Maker:
    """Makes and examines the tasks of one level."""

    def __init__(
        self,
        folder: Path,
        world: str,
        connection: sqlite3.Connection,
        tables: dict[str, Table],
        names: Names,
        languages: Sequence[Language],
        seed: int,
    ) -> None:
        self.world, self._languages, self._seed = world, languages, seed
        connection.row_factory = sqlite3.Row
        self._sides = {split: Rows(connection, tables, split) for split in SPLITS}
        self._names = names
        self.acceptance = Acceptance(_load(folder, world), _disturbance(self._sides["train"], names), seed)

    def examined(self, split: str, level: int, count: int) -> Examined:
        """Up to `count` different tasks of one level and side, the languages in turn, played."""
        rng = random.Random(f"{self.world} {split} {level} {self._seed}")
        streams = [self._drawn(split, level, language, rng) for language in self._languages]
        drawn = chain.from_iterable(zip(*streams, strict=False))
        return self.acceptance.examine(list(islice(_different(drawn), count)))

    def _drawn(self, split: str, level: int, language: Language, rng: random.Random) -> Iterator[Task]:
        drafter = Drafter(self._sides[split], self._names.tools, self._names.parameters, rng, language)
        return (make_task(draft, self.world, split, level, language) for draft in drafter.drafts(level))


def _different(tasks: Iterator[Task]) -> Iterator[Task]:
    """Tasks whose content came up for the first time, until only old ones come."""
    seen: set[str] = set()
    old = 0
    for task in tasks:
        old = old + 1 if task.id in seen else 0
        if task.id not in seen:
            seen.add(task.id)
            yield task
        if old > 100:
            return


def _levels(maker: _Maker, count: int, agent: MakeAgent | None) -> tuple[list[dict[str, Any]], dict[str, list[Task]]]:
    """Raises the level step by step; what is kept of each.

    Raises:
        InputError: no task at all is accepted.
    """
    levels: list[dict[str, Any]] = []
    tasks: dict[str, list[Task]] = {split: [] for split in SPLITS}
    reasons: list[str] = []
    for level in LEVELS:
        say(f"level {level} ...")
        examined = {split: maker.examined(split, level, count) for split in SPLITS}
        reasons += [line for one in examined.values() for line in one.rejected]
        for split, one in examined.items():
            tasks[split] += one.kept
        solved = None
        if agent is not None and examined["eval"].kept:
            solved = maker.acceptance.measure(examined["eval"].kept[:MEASURED], agent)
        levels.append(_level_json(level, list(examined.values()), solved))
        if solved is not None and solved[0] == 0:
            break
    empty = next((split for split in SPLITS if not tasks[split]), None)
    if empty is not None:
        cause = reasons[0] if reasons else "too few rows, or none that a prompt can name"
        raise InputError(f"no {empty} task could be made of these tables: {cause}")
    return levels, tasks


def _level_json(level: int, examined: Sequence[Examined], solved: tuple[int, int] | None) -> dict[str, Any]:
    played = {
        name: tuple(map(sum, zip(*(one.played[name] for one in examined), strict=True))) for name in examined[0].played
    }
    kept = sum(len(one.kept) for one in examined)
    parts = ", ".join(f"{name} {successes} of {episodes}" for name, (successes, episodes) in played.items())
    line = f"level {level}: {kept} tasks accepted; succeed: {parts}"
    rejected = [text for one in examined for text in one.rejected]
    line += f"; {len(rejected)} rejected ({rejected[0]})" if rejected else ""
    if solved is not None:
        line += f"; the agent solves {solved[0]} of {solved[1]} ({solved[0] / max(1, solved[1]):.0%})"
    return {"level": level, "accepted": kept, "rejected": rejected, "played": played, "agent": solved, "line": line}


def _disturbance(rows: Rows, names: Names) -> Callable[[Task], Call]:
    """For each task, a change of a row that it does not touch, to a value that no row has."""
    places = [
        (table, one.key.name, next((column for column in one.columns if not column.refers), None))
        for table, one in rows.tables.items()
    ]
    free = [(table, key, column) for table, key, column in places if column is not None]
    if not free:
        raise InputError("every column is a key or a reference: there is nothing to ask for or to set")

    def disturb(task: Task) -> Call:
        rest = (
            (*place, key) for place in free for key in rows.all[place[0]] if [place[0], key] not in task.answer["seen"]
        )
        table, name, column, key = next(rest, (*free[0], next(iter(rows.all[free[0][0]]))))
        value = "nobody asked for this" if column.kind == "TEXT" else "9876543"
        arguments = {names.parameters[table][name]: key, "column": column.name, "value": value}
        return Call("disturb", names.tools["change", table], arguments)

    return disturb


def _write_world(
    folder: Path, world: str, connection: sqlite3.Connection, tables: dict[str, Table], names: Names
) -> None:
    (folder / "data.sqlite").write_bytes(connection.serialize())
    (folder / f"{world}_world.py").write_text(module_text(world, tables, names), encoding="utf-8")


def _write_tasks(folder: Path, world: str, tasks: dict[str, list[Task]]) -> None:
    for split, made in tasks.items():
        save_tasks(folder / f"{split}.jsonl", made)
    turns = max(len(task.setup["plan"]) for made in tasks.values() for task in made) + 5
    text = _RECIPE.substitute(
        world=world, module=f"{world}_world", class_name=class_name(world), turns=turns, tokens=120 * turns
    )
    (folder / "recipe.toml").write_text(text, encoding="utf-8")


def _load(folder: Path, world: str) -> Any:
    """The module as it was written, imported under its own name and forgotten again."""
    module = f"{world}_world"
    sys.modules.pop(module, None)
    home = str(folder.resolve())
    try:
        return load_world(f"{module}:{class_name(world)}", folder.resolve())
    finally:
        sys.modules.pop(module, None)
        sys.path.remove(home)


def _world_name(text: str) -> str:
    name = re.sub(r"\W+", "_", text.lower(), flags=re.ASCII).strip("_")
    if not name or name[0].isdigit():
        raise InputError(f"world name {text!r}: give --name with letters, digits and underscores, a letter first")
    return name
