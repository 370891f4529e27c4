"""All finished episodes of a run in a small database on disk: what a list and a search need, and where each lies.

The episodes themselves stay in their journals; one is read when it is looked at.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.reading import JOURNAL, Recorded, episodes_of, read_episodes
from quintain.pipeline.run import read_recipe
from quintain.pipeline.sheet import SHEET, evaluation_title, sampled
from quintain.progress import progress

FACETS = ("stage", "result", "outcome", "template", "flag", "spot_check")
"""What a list can be narrowed to."""

_COLUMNS = "stage, id, task, prompt, result, outcome, template, turns, start, stop, text, flag, spot_check"


@dataclass(frozen=True, slots=True)
class Query:
    """Which episodes are wanted.

    Attributes:
        words: each must stand somewhere in prompt, thoughts, calls, observations or answers; case does not matter.
        facets: value by facet.
        task: of this task alone; "" for any.
    """

    words: tuple[str, ...] = ()
    facets: tuple[tuple[str, str], ...] = ()
    task: str = ""

    def where(self, without: str = "") -> tuple[str, list[str]]:
        """A condition of SQL and its values; `without` leaves out one facet."""
        parts, values = ["1"], []
        for word in self.words:
            parts.append("instr(text, ?)")
            values.append(word.casefold())
        for name, value in self.facets:
            if name != without:
                parts.append(f"{name} = ?")
                values.append(value)
        if self.task:
            parts.append("task = ?")
            values.append(self.task)
        return " AND ".join(parts), values


class Index:
    """The episodes of one run.

    Args:
        run: its folder.
        flags: what people said of episodes so far, by stage and id.

    Raises:
        InputError: the folder is no run, or none of its stages has an episode.
    """

    def __init__(self, run: Path, flags: dict[tuple[str, str], str]) -> None:
        self.run = run
        self._folder = tempfile.TemporaryDirectory(prefix="quintain-view-")
        self._database = sqlite3.connect(Path(self._folder.name) / "index.sqlite", check_same_thread=False)
        self._database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            f"CREATE TABLE episodes (key INTEGER PRIMARY KEY, {_COLUMNS}, UNIQUE (stage, id));"
        )
        recipe, _ = read_recipe(run)
        for stage in reversed(recipe.stages):  # the latest is shown first
            self._add(stage.name, flags)
            if (run / stage.name / SHEET).is_file():
                self._mark_sampled(stage.name)
        self._database.execute("CREATE INDEX of_task ON episodes (task)")
        if not self.count(Query()):
            raise InputError(f"{run}: no stage has a finished episode yet")

    def close(self) -> None:
        """Removes the database."""
        self._database.close()
        self._folder.cleanup()

    def count(self, query: Query) -> int:
        """How many episodes fit."""
        where, values = query.where()
        found: int = self._database.execute(f"SELECT count(*) FROM episodes WHERE {where}", values).fetchone()[0]
        return found

    def page(self, query: Query, first: int, most: int) -> list[dict[str, Any]]:
        """Rows of a list, the latest stage first."""
        where, values = query.where()
        names = ("key", "stage", "id", "task", "prompt", "result", "outcome", "template", "turns", "flag")
        wanted = f"SELECT {', '.join(names)} FROM episodes WHERE {where} ORDER BY key LIMIT ? OFFSET ?"
        rows = self._database.execute(wanted, [*values, most, first])
        return [dict(zip(names, row, strict=True)) for row in rows]

    def facets(self, query: Query) -> dict[str, dict[str, int]]:
        """For each facet its values, with the number of episodes that the other conditions leave."""
        found = {}
        for name in FACETS:
            where, values = query.where(without=name)
            rows = self._database.execute(
                f"SELECT {name}, count(*) FROM episodes WHERE {where} GROUP BY {name} ORDER BY {name}", values
            )
            found[name] = dict(rows.fetchall())
        return found

    def spot_checks(self) -> list[dict[str, Any]]:
        """For each evaluation, the latest first: its name, how many episodes its sheet holds, how many are judged."""
        rows = self._database.execute(
            "SELECT stage, count(*), sum(flag <> '') FROM episodes WHERE spot_check <> '' "
            "GROUP BY stage ORDER BY min(key)"
        )
        return [dict(zip(("stage", "episodes", "reviewed"), row, strict=True)) for row in rows]

    def episode(self, key: int) -> tuple[str, Episode]:
        """The name of its stage, and the episode as its journal has it.

        Raises:
            InputError: there is none of that key.
        """
        row = self._database.execute("SELECT stage, id, start, stop FROM episodes WHERE key = ?", [key]).fetchone()
        if row is None:
            raise InputError(f"no episode has the key {key}")
        stage, identity, start, stop = row
        path = self.run / stage / JOURNAL
        with path.open("rb") as file:
            file.seek(start)
            records = [orjson.loads(line) for line in file.read(stop - start).splitlines()]
        mine = ((number, record) for number, record in enumerate(records) if record["episode"] == identity)
        return stage, next(episodes_of(mine, path, {})).episode()

    def set_flag(self, key: int, flag: str) -> None:
        """Shows another flag from now on."""
        self._database.execute("UPDATE episodes SET flag = ? WHERE key = ?", [flag, key])

    def _add(self, stage: str, flags: dict[tuple[str, str], str]) -> None:
        path = self.run / stage / JOURNAL
        if not path.is_file():
            return
        ends = _line_ends(path)
        with progress(f"index {stage}", total=None, unit="episodes") as advance:
            rows = []
            for recorded in read_episodes(path):
                start = ends[recorded.story.line - 2] if recorded.story.line > 1 else 0
                flag = flags.get((stage, recorded.story.id), "")
                rows.append(_row(stage, recorded, start, ends[recorded.line - 1], flag))
                advance()
                if len(rows) == 1_000:
                    self._insert(rows)
            self._insert(rows)

    def _mark_sampled(self, stage: str) -> None:
        """Marks the episodes of an evaluation's sheet."""
        results = self._database.execute("SELECT id, result FROM episodes WHERE stage = ?", [stage])
        chosen = sampled({name: result == "success" for name, result in results}, evaluation_title(stage))
        self._database.executemany(
            "UPDATE episodes SET spot_check = 'sheet' WHERE stage = ? AND id = ?", [(stage, name) for name in chosen]
        )
        self._database.commit()

    def _insert(self, rows: list[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(_COLUMNS.split(", ")))
        self._database.executemany(f"INSERT OR REPLACE INTO episodes ({_COLUMNS}) VALUES ({marks})", rows)
        self._database.commit()
        rows.clear()


def _line_ends(path: Path) -> list[int]:
    """Where each line of a file ends."""
    ends, place = [], 0
    with path.open("rb") as file:
        for line in file:
            place += len(line)
            ends.append(place)
    return ends


def _row(stage: str, recorded: Recorded, start: int, stop: int, flag: str) -> tuple[Any, ...]:
    one = recorded.episode()
    result = ("success" if one.success else "failure") if one.scored else "no score"
    outcome = str(one.outcome) if one.scored else "infra_error"
    prompt = one.messages[-1].text[:200]
    text = "\n".join((one.id, *_texts(one))).casefold()
    return (
        stage,
        one.id,
        one.task_id,
        prompt,
        result,
        outcome,
        one.template,
        len(one.turns),
        start,
        stop,
        text,
        flag,
        "",
    )


def _texts(episode: Episode) -> Iterator[str]:
    """Everything that was said in an episode."""
    yield from (one.text for one in episode.messages)
    yield from (one.text for one in episode.user_messages.values())
    for turn in episode.turns:
        action = turn.action
        yield from filter(None, (action.thought, action.answer, action.summary, action.text))
        for call in action.calls:
            yield f"{call.tool} {orjson.dumps(call.arguments, option=orjson.OPT_NON_STR_KEYS).decode()}"
        yield from (one.content for one in turn.observations)
