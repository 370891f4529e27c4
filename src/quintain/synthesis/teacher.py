"""What a teacher is: it is asked one thing at a time and replies with JSON of a known shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Protocol, runtime_checkable

from quintain.endpoint.structured import Reply, Shape, filled
from quintain.interface.errors import InputError

LANGUAGES = {"en": "English", "zh": "Chinese (simplified)"}
"""Names of the languages, as prompts spell them."""


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to ask.

    Attributes:
        kind: name of its prompt file, `plan` for `prompts/plan.md`.
        language: the reply is to be written in.
        fields: what the prompt shows, by placeholder. Texts stand as they are, lists as bullets, the rest as JSON.
        shape: of the reply.
        hints: what only the offline teacher reads; never part of a prompt.
        variant: tells requests apart that are otherwise equal; every one is asked once.
    """

    kind: str
    language: str
    fields: Mapping[str, Any]
    shape: type[Shape]
    hints: Mapping[str, Any] = field(default_factory=dict)
    variant: int = 0


NO_ANSWER = "no answer from the server after all tries"
"""The problem of a reply that never came."""


@runtime_checkable
class Teacher(Protocol):
    """Writes what is learnt from. Two implementations: an endpoint, and one that works without a model."""

    async def ask(self, request: Request) -> Reply:
        """The reply to one request.

        Raises:
            InputError: the teacher can't be reached or refuses to work at all.
        """
        ...


class Prompts:
    """Prompt files: the user's own where they exist, else those that come along.

    Args:
        folder: of the user's own `KIND.md` files; None for none.

    Raises:
        InputError: the folder does not exist, or one of its `.md` files is no prompt or no text in UTF-8.
    """

    def __init__(self, folder: Path | None = None) -> None:
        packaged = resources.files("quintain.synthesis") / "prompts"
        texts = {one.name: one.read_text(encoding="utf-8") for one in packaged.iterdir()}
        for name, text in own_prompts(folder).items():
            if name not in texts:
                raise InputError(f"{folder}: {name} is no prompt; there are {', '.join(sorted(texts))}")
            texts[name] = text
        self._templates = {name.removesuffix(".md"): Template(text) for name, text in texts.items()}

    def render(self, request: Request) -> str:
        """The text to send.

        Raises:
            InputError: the file has a placeholder that its kind of request does not fill, or a stray `$`.
        """
        values = {name: shown(value) for name, value in request.fields.items()}
        values["language"] = LANGUAGES.get(request.language, request.language)
        return filled(self._templates[request.kind], f"{request.kind}.md", values)


def own_prompts(folder: Path | None) -> dict[str, str]:
    """Texts of the `.md` files in a user's folder of prompts, by name; none without a folder.

    Raises:
        InputError: the folder does not exist, or a file can't be read as UTF-8.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise InputError(f"prompts folder not found: {folder}")
    found = {}
    for path in sorted(folder.glob("*.md")):
        try:
            found[path.name] = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, IsADirectoryError) as error:
            raise InputError(f"{path}: a prompt is a text file in UTF-8: {error}") from None
    return found


def shown(value: Any) -> str:
    """A field as the prompt shows it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return "\n".join(f"- {one}" for one in value)
    return json.dumps(value, ensure_ascii=False)
