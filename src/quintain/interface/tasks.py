"""Tasks: what an agent is asked to do. One JSON line each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.files import json_lines

_FIELDS = ("id", "world", "prompt", "setup", "answer", "cluster", "template", "tags")


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do in a world.

    Attributes:
        id: unique in its pool.
        world: name of the world it belongs to.
        prompt: what the user says first.
        setup: what the world's `reset` needs; never shown to the agent.
        answer: what the world's `verify` needs; never shown to the agent.
        cluster: tasks with the same cluster share content; statistics resample clusters.
        template: how the task was made.
        tags: free labels; `lang:en`, `lang:zh` and `held_out_template` are read by the report.
    """

    id: str
    world: str
    prompt: str
    setup: dict[str, Any] = field(default_factory=dict)
    answer: Any = None
    cluster: str = ""
    template: str = ""
    tags: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The task as a JSON object, keys in the documented order."""
        return {name: getattr(self, name) for name in _FIELDS} | {"tags": list(self.tags)}


def task_from_json(record: dict[str, Any], where: str) -> Task:
    """Reads one task; `messages` with one user message may stand for `prompt`.

    Args:
        record: the JSON object.
        where: file and line, for the error message.

    Raises:
        InputError: a key is unknown, missing or of the wrong type.
    """
    record = dict(record)
    if "messages" in record and "prompt" not in record:
        record["prompt"] = _prompt_of(record.pop("messages"), where)
    unknown = sorted(set(record) - set(_FIELDS))
    if unknown:
        raise InputError(f"{where}: unknown key {unknown[0]!r}; allowed: {', '.join(_FIELDS)}")
    for key in ("id", "world", "prompt"):
        if not isinstance(record.get(key), str) or not record[key]:
            raise InputError(f"{where}: {key!r} must be a non-empty string, found {record.get(key)!r}")
    if not isinstance(record.get("setup", {}), dict):
        raise InputError(f"{where}: 'setup' must be an object, found {type(record['setup']).__name__}")
    for key in ("cluster", "template"):
        if not isinstance(record.get(key, ""), str):
            raise InputError(f"{where}: {key!r} must be text, found {record[key]!r}")
    tags = record.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InputError(f"{where}: 'tags' must be a list of texts, found {tags!r}")
    record["tags"] = tuple(tags)
    record["cluster"] = record.get("cluster") or record["id"]
    return Task(**record)


def _prompt_of(messages: Any, where: str) -> str:
    if (
        isinstance(messages, list)
        and len(messages) == 1
        and isinstance(messages[0], dict)
        and messages[0].get("role") == "user"
        and isinstance(messages[0].get("content"), str)
    ):
        return str(messages[0]["content"])
    raise InputError(f"{where}: 'messages' must hold exactly one user message with text")


def tag_value(tags: Iterable[str], prefix: str) -> str | None:
    """What follows a prefix in the first tag that has it, as `en` in `lang:en`; None if none has."""
    return next((tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)), None)


def load_tasks(path: Path) -> list[Task]:
    """Reads a JSON Lines file of tasks.

    Raises:
        InputError: the file is missing, a line is not valid, or an id occurs twice.
    """
    if not path.is_file():
        raise InputError(f"task file not found: {path}")
    tasks: list[Task] = []
    seen: dict[str, int] = {}
    for number, record in json_lines(path):
        where = f"{path}:{number}"
        if not isinstance(record, dict):
            raise InputError(f"{where}: a task is a JSON object, found {type(record).__name__}")
        task = task_from_json(record, where)
        if task.id in seen:
            raise InputError(f"{where}: task id {task.id!r} already stands on line {seen[task.id]}")
        seen[task.id] = number
        tasks.append(task)
    return tasks


def save_tasks(path: Path, tasks: Iterable[Task]) -> None:
    """Writes tasks as JSON Lines (UTF-8, one a line)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(task.to_json(), ensure_ascii=False) + "\n" for task in tasks)
    path.write_text("".join(lines), encoding="utf-8")
