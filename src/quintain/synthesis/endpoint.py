"""The teacher behind an OpenAI-compatible server: prompts from files, JSON checked, replies cached, tokens counted.

Retries with back-off are those of `inference.endpoint`, hence of the official client.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic import ValidationError

from quintain.inference.endpoint import Completion, Endpoint
from quintain.interface.canonical import digest
from quintain.interface.errors import ContextFull, InfraError, InputError
from quintain.synthesis.cache import ReplyCache, Stored
from quintain.synthesis.config import TeacherConfig
from quintain.synthesis.teacher import Prompts, Reply, Request, Shape

JSON_TRIES = 3
"""Times a request is asked until the reply is JSON of the right shape."""
PATIENCE = 20
"""Requests in a row without any answer after which the server counts as down."""


class EndpointTeacher:
    """Asks a chat server. One per event loop, as its connections are.

    Args:
        config: with an endpoint.
        cache: of replies.
        prompts: the prompt files.

    Raises:
        InputError: the package `openai` is missing.
    """

    def __init__(self, config: TeacherConfig, cache: ReplyCache, prompts: Prompts) -> None:
        assert config.endpoint is not None
        self._config = config
        self._endpoint = Endpoint(config.endpoint)
        self._cache = cache
        self._prompts = prompts
        self._places = asyncio.Semaphore(config.concurrency)
        self._silent = 0

    async def ask(self, request: Request) -> Reply:
        """The reply, from the cache if it was asked before. What fails for good is a problem, and counted.

        Raises:
            InputError: the server refuses the key, the model or the request, or `PATIENCE` requests in a row got no
                answer.
        """
        prompt = self._prompts.render(request)
        key = self._key(request, prompt)
        stored = self._cache.get(key)
        if stored is not None:
            return _reply(request, stored, 0.0, cached=True)
        async with self._places:
            return await self._fresh(request, prompt, key)

    async def close(self) -> None:
        """Closes the connections."""
        await self._endpoint.close()

    def _key(self, request: Request, prompt: str) -> str:
        config, endpoint = self._config, self._endpoint.config
        settings = [endpoint.url, endpoint.model, config.temperature, config.max_tokens, config.structured]
        return digest([*settings, request.kind, prompt, request.variant])

    async def _fresh(self, request: Request, prompt: str, key: str) -> Reply:
        spent, stored = [0, 0, 0.0], Stored("", "", 0, 0)
        for _ in range(JSON_TRIES):
            try:
                made = await self._complete(request, prompt)
            except ContextFull:
                return Reply(problem="prompt longer than the model's context")
            except InfraError as error:
                return self._no_answer(error)
            self._silent = 0
            spent = [spent[0] + made.prompt_tokens, spent[1] + made.completion_tokens, spent[2] + made.price]
            stored = Stored(made.text, _problem(made, request.shape), int(spent[0]), int(spent[1]))
            if not stored.problem or made.refused:
                break
        self._cache.put(key, stored)
        return _reply(request, stored, spent[2], cached=False)

    async def _complete(self, request: Request, prompt: str) -> Completion:
        options: dict[str, Any] = {}
        if self._config.structured == "schema":
            schema = {"name": request.kind, "schema": request.shape.model_json_schema()}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self._config.structured == "object":
            options["response_format"] = {"type": "json_object"}
        return await self._endpoint.complete(
            [{"role": "user", "content": prompt}],
            max_tokens=self._config.max_tokens,
            temperature=self._config.temperature,
            **options,
        )

    def _no_answer(self, error: InfraError) -> Reply:
        """Counts a request the server did not answer; it is not cached, so a later run asks again."""
        self._silent += 1
        if self._silent >= PATIENCE:
            raise InputError(
                f"teacher: {self._silent} requests in a row failed, the last with: {error}; replies so far are kept, "
                "run the same command again to go on"
            )
        return Reply(problem="no answer from the server after all tries")


def _problem(made: Completion, shape: type[Shape]) -> str:
    if made.refused:
        return "refused"
    if made.finish == "length":
        return "cut at its token limit"
    return "" if parse(made.text, shape) is not None else "no JSON of the right shape"


def _reply(request: Request, stored: Stored, price: float, cached: bool) -> Reply:
    value = None if stored.problem else parse(stored.text, request.shape)
    return Reply(value, stored.problem, stored.prompt_tokens, stored.completion_tokens, price, cached)


def parse(text: str, shape: type[Shape]) -> Shape | None:
    """The first JSON object in a text, whatever stands around it, as a shape; None if there is none that fits."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text[start:])
        # what only the offline teacher knows is no part of the schema, and is not believed from elsewhere
        public = shape.model_json_schema()["properties"]
        return shape.model_validate({name: value for name, value in found.items() if name in public})
    except (ValueError, RecursionError, ValidationError):
        return None
