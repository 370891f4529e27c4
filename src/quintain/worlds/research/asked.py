"""Models that the world asks for JSON, each with a prompt in a file: any OpenAI-compatible server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.config import EndpointConfig
from quintain.endpoint.structured import Reply, Shape, Structured, StructuredEndpoint, filled
from quintain.interface.errors import InputError


class AskedConfig(BaseModel):
    """`judge` or `summariser` among the options of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    endpoint: EndpointConfig
    """Where the model is."""
    prompt: Path | None = Field(None, strict=False)
    """A prompt of your own with the role's placeholders; none is the one that comes along."""
    temperature: float = Field(0.0, ge=0)
    max_tokens: int = Field(2048, ge=1)
    """Bound of one reply; models that think need more."""
    structured: Structured = "schema"
    """How JSON is asked for: by a schema, as any object, or by the prompt alone."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a model is asked for.

    Attributes:
        name: of the option; its prompt is `NAME.md`.
        shape: of a reply.
        shown: the prompt's placeholders.
    """

    name: str
    shape: type[Shape]
    shown: tuple[str, ...]

    def check(self, options: Mapping[str, Any]) -> AskedConfig:
        """The options, and a prompt that can be filled.

        Raises:
            InputError: one is wrong, or the prompt file is.
        """
        try:
            config = AskedConfig.model_validate(dict(options))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, (self.name, *first["loc"])))
            example = f'{self.name} = {{ endpoint = {{ model = "...", url = "http://127.0.0.1:8000/v1" }} }}'
            raise InputError(f"research: {place}: {first['msg']}; for example {example}") from None
        self.prompt(config, dict.fromkeys(self.shown, ""))
        return config

    def prompt(self, config: AskedConfig, values: Mapping[str, str]) -> str:
        """The text to send. Values are put in as JSON strings: what they hold can't pretend to be the prompt."""
        quoted = {name: json.dumps(text, ensure_ascii=False) for name, text in values.items()}
        return filled(Template(self._text(config)), str(config.prompt or f"{self.name}.md"), quoted)

    def digest(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What decides the replies: model, prompt and how it is asked."""
        config = self.check(options)
        kept = config.model_dump(exclude={"endpoint", "prompt"})
        return {**kept, "model": config.endpoint.model, "url": config.endpoint.url, "prompt": self._text(config)}

    def _text(self, config: AskedConfig) -> str:
        if config.prompt is None:
            return (resources.files(__package__) / f"{self.name}.md").read_text(encoding="utf-8")
        if not config.prompt.is_file():
            raise InputError(f"research: {self.name}.prompt: no file {str(config.prompt)!r}")
        return config.prompt.read_text(encoding="utf-8")


class Asked:
    """A model in a role. Use it in one event loop, with `async with`.

    Args:
        role: what it is asked for.
        options: as `AskedConfig` has them.
        cache: of replies; None keeps nothing.

    Raises:
        InputError: an option is wrong, the prompt file is missing or can't be filled, or `openai` is not installed.
    """

    def __init__(self, role: Role, options: Mapping[str, Any], cache: ReplyCache | None = None) -> None:
        self._role = role
        self._config = config = role.check(options)
        self.model = config.endpoint.model
        self._endpoint = StructuredEndpoint(
            config.endpoint,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            structured=config.structured,
            cache=cache,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._endpoint.close()

    async def ask(self, **values: str) -> Reply:
        """A reply of the role's shape, or why there is none.

        Args:
            values: of the role's placeholders.

        Raises:
            InputError: the server refuses the key, the model or the request.
            InfraError: no answer after all tries.
        """
        return await self._endpoint.ask(self._role.prompt(self._config, values), self._role.shape, self._role.name)
