"""The teacher behind an OpenAI-compatible server: prompts from files, JSON checked, replies cached, tokens counted.

Retries with back-off are those of `endpoint.client`, hence of the official client.
"""

from __future__ import annotations

import asyncio

from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.structured import Reply, StructuredEndpoint
from quintain.interface.errors import InfraError, InputError
from quintain.synthesis.config import TeacherConfig
from quintain.synthesis.teacher import NO_ANSWER, Prompts, Request

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
        self._endpoint = StructuredEndpoint(
            config.endpoint,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            structured=config.structured,
            cache=cache,
        )
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
        async with self._places:
            try:
                reply = await self._endpoint.ask(prompt, request.shape, request.kind, request.variant)
            except InfraError as error:
                return self._no_answer(error)
        self._silent = self._silent if reply.cached else 0
        return reply

    async def close(self) -> None:
        """Closes the connections."""
        await self._endpoint.close()

    def _no_answer(self, error: InfraError) -> Reply:
        """Counts a request the server did not answer; it is not cached, so a stage that runs again asks it again."""
        self._silent += 1
        if self._silent >= PATIENCE:
            raise InputError(
                f"teacher: {self._silent} requests in a row failed, the last with: {error}; replies so far are kept, "
                "run the same command again to go on"
            )
        return Reply(problem=NO_ANSWER)
