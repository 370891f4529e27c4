"""The journal: append-only, one record a turn, written before the next turn starts.

A record is handed to the kernel in one write, so it survives SIGKILL; the end of an episode is fsynced,
so it survives power loss. Records of many episodes interleave. World snapshots go into a pack file beside
it, written before the record that refers to them. A torn tail (power loss, full disk) is cut off on open
and kept in a file of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import orjson

from quintain.interface.episode import Budget, Episode, Usage
from quintain.interface.errors import InfraError, InputError
from quintain.interface.messages import Message, Turn
from quintain.interface.reading import Unfinished, read_episodes, read_records
from quintain.interface.records import SCHEMA, end_to_json, message_to_json, start_to_json, turn_to_json
from quintain.interface.words import encodable

__all__ = ["Journal", "JournalError", "SnapshotRef", "Unfinished", "read_journal", "read_records", "repair_tail"]

Story = Sequence[tuple[dict[str, Any], bytes | None]]
"""An episode's records in order, each with the world's state it refers to."""

KNOWN = 1024
"""How many of the latest snapshots are known again, so that a state that did not change is stored once."""


class JournalError(InfraError):
    """The journal can't be written (a full disk): the run stops, everything journaled so far is kept."""


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """Where a snapshot lies in the pack file."""

    offset: int
    length: int
    sha256: str


class Journal:
    """One folder: `journal.jsonl` and `snapshots.pack`.

    Raises:
        InputError: the folder belongs to a newer version, or a record in the middle is damaged.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "journal.jsonl"
        repair_tail(self.path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._records = os.open(self.path, flags, 0o644)
        self._pack = os.open(folder / "snapshots.pack", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._pack_end = os.fstat(self._pack).st_size
        self._known: dict[bytes, SnapshotRef] = {}
        self._next_sync: asyncio.Future[None] | None = None
        self._running_sync: asyncio.Future[None] | None = None

    def start(self, episode: Episode, budget: Budget, state: bytes | None) -> None:
        """Records an episode before its first turn, with the world's state after `reset`."""
        record = start_to_json(episode, budget) | {"snapshot": self._keep(state)}
        self._write("start", episode.id, 0, record)

    def turn(
        self, episode: str, index: int, turn: Turn, usage: Usage, milestones: tuple[str, ...], state: bytes | None
    ) -> None:
        """Records a turn and the state after it, before the next one starts."""
        record = {
            "turn": turn_to_json(turn),
            "usage": usage,
            "milestones": milestones,
            "snapshot": self._keep(state),
        }
        self._write("turn", episode, index, record)

    def user(self, episode: str, index: int, said: Message, state: bytes | None) -> None:
        """Records what the user said after the answer of turn `index`, and the state after it."""
        self._write("user", episode, index, {"user": message_to_json(said), "snapshot": self._keep(state)})

    async def copy(self, episode: Episode, budget: Budget) -> None:
        """Records a finished episode of another journal, without its snapshots."""
        self.start(episode, budget, None)
        for index, turn in enumerate(episode.turns):
            self.turn(episode.id, index, turn, episode.usage, episode.milestones, None)
            if index + 1 in episode.user_messages:
                self.user(episode.id, index, episode.user_messages[index + 1], None)
        await self.end(episode)

    def take(self, story: Story) -> list[dict[str, Any]]:
        """Records an episode of another journal, finished or not, as it stands there; returns the records as they stand
        here. `sync` puts them on disk."""
        kept = ({"snapshot": self._keep(state)} if "snapshot" in record else {} for record, state in story)
        lines = [_encode(record | reference) for (record, _), reference in zip(story, kept, strict=True)]
        for line in lines:
            _append(self._records, line + b"\n", self.path)
        return [orjson.loads(line) for line in lines]

    def sync(self) -> None:
        """Returns once everything recorded so far is on disk."""
        _sync_files(self._pack, self._records)

    async def end(self, episode: Episode) -> None:
        """Records the end; returns once it is on disk. Waiting episodes share one fsync."""
        self._write("end", episode.id, len(episode.turns), end_to_json(episode))
        await self._fsync()

    def load_state(self, reference: dict[str, Any] | None) -> bytes | None:
        """The world's state a record refers to; None if it kept none.

        Raises:
            InputError: the pack file is damaged.
        """
        if reference is None:
            return None
        return read_snapshot(self._pack, reference, self.folder / "snapshots.pack")

    def state_at(self, episode: str, turns: int) -> bytes | None:
        """The world's state after `turns` turns of an episode, for a branch; None if the world keeps none.

        Raises:
            InputError: the journal has no such point.
        """
        return self.states_at([(episode, turns)])[episode, turns]

    def states_at(self, points: Iterable[tuple[str, int]]) -> dict[tuple[str, int], bytes | None]:
        """The same for many points, by episode and turns, reading the journal once.

        Raises:
            InputError: the journal lacks one of them.
        """
        wanted = set(points)
        found: dict[tuple[str, int], dict[str, Any] | None] = {}
        for record in read_records(self.path):
            point = record["episode"], record["index"] + (record["kind"] != "start")
            if point in wanted and record["kind"] != "end":
                found[point] = record["snapshot"]
        missing = sorted(wanted - found.keys())
        if missing:
            episode, turns = missing[0]
            raise InputError(f"{self.path}: no episode {episode!r} with {turns} turns")
        return {point: self.load_state(reference) for point, reference in found.items()}

    def close(self) -> None:
        """Closes the files. An fsync that a run which failed no longer waits for is dropped."""
        for sync in (self._running_sync, self._next_sync):
            if sync is not None:
                sync.cancel()
        os.close(self._records)
        os.close(self._pack)

    def _write(self, kind: str, episode: str, index: int, record: dict[str, Any]) -> None:
        line = _encode({"v": SCHEMA, "kind": kind, "episode": episode, "index": index, **record}) + b"\n"
        _append(self._records, line, self.path)

    def _keep(self, state: bytes | None) -> SnapshotRef | None:
        if state is None:
            return None
        key = hashlib.sha256(state).digest()
        if key not in self._known:
            packed = zlib.compress(state, 1)
            _append(self._pack, packed, self.folder / "snapshots.pack")
            self._known[key] = SnapshotRef(self._pack_end, len(packed), hashlib.sha256(packed).hexdigest())
            self._pack_end += len(packed)
            if len(self._known) > KNOWN:
                del self._known[next(iter(self._known))]
        return self._known[key]

    async def _fsync(self) -> None:
        """Waits for an fsync that begins after this call; everybody who asks meanwhile shares it."""
        if self._next_sync is None:
            self._next_sync = asyncio.ensure_future(self._sync_after(self._running_sync))
        await asyncio.shield(self._next_sync)

    async def _sync_after(self, running: asyncio.Future[None] | None) -> None:
        if running is not None and not running.done():
            await asyncio.wait([running])
        self._running_sync, self._next_sync = self._next_sync, None
        await asyncio.get_running_loop().run_in_executor(None, _sync_files, self._pack, self._records)


def read_snapshot(pack: int, reference: dict[str, Any], path: Path) -> bytes:
    """A state from an open pack file.

    Raises:
        InputError: the file is damaged.
    """
    packed = os.pread(pack, reference["length"], reference["offset"])
    if hashlib.sha256(packed).hexdigest() != reference["sha256"]:
        raise InputError(f"{path}: damaged at byte {reference['offset']}")
    return zlib.decompress(packed)


def _encode(record: dict[str, Any]) -> bytes:
    """The record as JSON. Lone surrogates (a model can write them as escapes) have no UTF-8 form and are replaced."""
    try:
        return orjson.dumps(record)
    except TypeError:
        return orjson.dumps(_cleaned(record))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _cleaned(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list | tuple) else value


def _sync_files(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.fdatasync(descriptor)


def _append(descriptor: int, data: bytes, path: Path) -> None:
    try:
        written = os.write(descriptor, data)
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}; free space and run the same command again") from error
    if written < len(data):
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
        raise JournalError(
            f"{path}: disk full, {written} of {len(data)} bytes fit; free space and run the same command again"
        )


def repair_tail(path: Path) -> int:
    """Cuts a torn last record off into `<name>.torn`; returns the number of bytes cut."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    tail = data[end:]
    if tail:
        with open(path.with_suffix(path.suffix + ".torn"), "ab") as file:
            file.write(tail + b"\n")
        os.truncate(path, end)
    return len(tail)


def read_journal(folder: Path) -> tuple[list[Episode], list[Unfinished]]:
    """Finished episodes in the order they ended, and those that were interrupted."""
    live: dict[str, Unfinished] = {}
    finished = [one.episode() for one in read_episodes(folder / "journal.jsonl", live)]
    return finished, list(live.values())
