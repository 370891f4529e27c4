"""Each worker writes a journal of its own; here they are followed while they grow, and gathered into the stage's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import orjson

from quintain.harness.journal import Journal, Story, read_journal, read_snapshot
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.reading import Unfinished, episodes_of

WORKERS = "workers"
"""Folder beside a journal, with a journal for every worker that plays for it."""


class Shard:
    """Reads a journal while another process writes it; whatever that process wrote before it was killed is found.

    Args:
        folder: of the journal; it may not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read = 0
        self._open: dict[str, list[dict[str, Any]]] = {}

    def finished(self) -> dict[str, Story]:
        """Episodes that have ended since the last call, by id.

        Raises:
            InputError: a record is damaged.
        """
        ended: dict[str, Story] = {}
        for record in self._new_records():
            identity = record["episode"]
            if record["kind"] == "start":
                self._open[identity] = []
            self._open[identity].append(record)
            if record["kind"] == "end":
                ended[identity] = self._story(self._open.pop(identity))
        return ended

    def unfinished(self) -> dict[str, Story]:
        """Episodes without an end as of the last call of `finished`, by id."""
        return {identity: self._story(records) for identity, records in self._open.items()}

    def _new_records(self) -> list[dict[str, Any]]:
        path = self.folder / "journal.jsonl"
        if not path.is_file():
            return []
        with path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        try:
            return [orjson.loads(line) for line in whole.splitlines()]
        except orjson.JSONDecodeError as error:
            raise InputError(f"{path}: damaged before byte {self._read}: {error}") from None

    def _story(self, records: list[dict[str, Any]]) -> Story:
        path = self.folder / "snapshots.pack"
        pack = os.open(path, os.O_RDONLY)
        try:
            references = (record.get("snapshot") for record in records)
            states = [reference and read_snapshot(pack, reference, path) for reference in references]
        finally:
            os.close(pack)
        return list(zip(records, states, strict=True))


def episode_of(story: Story) -> Episode:
    """The episode of a story that has an end."""
    records = ((line, dict(record)) for line, (record, _) in enumerate(story, 1))
    return next(episodes_of(records, Path("story"), {})).episode()


def unfinished_of(records: list[dict[str, Any]]) -> Unfinished:
    """What is needed to go on with an episode, from its records."""
    live: dict[str, Unfinished] = {}
    list(episodes_of(enumerate(records, 1), Path("story"), live))
    return live[records[0]["episode"]]


def gather(folder: Path) -> None:
    """Takes what workers left beside a journal into it, each episode once, an unfinished one as far as anybody got.

    Args:
        folder: of the journal.
    """
    shards = [Shard(path) for path in sorted((folder / WORKERS).glob("*"))]
    if not shards:
        return
    journal = Journal(folder)
    finished, unfinished = read_journal(folder)
    done = {episode.id for episode in finished}
    turns = {one.id: len(one.turns) for one in unfinished}
    try:
        for shard in shards:
            for identity, story in shard.finished().items():
                if identity not in done:
                    journal.take(story)
                    done.add(identity)
        for identity, story in (one for shard in shards for one in shard.unfinished().items()):
            if identity not in done and turns_of(story) > turns.get(identity, -1):
                journal.take(story)
                turns[identity] = turns_of(story)
        journal.sync()
    finally:
        journal.close()
    discard(folder)


def discard(folder: Path) -> None:
    """Removes the workers' journals beside a journal; whoever is killed meanwhile leaves no half of one."""
    gone = folder / f"{WORKERS}.gone"
    shutil.rmtree(gone, ignore_errors=True)
    (folder / WORKERS).rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def turns_of(story: Story) -> int:
    """Turns that are on record."""
    return sum(record["kind"] == "turn" for record, _ in story)
