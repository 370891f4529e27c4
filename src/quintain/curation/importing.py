"""Import: other programs' trajectories become a journal like any other; what can't is listed with its line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import orjson

from quintain.curation.formats.atif import from_atif
from quintain.curation.formats.chat import read_chat
from quintain.curation.formats.columns import Origin, Rejected
from quintain.curation.formats.sharegpt import from_sharegpt
from quintain.interface.episode import Budget, Episode
from quintain.interface.errors import InputError
from quintain.interface.reading import JOURNAL
from quintain.interface.records import episode_records
from quintain.interface.tools import Tool, Toolset

FORMATS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "messages": lambda record: record,
    "sharegpt": from_sharegpt,
    "atif": from_atif,
}
"""What turns a record of each format into one with `messages` and `tools`."""

TOOLSETS = "toolsets.jsonl"
"""The toolsets of an import, by digest."""

REJECTED = "rejected.jsonl"


@dataclass(slots=True)
class Imported:
    """What became of the records of an import.

    Attributes:
        episodes: written into the journal.
        unscored: of those, without a verdict.
        rejected: left out, by reason.
    """

    episodes: int = 0
    unscored: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """One line for a person."""
        out = ", ".join(f"{count} {reason}" for reason, count in self.rejected.most_common())
        verdicts = f", {self.unscored} without a verdict" if self.unscored else ""
        return f"{self.episodes} episodes imported{verdicts}; rejected: {out or 'none'}"


def import_files(
    files: Sequence[Path], form: str, out: Path, *, success: bool | None = None, strict: bool = False
) -> Imported:
    """Reads trajectories and writes them into the folder `out`, as a rollout would have left them.

    Args:
        files: JSON Lines, or JSON files with one record or a list; folders are searched for `*.json`.
        form: one of `FORMATS`.
        out: a new folder: `journal/`, `toolsets.jsonl`, `rejected.jsonl`.
        success: the verdict of records that state none; None leaves them without.
        strict: stop at the first record that can't be read.

    Raises:
        InputError: a file is missing, `out` holds an import, nothing can be read, or `strict` and one record can't.
    """
    journal = out / JOURNAL
    if journal.exists():
        raise InputError(f"{out} holds a journal already; give another --out")
    journal.parent.mkdir(parents=True, exist_ok=True)
    partial = journal.with_suffix(".partial")
    counts, seen, first = Imported(), set[str](), ""
    with ExitStack() as stack:
        records = stack.enter_context(partial.open("wb"))
        toolsets = stack.enter_context((out / TOOLSETS).open("wb"))
        rejected = stack.enter_context((out / REJECTED).open("wb"))
        for place, number, read in _records(files, form, success):
            if isinstance(read, Rejected):
                if strict:
                    raise InputError(f"{place}:{number}: {read}")
                counts.rejected[read.reason] += 1
                first = first or f"; the first: {place}:{number}: {read}"
                told = {"file": str(place), "line": number, "reason": read.reason, "detail": read.detail}
                rejected.write(orjson.dumps(told) + b"\n")
                continue
            lines, episode, toolset = read
            records.writelines(lines)
            _keep_tools(toolsets, toolset, seen)
            counts.episodes += 1
            counts.unscored += not episode.scored
    if not counts.episodes:
        said = f"{counts.line()}{first}" if counts.rejected else f"no record in {', '.join(map(str, files))}"
        raise InputError(f"nothing to import: {said}")
    partial.rename(journal)
    return counts


def _records(
    files: Sequence[Path], form: str, success: bool | None
) -> Iterator[tuple[Path, int, Rejected | tuple[list[bytes], Episode, Toolset]]]:
    """Every record of the files with its place, read or rejected."""
    ids: set[str] = set()
    stems: Counter[str] = Counter()
    for path in files:
        for file in _files(path):
            for number, found in _items(file):
                yield file, number, _read(found, form, Origin(file.stem, number, success, stems[file.stem]), ids)
            stems[file.stem] += 1


def _read(found: Any, form: str, origin: Origin, ids: set[str]) -> Rejected | tuple[list[bytes], Episode, Toolset]:
    """The journal's lines of one record; the one place where a record's faults end."""
    if isinstance(found, Rejected):
        return found
    try:
        if not isinstance(found, dict):
            raise Rejected("record", f"not a JSON object: {found!r:.80}")
        episode, toolset = read_chat(FORMATS[form](found), origin)
        if episode.id in ids:
            raise Rejected("duplicate_id", f"an episode before it has the id {episode.id!r}")
        lines = [orjson.dumps(record) + b"\n" for record in episode_records(episode, Budget())]
    except Rejected as rejected:
        return rejected
    except Exception as error:  # what no check foresaw: wrong types deep inside, a schema that refers to nothing
        return Rejected("record", f"{type(error).__name__}: {error}")
    ids.add(episode.id)
    return lines, episode, toolset


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(path.rglob("*.json"))
        if not found:
            raise InputError(f"{path}: no *.json file in this folder")
        return found
    if not path.is_file():
        raise InputError(f"file not found: {path}")
    return [path]


def _items(file: Path) -> Iterator[tuple[int, Any]]:
    """The records of a file, numbered from 1: by line, or by place in a list."""
    if file.suffix == ".json":
        found = _loads(file.read_bytes())
        if isinstance(found, Rejected):
            found = Rejected("json", f"{found.detail}; the name of a file of JSON Lines ends in .jsonl")
        yield from enumerate(found if isinstance(found, list) else [found], start=1)
        return
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield number, _loads(line)


def _loads(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Rejected("json", f"not valid JSON: {error}")


def _keep_tools(file: IO[bytes], toolset: Toolset, seen: set[str]) -> None:
    if toolset.digest in seen:
        return
    seen.add(toolset.digest)
    file.write(orjson.dumps({"digest": toolset.digest, "tools": [one.spec() for one in toolset]}) + b"\n")


def imported_toolset(folder: Path, digest: str) -> Toolset | None:
    """The toolset an imported episode was made with; None if the folder is no import or lacks it."""
    return _toolsets(folder / TOOLSETS).get(digest)


@lru_cache(maxsize=8)
def _toolsets(path: Path) -> dict[str, Toolset]:
    if not path.is_file():
        return {}
    records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    return {one["digest"]: Toolset([Tool(**spec) for spec in one["tools"]]) for one in records}
