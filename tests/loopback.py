"""A small HTTP server on the loopback interface that speaks the chat completions protocol; tests script its replies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Respond = Callable[[dict[str, Any]], dict[str, Any] | tuple[int, dict[str, Any]]]
"""From a request's JSON to a message, or to a status and an error body; its key `retry-after` is sent as a header."""


class Cut(dict[str, Any]):
    """A message whose reply breaks off in the middle of its body."""


class Loopback:
    """What the server saw.

    Attributes:
        url: base address.
        requests: every request's JSON, in order.
        keys: the `Authorization` header of each.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []


class Quiet(BaseHTTPRequestHandler):
    """A handler that writes no log."""

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 256  # a burst of clients beyond the queue's five is reset where the machine is busy


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server on the loopback interface for the length of a `with` block; yields its port."""
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serve(respond: Respond) -> Iterator[Loopback]:
    """A server for the length of a `with` block."""

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.requests.append(request)
            seen.keys.append(self.headers["Authorization"])
            answered = respond(request)
            status, body = answered if isinstance(answered, tuple) else (200, completion(request, answered))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if "retry-after" in body:
                self.send_header("Retry-After", str(body["retry-after"]))
            self.end_headers()
            if isinstance(answered, Cut):
                self.wfile.write(text[: len(text) // 2])
                self.close_connection = True
                return
            self.wfile.write(text)

    with listening(Handler) as port:
        seen = Loopback(f"http://127.0.0.1:{port}/v1")
        yield seen


def completion(request: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """A whole reply around a message. A token is a word of what was sent or written; `finish` ends up beside it."""
    message = dict(message)
    finish = message.pop("finish", "tool_calls" if message.get("tool_calls") else "stop")
    prompt = sum(len(str(one.get("content") or "").split()) for one in request["messages"])
    written = len(str(message.get("content") or "").split()) + len(message.get("tool_calls") or ())
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": None} | message, "finish_reason": finish}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }


def call(name: str, arguments: Any, identity: str = "c1") -> dict[str, Any]:
    """One tool call as the protocol has it; text stays as it is."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}
