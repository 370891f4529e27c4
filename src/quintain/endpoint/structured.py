"""JSON of a known shape from a chat server: asked again until it fits, kept on disk, its tokens and price counted."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from quintain.endpoint.cache import ReplyCache, Stored
from quintain.endpoint.client import Completion, Endpoint
from quintain.endpoint.config import EndpointConfig
from quintain.interface.canonical import digest
from quintain.interface.errors import ContextFull, InputError
from quintain.interface.words import encodable

JSON_TRIES = 3
"""Times a request is asked until the reply is JSON of the right shape."""

Structured = Literal["schema", "object", "text"]
"""How JSON is asked for: by a schema, as any object, or by the prompt alone."""


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""How an escape of half a character begins; a whole one has two."""


class Shape(BaseModel):
    """Base of the shapes a reply may have; unknown keys are ignored, for models like to add some."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        value: of the request's shape; None if there is none.
        problem: why there is none, as it is counted (`refused`, `invalid JSON`, ...).
        prompt_tokens: as the server counts them.
        completion_tokens: as the server counts them.
        price: in the recipe's currency; 0 for a reply from the cache.
        cached: it was on disk already.
    """

    value: Any = None
    problem: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float = 0.0
    cached: bool = False


class StructuredEndpoint:
    """Asks a chat server for JSON. One per event loop, as its connections are.

    Args:
        config: where the server is.
        temperature: of the sampling.
        max_tokens: bound of one reply.
        structured: how JSON is asked for.
        cache: of replies; None keeps nothing.

    Raises:
        InputError: the package `openai` is missing.
    """

    def __init__(
        self,
        config: EndpointConfig,
        *,
        temperature: float,
        max_tokens: int,
        structured: Structured,
        cache: ReplyCache | None = None,
    ) -> None:
        self._endpoint = Endpoint(config, many=True)
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._structured = structured
        self._cache = cache

    async def ask(self, prompt: str, shape: type[Shape], name: str, variant: int = 0) -> Reply:
        """The reply, from the cache if it was asked before. What was written and can't be used is a problem.

        Args:
            prompt: the text to send.
            shape: of the reply.
            name: of the shape, as the server is told.
            variant: tells requests apart that are otherwise equal; every one is asked once.

        Raises:
            InputError: the server refuses the key, the model or the request.
            InfraError: no answer after all tries; it is not cached, so a later run asks again.
        """
        prompt = encodable(prompt)
        key = self._key(prompt, name, variant)
        stored = self._cache.get(key) if self._cache else None
        if stored is not None:
            return _reply(shape, stored, 0.0, cached=True)
        spent, stored = [0, 0, 0.0], Stored("", "", 0, 0)
        for _ in range(JSON_TRIES):
            try:
                made = await self._complete(prompt, shape, name)
            except ContextFull:
                return Reply(problem="prompt longer than the model's context")
            spent = [spent[0] + made.prompt_tokens, spent[1] + made.completion_tokens, spent[2] + made.price]
            stored = Stored(made.text, _problem(made, shape), int(spent[0]), int(spent[1]))
            if not stored.problem or made.refused:
                break
        if self._cache:
            self._cache.put(key, stored)
        return _reply(shape, stored, spent[2], cached=False)

    async def close(self) -> None:
        """Closes the connections."""
        await self._endpoint.close()

    def _key(self, prompt: str, name: str, variant: int) -> str:
        config = self._endpoint.config
        settings = [config.url, config.model, self._temperature, self._max_tokens, self._structured]
        return digest([*settings, name, prompt, variant])

    async def _complete(self, prompt: str, shape: type[Shape], name: str) -> Completion:
        options: dict[str, Any] = {}
        if self._structured == "schema":
            schema = {"name": name, "schema": _schema(shape)}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self._structured == "object":
            options["response_format"] = {"type": "json_object"}
        return await self._endpoint.complete(
            [{"role": "user", "content": prompt}],
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            **options,
        )


def _problem(made: Completion, shape: type[Shape]) -> str:
    if made.refused:
        return "refused"
    if made.finish == "length":
        return "cut at its token limit"
    return "" if parse(made.text, shape) is not None else "no JSON of the right shape"


def _reply(shape: type[Shape], stored: Stored, price: float, cached: bool) -> Reply:
    value = None if stored.problem else parse(stored.text, shape)
    return Reply(value, stored.problem, stored.prompt_tokens, stored.completion_tokens, price, cached)


@functools.cache
def _schema(shape: type[Shape]) -> dict[str, Any]:
    """The shape's schema; writing it takes longer than reading a reply."""
    return shape.model_json_schema()


def parse(text: str, shape: type[Shape]) -> Shape | None:
    """The first JSON object in a text, whatever stands around it, as a shape; None if there is none that fits."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        found, end = json.JSONDecoder().raw_decode(text[start:])
        if _HALF.search(text, start, start + end):
            found = json.loads(encodable(json.dumps(found, ensure_ascii=False)))
        # what only the offline teacher knows is no part of the schema, and is not believed from elsewhere
        public = _schema(shape)["properties"]
        return shape.model_validate({name: value for name, value in found.items() if name in public})
    except (ValueError, RecursionError, ValidationError):
        return None


def filled(template: Template, file: str, values: Mapping[str, str]) -> str:
    """A prompt with its placeholders filled.

    Raises:
        InputError: it has a placeholder that nothing fills, or a stray `$`.
    """
    try:
        return template.substitute(values)
    except KeyError as error:
        allowed = ", ".join(f"${name}" for name in values)
        raise InputError(f"prompt {file}: no value for ${error.args[0]}; allowed: {allowed}") from None
    except ValueError as error:
        raise InputError(f"prompt {file}: {error}; write $$ for a dollar sign") from None
