"""What HTTP servers of the protocol share: reading a body, events of a stream, an application that lives in a loop."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from quintain.agents.gateway.protocol import Refused
from quintain.interface.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request as HTTPRequest

MOST_BYTES = 4 * 2**20
"""Of a request's body."""

HOST = "127.0.0.1"


def check_packages() -> None:
    """Says in one line what is missing.

    Raises:
        InputError: starlette or uvicorn is not installed.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(f"serving needs {' and '.join(missing)}: pip install 'quintain[serve]'")


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


def bearer(request: HTTPRequest) -> str:
    """The key a request carries; "" without one."""
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def event(value: dict[str, Any]) -> str:
    """One event of a stream."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


class LoopServer:
    """An application served on a free port of the loopback interface, in the event loop that starts it."""

    def __init__(self, app: Any) -> None:
        import uvicorn

        class Server(uvicorn.Server):
            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield  # Ctrl-C belongs to the run, not to this server

        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
        self._server = Server(config)
        self._listening = socket.create_server((HOST, 0))
        self.port: int = self._listening.getsockname()[1]
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listening]))

    async def close(self) -> None:
        """Ends it; requests under way are cut off."""
        self._server.should_exit = self._server.force_exit = True
        await asyncio.wait({self._task})
        self._listening.close()
