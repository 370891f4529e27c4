"""The HTTP side of `quintain serve`: routes, the key, and streams of server-sent events."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from quintain.agents.gateway.http import bearer, event, read_body
from quintain.agents.gateway.protocol import Refused, Reply, Request
from quintain.interface.episode import Episode, Usage
from quintain.serving.conversation import Conversations
from quintain.serving.protocol import answer_of, read_question, said_in, sampling_of

LOOPBACK = ("127.0.0.1", "localhost", "::1")

Handler = Callable[[HTTPRequest], Awaitable[Response]]


def make_app(agent: Conversations, key: str | None) -> Starlette:
    """The application.

    Args:
        agent: who answers.
        key: what `Authorization: Bearer` must carry. None: anyone who reaches it may ask, so only requests to the
            loopback's own names are taken; a web page under another name can't reach it through a browser.
    """

    def guarded(handler: Handler) -> Handler:
        async def handle(request: HTTPRequest) -> Response:
            try:
                _check_key(request, key)
                return await handler(request)
            except Refused as refused:
                return JSONResponse(refused.body, refused.status)

        return handle

    async def models(_: HTTPRequest) -> Response:
        one = {"id": agent.name, "object": "model", "created": 0, "owned_by": "quintain"}
        return JSONResponse({"object": "list", "data": [one]})

    async def complete(http: HTTPRequest) -> Response:
        request = read_question(await read_body(http), agent.name)
        said, system = said_in(request)
        sampling = sampling_of(request, agent.sampling)

        def work(tell: Callable[[str], None]) -> Awaitable[tuple[Episode, Usage]]:
            return agent.reply(said, system, sampling, tell)

        if request.stream:
            return StreamingResponse(_events(request, work), media_type="text/event-stream")
        lines: list[str] = []
        episode, used = await work(lines.append)
        content, finish = answer_of(episode)
        message = {"content": content, "reasoning_content": "\n".join(lines) or None}
        return JSONResponse(Reply(agent.name).whole(message, finish, used.context_tokens, used.tokens))

    routes = [
        Route("/v1/models", guarded(models), methods=["GET"]),
        Route("/v1/chat/completions", guarded(complete), methods=["POST"]),
    ]
    hosts = [] if key is not None else [Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])]
    return Starlette(routes=routes, middleware=hosts)


def _check_key(request: HTTPRequest, key: str | None) -> None:
    if key is not None and not hmac.compare_digest(bearer(request).encode(), key.encode()):
        raise Refused(401, "wrong or missing API key", "invalid_api_key")


async def _events(
    request: Request, work: Callable[[Callable[[str], None]], Awaitable[tuple[Episode, Usage]]]
) -> AsyncIterator[str]:
    """A reply as events: what the agent does as it does it, then the answer. A client that leaves stops the work."""
    reply, lines = Reply(request.model), asyncio.Queue[str | None]()
    job = asyncio.ensure_future(work(lines.put_nowait))
    job.add_done_callback(lambda _: lines.put_nowait(None))
    try:
        yield event(reply.piece({"role": "assistant", "content": ""}))
        while (line := await lines.get()) is not None:
            yield event(reply.piece({"reasoning_content": line + "\n"}))
        episode, used = await job
        content, finish = answer_of(episode)
        yield event(reply.piece({"content": content}))
        yield event(reply.piece({}, finish))
        if request.stream_options and request.stream_options.include_usage:
            yield event(reply.usage(used.context_tokens, used.tokens))
    except Refused as refused:
        yield event(refused.body)
    finally:
        job.cancel()
    yield "data: [DONE]\n\n"
