"""The HTTP side of `quintain serve`: routes, the key, and streams of server-sent events."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from quintain.interface.episode import Episode, Usage
from quintain.serving.conversation import Conversations
from quintain.serving.protocol import Refused, Reply, Request, answer_of, read_request, said_in, sampling_of

MOST_BYTES = 4 * 2**20
"""Of a request's body."""

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
        request = read_request(await read_body(http), agent.name)
        said, system = said_in(request)
        sampling = sampling_of(request, agent.sampling)

        def work(tell: Callable[[str], None]) -> Awaitable[tuple[Episode, Usage]]:
            return agent.reply(said, system, sampling, tell)

        if request.stream:
            return StreamingResponse(_events(request, work), media_type="text/event-stream")
        lines: list[str] = []
        episode, used = await work(lines.append)
        return JSONResponse(Reply(agent.name).whole(*answer_of(episode), "\n".join(lines), used))

    routes = [
        Route("/v1/models", guarded(models), methods=["GET"]),
        Route("/v1/chat/completions", guarded(complete), methods=["POST"]),
    ]
    hosts = [] if key is not None else [Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])]
    return Starlette(routes=routes, middleware=hosts)


def _check_key(request: HTTPRequest, key: str | None) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if key is not None and not hmac.compare_digest(given.encode(), key.encode()):
        raise Refused(401, "wrong or missing API key", "invalid_api_key")


async def read_body(request: HTTPRequest) -> bytes:
    """The body; only as JSON, which no page of another origin can send without being asked first."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "the body must be application/json", "invalid_request")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise Refused(413, f"the body is larger than {MOST_BYTES} bytes", "invalid_request")
    return body


async def _events(
    request: Request, work: Callable[[Callable[[str], None]], Awaitable[tuple[Episode, Usage]]]
) -> AsyncIterator[str]:
    """A reply as events: what the agent does as it does it, then the answer. A client that leaves stops the work."""
    reply, lines = Reply(request.model), asyncio.Queue[str | None]()
    job = asyncio.ensure_future(work(lines.put_nowait))
    job.add_done_callback(lambda _: lines.put_nowait(None))
    try:
        yield _event(reply.piece({"role": "assistant", "content": ""}))
        while (line := await lines.get()) is not None:
            yield _event(reply.piece({"reasoning_content": line + "\n"}))
        episode, used = await job
        content, finish = answer_of(episode)
        yield _event(reply.piece({"content": content}))
        yield _event(reply.piece({}, finish))
        if request.stream_options and request.stream_options.include_usage:
            yield _event(reply.usage(used))
    except Refused as refused:
        yield _event(refused.body)
    finally:
        job.cancel()
    yield "data: [DONE]\n\n"


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"
