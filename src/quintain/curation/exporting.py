"""Export: a journal or what curation chose of it, in the formats other programs read, one episode at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quintain.curation.curate import CURATION, curated
from quintain.curation.formats.atif import to_atif
from quintain.curation.formats.chat import write_chat
from quintain.curation.formats.columns import Rejected
from quintain.curation.formats.sharegpt import to_sharegpt
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.lesson import Lesson
from quintain.interface.reading import JOURNAL, read_episodes
from quintain.interface.tools import Toolset

FORMATS = ("messages", "sharegpt", "atif")

ToolsOf = Callable[[Path, str], Toolset]
"""Finds the toolset of an episode from the folder of its journal and the digest."""


@dataclass(slots=True)
class Exported:
    """What became of the episodes or lessons of an export.

    Attributes:
        records: written.
        rejected: left out, by reason.
    """

    records: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """One line for a person."""
        out = ", ".join(f"{count} {reason}" for reason, count in self.rejected.most_common())
        return f"{self.records} records written; left out: {out or 'none'}"


def export(folder: Path, form: str, out: Path, tools_of: ToolsOf) -> Exported:
    """Writes the episodes of a stage, or the lessons of a curated folder.

    Args:
        folder: of a rollout, an import or a curation.
        form: one of `FORMATS`. `messages` and `sharegpt` make one file of JSON Lines, `atif` a folder of trajectories.
        out: the file or folder; it must not be there yet.
        tools_of: finds the tools to describe.

    Raises:
        InputError: `out` is there, or the folder holds no episodes.
    """
    if out.exists():
        raise InputError(f"{out} is there already; give another --out")
    counts = Exported()
    write = _into_folder if form == "atif" else _into_file
    write(out, _written(folder, form, tools_of, counts))
    if not counts.records:
        raise InputError(f"{folder}: nothing to export ({counts.line()})")
    return counts


def _written(folder: Path, form: str, tools_of: ToolsOf, counts: Exported) -> Iterator[str]:
    for home, episode, lesson in _chosen(folder):
        try:
            record = _record(episode, tools_of(home, episode.digests.toolset), lesson, form)
            text = json.dumps(record, ensure_ascii=False, allow_nan=False)
            text.encode()
        except Rejected as rejected:
            counts.rejected[rejected.reason] += 1
            continue
        except ValueError:  # a number or a character that JSON has no form for
            counts.rejected["no_json"] += 1
            continue
        counts.records += 1
        yield text


def _chosen(folder: Path) -> Iterator[tuple[Path, Episode, Lesson | None]]:
    if (folder / CURATION).is_file():
        yield from ((home, episode, lesson) for home, episode, lessons in curated(folder) for lesson in lessons)
        return
    yield from ((folder, recorded.episode(), None) for recorded in read_episodes(folder / JOURNAL))


def _record(episode: Episode, toolset: Toolset, lesson: Lesson | None, form: str) -> dict[str, Any]:
    chat = write_chat(episode, toolset, lesson)
    if form == "sharegpt":
        return to_sharegpt(chat)
    return to_atif(chat, episode, lesson.first if lesson else 0) if form == "atif" else chat


def _into_file(out: Path, texts: Iterator[str]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(out.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in texts)
    partial.rename(out)


def _into_folder(out: Path, texts: Iterator[str]) -> None:
    out.mkdir(parents=True)
    for number, text in enumerate(texts, start=1):
        (out / f"trajectory-{number:06}.json").write_text(text + "\n", encoding="utf-8")
