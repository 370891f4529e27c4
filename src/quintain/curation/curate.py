"""Curation: many journals in, one list of lessons out, in a stream.

Two passes. The first reads every episode once: checks, filters, duplicates; the lessons of the fit ones go to a file
on disk and a few numbers of each to memory. Then the mix is chosen from the numbers, and the second pass copies the
lessons of the chosen ones. What is held in memory of an episode is small and of fixed size, however long it is.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import orjson

from quintain.curation.checks import Rejection, checked, unfit
from quintain.curation.config import CurationConfig
from quintain.curation.duplicates import Duplicates
from quintain.curation.lessons import lessons_of
from quintain.curation.mix import KEPT, Candidates, family_of, language_of
from quintain.curation.review import Judgement, said_of
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.failures import recovered
from quintain.interface.lesson import Lesson, lesson_from_json
from quintain.interface.reading import JOURNAL, Recorded, read_episodes

LESSONS = "lessons.jsonl"
REJECTED = "rejected.jsonl"
CURATION = "curation.json"
"""What was kept, what was not and why, and where the journals lie."""


@dataclass(slots=True)
class Counts:
    """What became of the episodes.

    Attributes:
        episodes: read.
        kept: in the mix.
        failures: of those kept.
        examples: windows, one example each.
        learnt_turns: turns that carry loss.
        rejected: left out, by reason.
        families: kept, by world and template.
        languages: kept, by language.
    """

    episodes: int = 0
    kept: int = 0
    failures: int = 0
    examples: int = 0
    learnt_turns: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        numbers = {name: getattr(self, name) for name in ("episodes", "kept", "failures", "examples", "learnt_turns")}
        return numbers | {name: dict(getattr(self, name)) for name in ("rejected", "families", "languages")}

    def line(self) -> str:
        """One line for a person."""
        out = ", ".join(f"{count} {reason}" for reason, count in self.rejected.most_common())
        share = self.failures / self.kept if self.kept else 0.0
        return (
            f"{self.kept} of {self.episodes} episodes kept, {share:.0%} of them failures, {self.examples} examples; "
            f"left out: {out or 'none'}"
        )


def curate(
    sources: Mapping[str, Path],
    config: CurationConfig,
    out: Path,
    on_episode: Callable[[], None] = lambda: None,
) -> Counts:
    """Chooses what is learnt from the journals of `sources` and writes it into the folder `out`.

    `lessons.jsonl` holds a lesson a line, in the order of the sources; `rejected.jsonl` every episode left out, with
    source, line and reason; `curation.json` the settings, the counts and where the journals are.

    Args:
        sources: folders with a `journal/`, by name.
        config: settings.
        out: made if missing; an earlier result in it is replaced.
        on_episode: called for every episode read.

    Raises:
        InputError: a journal is missing or damaged, a judgement is wrong, or nothing is left.
    """
    out.mkdir(parents=True, exist_ok=True)
    counts, candidates = Counts(), Candidates(config.seed)
    fit = out / "fit.jsonl.partial"
    said = {name: said_of(folder) for name, folder in sources.items()}
    with ExitStack() as stack:
        rejected = stack.enter_context((out / REJECTED).open("wb"))
        file = stack.enter_context(fit.open("wb"))
        for source, line, found in _fit_episodes(sources, said, config):
            on_episode()
            counts.episodes += 1
            if isinstance(found, Rejection):
                _reject(rejected, counts, source, found)
                continue
            episode, lessons = found
            candidates.add(episode, chosen=episode.id in said[source])
            file.write(orjson.dumps(_fit_record(line, episode, lessons)) + b"\n")
        file.flush()
        _write_lessons(fit, out / LESSONS, candidates.choose(config), rejected, counts)
    fit.unlink()
    _write_summary(out, sources, config, counts)
    if not counts.kept:
        raise InputError(f"{out}: no episode is left to learn from ({counts.line()})")
    return counts


def _fit_episodes(
    sources: Mapping[str, Path], said: Mapping[str, Mapping[str, Judgement]], config: CurationConfig
) -> Iterator[tuple[str, int, Rejection | tuple[Episode, list[Lesson]]]]:
    """Every episode with its lessons, or why it is left out."""
    duplicates = Duplicates(config.near_duplicate)
    for source, folder in sources.items():
        ids: set[str] = set()
        for recorded in read_episodes(folder / JOURNAL):
            if recorded.story.id in ids:  # lessons name their episode by its id
                told = f"an episode before it has the id {recorded.story.id!r}"
                yield source, recorded.story.line, Rejection("duplicate_id", told, recorded.line)
                continue
            ids.add(recorded.story.id)
            judgement = said[source].get(recorded.story.id)
            yield source, recorded.story.line, _judge(recorded, source, judgement, config, duplicates)


def _judge(
    recorded: Recorded, source: str, said: Judgement | None, config: CurationConfig, duplicates: Duplicates
) -> Rejection | tuple[Episode, list[Lesson]]:
    episode = checked(recorded)
    if isinstance(episode, Rejection):
        return episode
    if said is not None and said.flag == "flag":
        return Rejection("flagged", said.remark or "by a person, without a remark", recorded.line)
    found = unfit(episode, config.max_repeats)
    if found is not None:
        return Rejection(*found, recorded.line)
    lessons = lessons_of(episode, source, config.mask, config.window_turns, config.most_calls)
    if not lessons:
        return Rejection("nothing_learnt", f"mask {config.mask!r} leaves no turn with loss", recorded.line)
    kind = duplicates.kind(episode)
    if kind:
        return Rejection(kind, "of an episode before it", recorded.line)
    return episode, lessons


def _fit_record(line: int, episode: Episode, lessons: list[Lesson]) -> dict[str, Any]:
    return {
        "line": line,
        "family": family_of(episode),
        "language": language_of(episode),
        "success": recovered(episode),
        "lessons": lessons,
    }


def _write_lessons(fit: Path, path: Path, reasons: list[str], rejected: IO[bytes], counts: Counts) -> None:
    with fit.open("rb") as file, path.open("wb") as out:
        for line, reason in zip(file, reasons, strict=True):
            record = orjson.loads(line)
            lessons = record["lessons"]
            if reason != KEPT:
                _reject(
                    rejected, counts, lessons[0]["source"], Rejection(reason, lessons[0]["episode"], record["line"])
                )
                continue
            counts.kept += 1
            counts.failures += not record["success"]
            counts.families[record["family"]] += 1
            counts.languages[record["language"]] += 1
            for lesson in lessons:
                counts.examples += 1
                counts.learnt_turns += len(lesson["learnt"])
                out.write(orjson.dumps(lesson) + b"\n")


def _reject(file: IO[bytes], counts: Counts, source: str, rejection: Rejection) -> None:
    counts.rejected[rejection.reason] += 1
    file.write(orjson.dumps({"source": source, **asdict(rejection)}) + b"\n")


def _write_summary(out: Path, sources: Mapping[str, Path], config: CurationConfig, counts: Counts) -> None:
    where = {name: os.path.relpath(folder, out) for name, folder in sources.items()}
    summary = {"sources": where, "config": config.model_dump(mode="json"), "counts": counts.to_json()}
    (out / CURATION).write_text(json.dumps(summary, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def curated(folder: Path) -> Iterator[tuple[Path, Episode, list[Lesson]]]:
    """What a curated folder holds, an episode at a time: the folder of its journal, the episode and its lessons.

    Raises:
        InputError: the folder holds no curation, or a journal it names is gone.
    """
    path = folder / CURATION
    if not path.is_file():
        raise InputError(f"{folder} holds no curated data: it has no {CURATION}")
    sources = json.loads(path.read_text(encoding="utf-8"))["sources"]
    with (folder / LESSONS).open("rb") as file:
        lessons = (lesson_from_json(orjson.loads(line)) for line in file)
        groups = groupby(lessons, key=lambda lesson: (lesson.source, lesson.episode))
        wanted, chosen = next(groups, (None, iter(())))
        for name, where in sources.items():
            home = folder / where
            # lessons lie in the order of the journals, so both are read side by side
            for recorded in read_episodes(home / JOURNAL):
                if (name, recorded.story.id) == wanted:
                    yield home, recorded.episode(), list(chosen)
                    wanted, chosen = next(groups, (None, iter(())))
    if wanted is not None:
        raise InputError(f"{folder}: episode {wanted[1]!r} of {wanted[0]!r} is gone from its journal; curate again")
