"""What a pool is: tasks, and a manifest that says where they come from without saying what they are."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task

CANARY = "quintain-canary-"
"""Canaries begin so: a string that stands in one pool and nowhere else."""
CANARY_DIGITS = 32
"""Hexadecimal digits after that."""
_SPELLED = re.compile(
    r"[\W_]{0,9}".join(CANARY.strip("-").split("-")) + rf"[\W_]{{0,9}}((?:[0-9a-f][\W_]{{0,9}}){{{CANARY_DIGITS}}})"
)
CANARY_TAG = "canary:"
"""Tag of every task of a pool with a canary; episodes carry the tags of their task, so copies are known as well."""


class Manifest(BaseModel):
    """What is known of a pool without opening it.

    Attributes:
        name: of the pool.
        world: of its tasks.
        tasks: how many.
        digest: of all tasks, tags included.
        canary: its canary; empty for a pool that is not sealed.
        prompts: keyed hash of every prompt (`prompt_hash`): recognises a task without showing it.
        source: how it was made: split, seed, languages, templates, or the file.
        generator: version of the package that made it.
        toolset: digest of the tools it was made for.
        data: digest of the world's data.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    world: str
    tasks: int
    digest: str
    canary: str = ""
    prompts: frozenset[str] = frozenset()
    source: dict[str, Any] = {}
    generator: str = ""
    toolset: str = ""
    data: str = ""

    def to_json(self) -> dict[str, Any]:
        """A JSON object; the hashes in an order of their own, so that they do not tell the order of the tasks."""
        return self.model_dump(mode="json") | {"prompts": sorted(self.prompts)}

    def owns(self, text: str) -> bool:
        """True if a text is the prompt of one of its tasks, see `plain`."""
        return prompt_hash(self.canary, text) in self.prompts


def tasks_digest(tasks: Sequence[Task]) -> str:
    """Digest of a pool's tasks, in their order."""
    return digest([task.to_json() for task in tasks])


def prompt_hash(canary: str, prompt: str) -> str:
    """Hash of a prompt, keyed by the pool's canary so that those of two pools can't be compared."""
    key = hashlib.blake2b(canary.encode()).digest()
    return hashlib.blake2b(plain(prompt).encode("utf-8", "replace"), key=key, digest_size=16).hexdigest()


def canaries(text: str) -> list[str]:
    """Canaries in a text, of whichever pool: also in other case, wrapped, or with other marks between the words."""
    lowered = text.lower()
    if CANARY.partition("-")[0] not in lowered:  # nearly every text of a corpus
        return []
    return [CANARY + re.sub(r"[\W_]", "", found[1]) for found in _SPELLED.finditer(lowered)]


def plain(text: str) -> str:
    """A text but for case, spacing and the ways Unicode has to write one character."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def check_pool(tasks: Sequence[Task], where: str) -> None:
    """Refuses what can't be measured.

    Raises:
        InputError: the pool is empty, an id occurs twice, or a task has nothing to verify it by.
    """
    if not tasks:
        raise InputError(f"{where}: the pool has no tasks")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise InputError(f"{where}: two tasks have the id {task.id!r}; ids must differ")
        if task.answer is None and not task.setup:
            raise InputError(f"{where}: task {task.id!r} has neither answer nor setup; nothing could be verified")
        seen.add(task.id)


def read_manifest(path: Path) -> Manifest:
    """Reads the manifest a run keeps beside a pool.

    Raises:
        InputError: it is missing or damaged.
    """
    if not path.is_file():
        raise InputError(f"{path}: the pool's manifest is missing; run the recipe again")
    return manifest_from_json(path.read_bytes(), str(path))


def manifest_from_json(data: bytes, where: str) -> Manifest:
    """Checks a manifest.

    Raises:
        InputError: it is no manifest.
    """
    try:
        return Manifest.model_validate(json.loads(data))
    except (ValueError, ValidationError) as error:
        raise InputError(f"{where}: damaged manifest ({str(error).splitlines()[0]})") from None
