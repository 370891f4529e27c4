"""The gateway's HTTP side: chat completions of a policy, and the world's tools; the key names the episode."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from pydantic import RootModel
from starlette.applications import Starlette
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from quintain.agents.chat import described
from quintain.agents.gateway.history import content_of
from quintain.agents.gateway.http import bearer, event, read_body
from quintain.agents.gateway.protocol import Refused, Reply, Request, read_request
from quintain.agents.gateway.session import Session, Sessions
from quintain.interface.messages import Action

Handler = Callable[[HTTPRequest, Session], Awaitable[Response]]


class Arguments(RootModel[dict[str, Any]]):
    """The body of a call: the tool's arguments."""


def make_app(sessions: Sessions, name: str) -> Starlette:
    """The application.

    Args:
        sessions: looked at for every request.
        name: of the model, in replies; requests may name any.
    """

    def keyed(handler: Handler) -> Callable[[HTTPRequest], Awaitable[Response]]:
        async def handle(request: HTTPRequest) -> Response:
            session = sessions.get(bearer(request))
            if session is None:
                refused = Refused(401, "this key names no episode that is under way", "invalid_api_key")
                return JSONResponse(refused.body, refused.status)
            try:
                return await handler(request, session)
            except Refused as known:
                refused = known
            except Exception as error:
                refused = session.end_by(error)
            return JSONResponse(refused.body, refused.status)

        return handle

    async def models(_: HTTPRequest, __: Session) -> Response:
        one = {"id": name, "object": "model", "created": 0, "owned_by": "quintain"}
        return JSONResponse({"object": "list", "data": [one]})

    async def complete(http: HTTPRequest, session: Session) -> Response:
        request = read_request(Request, await read_body(http))
        action, before = await session.complete(request)
        if request.stream:
            return StreamingResponse(_events(request, action, before), media_type="text/event-stream")
        reply = Reply(request.model)
        return JSONResponse(reply.whole(message_of(action), finish_of(action), before, _tokens(action)))

    async def tools(_: HTTPRequest, session: Session) -> Response:
        return JSONResponse(described(session.toolset, {}))

    async def call(http: HTTPRequest, session: Session) -> Response:
        arguments = read_request(Arguments, await read_body(http)).root
        seen = await session.call(http.path_params["tool"], arguments)
        return JSONResponse({"content": seen.content, "value": seen.value, "error": seen.error})

    return Starlette(
        routes=[
            Route("/v1/models", keyed(models), methods=["GET"]),
            Route("/v1/chat/completions", keyed(complete), methods=["POST"]),
            Route("/v1/tools", keyed(tools), methods=["GET"]),
            Route("/v1/tools/{tool}", keyed(call), methods=["POST"]),
        ]
    )


def message_of(action: Action) -> dict[str, Any]:
    """An action as the keys of an assistant's message."""
    said: dict[str, Any] = {"content": content_of(action) or None, "reasoning_content": action.thought or None}
    if action.calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in action.calls
        ]
    return said


def finish_of(action: Action) -> str:
    """The finish reason."""
    if action.calls:
        return "tool_calls"
    return "length" if action.closing else "stop"


def _tokens(action: Action) -> int:
    return len(action.generation.ids) if action.generation else 0


def _events(request: Request, action: Action, before: int) -> Iterator[str]:
    """A reply as events. It is whole before the first one: what is generated is only then known to be a call."""
    reply, said = Reply(request.model), message_of(action)
    calls = [{"index": index, **one} for index, one in enumerate(said.pop("tool_calls", ()))]
    yield event(reply.piece({"role": "assistant", "content": ""}))
    for key, text in said.items():
        if text:
            yield event(reply.piece({key: text}))
    for one in calls:
        yield event(reply.piece({"tool_calls": [one]}))
    yield event(reply.piece({}, finish_of(action)))
    if request.stream_options and request.stream_options.include_usage:
        yield event(reply.usage(before, _tokens(action)))
    yield "data: [DONE]\n\n"
