"""Reading a journal's records: what the harness resumes from and what everybody else reads episodes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.records import SCHEMA, episode_from_json

JOURNAL = Path("journal", "journal.jsonl")
"""The journal's records in the folder of a stage or of an import."""

_RECORD = {"v", "kind", "episode", "index"}


@dataclass(slots=True)
class Unfinished:
    """An episode without an end: what is needed to go on with it.

    Attributes:
        id: the episode's id.
        start: its start record.
        turns: its turn records, in order.
        line: line of its start record, from 1.
        turn_lines: lines of its turn records.
    """

    id: str
    start: dict[str, Any]
    turns: list[dict[str, Any]] = field(default_factory=list)
    line: int = 0
    turn_lines: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A finished episode as its journal holds it, nothing of it checked yet.

    Attributes:
        story: its start and turn records.
        end: its end record.
        line: line of its end record, from 1.
    """

    story: Unfinished
    end: dict[str, Any]
    line: int

    def episode(self) -> Episode:
        """The episode.

        Raises:
            ValueError: a turn's observations are not those of its calls, or a record holds a wrong value.
            KeyError: a record lacks a key.
        """
        return episode_from_json(self.story.id, self.story.start, self.story.turns, self.end)


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Every record of a journal file, in order. A torn tail is passed over.

    Raises:
        InputError: the file is missing, damaged in the middle, or of a newer schema.
    """
    return (record for _, record in _numbered(path))


def read_episodes(path: Path, live: dict[str, Unfinished] | None = None) -> Iterator[Recorded]:
    """Finished episodes in the order they ended, one at a time: only those under way are held in memory.

    Args:
        path: a journal file.
        live: filled with the episodes without an end so far.

    Raises:
        InputError: as `read_records`, or the records before one of a turn, a user or an end are missing.
    """
    yield from episodes_of(_numbered(path), path, {} if live is None else live)


def episodes_of(
    records: Iterable[tuple[int, dict[str, Any]]], path: Path, live: dict[str, Unfinished]
) -> Iterator[Recorded]:
    """The finished episodes among records with the numbers of their lines, as `read_episodes` finds them."""
    for line, record in records:
        identity, kind = record["episode"], record["kind"]
        if kind == "start":
            live[identity] = Unfinished(identity, record, line=line)
            continue
        if identity not in live or (kind == "user" and not live[identity].turns):
            raise InputError(f"{path}:{line}: damaged record: nothing of episode {identity!r} stands before it")
        story = live[identity]
        if kind == "turn":
            story.turns.append(record)
            story.turn_lines.append(line)
        elif kind == "user":
            story.turns[-1] |= {"user": record["user"], "snapshot": record["snapshot"]}
        else:
            yield Recorded(live.pop(identity), record, line)


def _numbered(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"journal not found: {path}")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise InputError(f"{path}:{number}: damaged record: {error}") from None
            if not isinstance(record, dict) or not record.keys() >= _RECORD:
                raise InputError(f"{path}:{number}: damaged record: it needs {', '.join(sorted(_RECORD))}")
            if record["v"] > SCHEMA:
                raise InputError(f"{path}:{number}: schema {record['v']} is newer than {SCHEMA}; update quintain")
            yield number, record
