"""Writes a small project of the user's own: a world, tasks, a recipe and a page that says what to do with them."""

from __future__ import annotations

import json
import keyword
import random
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.tasks import Task, save_tasks

MEASURED = 10
"""Tasks to measure by."""
LEARNT = 200
"""Most tasks to learn from."""

_FILES = Path(__file__).parent / "files"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Draft:
    """What differs between projects.

    Attributes:
        kind: which world file; `files/KIND_world.py.txt`.
        tasks: in the order to be chosen from.
        about: what the project is, one sentence.
        words: what the world file's other placeholders stand for.
        options: the recipe's `[world.options]`.
        files: further files by name.
        by_cluster: keep whole clusters on one side of training and measuring.
        recipe: what the recipe's placeholders stand for, where not the default.
        improve: what a user would change first.
    """

    kind: str
    tasks: list[Task]
    about: str
    words: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    by_cluster: bool = False
    recipe: Mapping[str, Any] = field(default_factory=dict)
    improve: str = ""


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
        settings = {"concurrency": 8, "dialect": "hermes-compact", "turns": 6, "call_seconds": 10, **draft.recipe}
        recipe = _filled("recipe.toml", words | settings | {"options": _options(draft.options)})
        (made / "recipe.toml").write_text(recipe, encoding="utf-8")
        said = {"about": draft.about, "arguments": arguments, "next": draft.improve}
        counts = {"trained": len(learnt), "evaluated": len(measured)}
        (made / "README.md").write_text(_filled("README.md", words | said | counts), encoding="utf-8")
        for name, text in draft.files.items():
            (made / name).write_text(text, encoding="utf-8")
        made.rename(path)
    lines = [
        f"{path}: {len(measured)} tasks to measure by, {len(learnt)} to learn from",
        f"next: cd {path}, then `quintain doctor recipe.toml` and `quintain run recipe.toml`; README.md says more",
    ]
    return {"project": str(path), **counts, "lines": lines}


def split(draft: Draft) -> tuple[list[Task], list[Task]]:
    """Tasks to learn from, and tasks to measure by.

    Where clusters count and there are enough, no measured task shares a document with one that is learnt from.
    """
    tasks = list(draft.tasks)
    random.Random(len(tasks)).shuffle(tasks)
    wanted = min(MEASURED, max(1, len(tasks) // 3))
    if draft.by_cluster:
        learnt, measured = _apart(tasks, wanted)
        if learnt and len(measured) == wanted:
            return learnt[:LEARNT], measured
    return tasks[wanted:][:LEARNT], tasks[:wanted]


def _apart(tasks: list[Task], wanted: int) -> tuple[list[Task], list[Task]]:
    """Contents are set apart one by one, at most half of them, until `wanted` tasks are about nothing else."""
    contents = list(dict.fromkeys(one for task in tasks for one in sorted(_contents(task))))
    kept: set[str] = set()
    measured: list[Task] = []
    for one in contents[: len(contents) // 2]:
        kept.add(one)
        measured = [task for task in tasks if _contents(task) <= kept]
        if len(measured) >= wanted:
            break
    return [task for task in tasks if not _contents(task) & kept], measured[:wanted]


def _contents(task: Task) -> set[str]:
    return {task.cluster, *task.setup.get("documents", ())}


def _filled(name: str, words: Mapping[str, Any]) -> str:
    return (_FILES / name).read_text(encoding="utf-8").format(**words)


def _options(options: Mapping[str, Any]) -> str:
    if not options:
        return ""
    # texts, numbers, true, false and lists are spelled alike in JSON and TOML
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in options.items()]
    return "\n".join(["\n[world.options]", *lines, ""])
