"""Writes a small project of the user's own: a world, tasks, a recipe and a page that says what to do with them."""

from __future__ import annotations

import json
import keyword
import math
import random
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quintain.evaluation.intervals import FEW_CLUSTERS, mean_interval
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task, save_tasks

MEASURED = 40
"""Most tasks to measure by: a minute or two for a base model that babbles."""
LEARNT = 200
"""Most tasks to learn from."""
TRAINING_SECONDS = 600
"""Training stops then, even if epochs are left."""
MEASURING_SECONDS = 7
"""What one task costs on 2 cores, played by the base model (about 5) and by the trained one, with starting both."""

_FILES = Path(__file__).parent / "files"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Draft:
    """What differs between projects.

    Attributes:
        kind: which world file; `files/KIND_world.py.txt`.
        tasks: to learn from.
        about: what the project is, one sentence.
        words: what the world file's other placeholders stand for.
        options: the recipe's `[world.options]`.
        files: further files by name.
        held_out: tasks to measure by, whose content no task to learn from has; if none, some of `tasks` are taken.
        content: what the clusters of the tasks to measure by are, after their number.
        recipe: what the recipe's placeholders stand for, where not the default.
        improve: what a user would change first.
        notes: what a person should know of how it was made, a line each.
    """

    kind: str
    tasks: list[Task]
    about: str
    words: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    held_out: Sequence[Task] = ()
    content: str = ""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    improve: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Names:
    """One name in its spellings: of the folder, the world's file and its class."""

    folder: str
    module: str
    world: str

    @classmethod
    def of(cls, name: str) -> Names:
        """Raises InputError if no module can be named so."""
        plain = name.lower().replace("-", "_")
        if not _NAME.fullmatch(name) or keyword.iskeyword(plain):
            raise InputError(f"project name {name!r}: begin with a letter, then letters, digits, - and _")
        return cls(name, f"{plain}_world", "".join(part.capitalize() for part in plain.split("_")))


def free_place(path: Path) -> Names:
    """The names of a project at `path`, where nothing may be lost.

    Raises:
        InputError: the name can't be used, its folder is missing, or something is there already.
    """
    names = Names.of(path.name)
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.absolute().parent}; make it first")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} is there already and not empty; give another name")
    return names


def write_project(path: Path, names: Names, draft: Draft, arguments: str) -> dict[str, Any]:
    """Writes all files beside their place and then moves them there in one step.

    Args:
        path: a folder that is not there or empty.
        names: of `free_place`.
        draft: what it holds.
        arguments: of the command, for the README.

    Returns:
        `project`, the numbers of tasks, and `lines` for a person.
    """
    learnt, measured = split(draft)
    with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=f".{names.folder}-") as aside:
        made = Path(aside) / names.folder
        made.mkdir()
        words = {**vars(names), **draft.words, "name": names.folder}
        (made / f"{names.module}.py").write_text(_filled(f"{draft.kind}_world.py.txt", words), encoding="utf-8")
        save_tasks(made / "train.jsonl", learnt)
        save_tasks(made / "eval.jsonl", measured)
        minutes = math.ceil((TRAINING_SECONDS + MEASURING_SECONDS * len(measured)) / 60)
        counts = {"trained": len(learnt), "evaluated": len(measured), "minutes": minutes}
        words |= counts
        outlook = _outlook(measured, draft.content)
        settings = {"concurrency": 8, "dialect": "hermes-compact", "turns": 6, "call_seconds": 10, **draft.recipe}
        settings |= {"options": _options(draft.options), "seconds": TRAINING_SECONDS}
        (made / "recipe.toml").write_text(_filled("recipe.toml", words | settings), encoding="utf-8")
        said = {"about": draft.about, "arguments": arguments, "next": draft.improve, "outlook": outlook}
        (made / "README.md").write_text(_filled("README.md", words | said), encoding="utf-8")
        for name, text in draft.files.items():
            (made / name).write_text(text, encoding="utf-8")
        made.rename(path)
    about = f" about {len({task.cluster for task in measured})} {draft.content}" if draft.content else ""
    lines = [
        f"{path}: {len(measured)} tasks to measure by{about}, {len(learnt)} to learn from",
        outlook,
        *draft.notes,
        f"next: cd {path}, then `quintain doctor recipe.toml` and `quintain run recipe.toml`, at most about {minutes} "
        "minutes on 2 cores; README.md says more",
    ]
    return {"project": str(path), **counts, "lines": lines}


def split(draft: Draft) -> tuple[list[Task], list[Task]]:
    """Tasks to learn from, and tasks to measure by: those held out, or those of a third of the clusters.

    A single cluster is divided itself.
    """
    tasks = list(draft.tasks)
    random.Random(len(tasks)).shuffle(tasks)
    if draft.held_out:
        return tasks[:LEARNT], _evenly(draft.held_out)
    clusters = list(dict.fromkeys(task.cluster for task in tasks))
    chosen = set(clusters[: max(1, len(clusters) // 3)])
    measured = [task for task in tasks if task.cluster in chosen]
    if len(clusters) == 1:
        measured = measured[: max(1, len(tasks) // 3)]
    return [task for task in tasks if task not in measured][:LEARNT], _evenly(measured)


def _evenly(tasks: Sequence[Task]) -> list[Task]:
    """At most `MEASURED` tasks, equally many of each cluster if that gives half of them: equal clusters tell most."""
    enough = min(MEASURED, len(tasks)) / 2
    seen: Counter[str] = Counter()
    rounds: dict[int, list[Task]] = {}
    for task in tasks:
        rounds.setdefault(seen[task.cluster], []).append(task)
        seen[task.cluster] += 1
    chosen: list[Task] = rounds[0][:MEASURED]
    for number in range(1, len(rounds)):
        unequal = len(rounds[number]) < len(seen)
        if len(chosen) + len(rounds[number]) > MEASURED or (unequal and len(chosen) >= enough):
            break
        chosen += rounds[number]
    return chosen


def _outlook(measured: Sequence[Task], content: str) -> str:
    """What the tasks can show, in one line: the interval of a perfect score, and whether that is too little."""
    clusters = [task.cluster for task in measured]
    best = mean_interval([1.0] * len(clusters), clusters)
    text = f"if every one succeeded, pass@1 would read {best.value:.3f} [{best.low:.3f}, {best.high:.3f}]"
    few = f"; {best.clusters} {content or 'tasks'} tell little: give more, and run init again"
    return text + (few if best.clusters < FEW_CLUSTERS else "")


def _filled(name: str, words: Mapping[str, Any]) -> str:
    return (_FILES / name).read_text(encoding="utf-8").format(**words)


def _options(options: Mapping[str, Any]) -> str:
    if not options:
        return ""
    # texts, numbers, true, false and lists are spelled alike in JSON and TOML
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in options.items()]
    return "\n".join(["\n[world.options]", *lines, ""])
