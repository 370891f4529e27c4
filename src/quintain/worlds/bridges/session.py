"""Connections to MCP servers, through the official SDK.

All of them live on one event loop of their own, in a thread of this process: a world is used from several loops (a
rollout, a check of `tools.lock`), and the SDK's connections must be closed by the task that opened them.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import logging
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from quintain.harness.background import Background
from quintain.interface.errors import InfraError, InputError, describe
from quintain.interface.tools import ResultError
from quintain.worlds.bridges.world import ToolFailed

try:
    from mcp import Client, MCPError, StdioServerParameters, types
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client
except ImportError:
    raise InputError("MCP servers need the package mcp: pip install 'quintain[mcp]'") from None

__all__ = ["Address", "Listing", "Session", "at_once", "elsewhere", "telling", "types"]

START_SECONDS = 30.0
"""Within this a server must have started, and again have listed its tools."""
QUIET_SECONDS = 2.0
"""A server that takes longer is spoken of."""
PAGES = 100
"""Most pages of a tool list."""
SCRATCH = "{scratch}"
"""Stands for a folder of the session's own in a command's arguments and environment."""
logging.getLogger("mcp").addHandler(logging.NullHandler())  # what breaks is said once, in our words

_LAST_WORDS = 2000
"""Bytes kept of what a server writes to its standard error."""
_LONGEST = 200
"""Most characters of what a server says that go into a line of ours."""
_FRAMES = " \t|+-│─╭╮╰╯"
"""What tracebacks of groups and log tables draw around their words."""
_END_SECONDS = 8.0
"""How long the end of this process waits for servers to end: the SDK asks, then terminates, then kills."""

T = TypeVar("T")


@dataclass(frozen=True)
class Address:
    """Where a server is: a command to start, or a URL.

    Attributes:
        command: program of a server that speaks over its standard input and output.
        args: its arguments.
        url: of a server that speaks streamable HTTP.
        env: additional environment of the command.
        headers: of every HTTP request.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise InputError("an MCP server is a command or a url: give one of the two")

    def __str__(self) -> str:
        return self.url or " ".join([self.command, *self.args])


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server says of itself."""

    tools: tuple[types.Tool, ...]
    server: types.Implementation | None


class Session:
    """One connection to a server, and its process where it was started by a command.

    Args:
        address: of the server.
        files: texts by name, written into the session's scratch folder before the server starts.
    """

    def __init__(self, address: Address, files: Mapping[str, str] | None = None) -> None:
        self._address = address
        self._files = dict(files or {})
        self._errors = bytearray()
        self._client: Client | None = None

    @classmethod
    async def open(cls, address: Address, files: Mapping[str, str] | None = None) -> Session:
        """Starts the server and shakes hands.

        Raises:
            InputError: there is no such command.
            InfraError: the server ends, breaks the protocol or does not answer within `START_SECONDS`.
        """
        session = cls(address, files)
        await elsewhere(session._start())
        return session

    async def listing(self) -> Listing:
        """All tools, page by page.

        Raises:
            InfraError: the server ends, breaks the protocol, pages without end or does not answer.
        """
        return await elsewhere(self._guarded("its list of tools", self._list(), START_SECONDS))

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> types.CallToolResult:
        """Calls a tool.

        Raises:
            InfraError: the server ends, breaks the protocol or does not answer within `seconds`.
            ToolFailed: it refuses the call.
            ResultError: the result does not fit the schema that it declares.
        """

        async def call() -> types.CallToolResult:
            assert self._client is not None
            return await self._client.call_tool(tool, arguments)

        return await elsewhere(self._guarded(tool, call(), seconds))

    def close(self) -> None:
        """Ends the connection and the server's process, without waiting for it."""
        _background.start(self._leave())

    async def _leave(self) -> None:
        self._closing.set()

    async def _start(self) -> None:
        self._closing = asyncio.Event()
        opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(opened))
        _alive.add(self._life)
        self._life.add_done_callback(_alive.discard)
        try:
            self._client = await self._guarded("anything", asyncio.shield(opened), START_SECONDS)
        except BaseException:
            self._closing.set()
            self._life.cancel()
            raise

    async def _live(self, opened: asyncio.Future[Client]) -> None:
        """Holds the connection open; opened and left by this one task."""
        try:
            with tempfile.TemporaryDirectory(prefix="quintain-mcp-", ignore_cleanup_errors=True) as scratch:
                for name, text in self._files.items():
                    _write(Path(scratch), name, text)
                async with self._connected(scratch) as client:
                    opened.set_result(client)
                    await self._closing.wait()
        except asyncio.CancelledError:
            opened.cancel()
        except Exception as error:
            if not opened.done():  # else a call in flight has heard of it
                opened.set_exception(_first(error))

    @asynccontextmanager
    async def _connected(self, scratch: str) -> AsyncIterator[Client]:
        address = self._address
        if address.url:
            async with create_mcp_http_client(headers=dict(address.headers)) as http:
                transport = streamable_http_client(address.url, http_client=http)
                async with Client(transport, cache=None) as client:
                    yield client
            return
        parameters = StdioServerParameters(
            command=address.command,
            args=[one.replace(SCRATCH, scratch) for one in address.args],
            env={key: value.replace(SCRATCH, scratch) for key, value in address.env.items()},
        )
        async with (
            self._listening() as errors,
            Client(stdio_client(parameters, errlog=errors), cache=None) as client,
        ):
            yield client

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[Any]:
        """A file for the server's standard error, of which the end is kept: it says why a server died."""
        reading, writing = os.pipe()
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(reading, "rb", 0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        task = asyncio.create_task(self._keep_last(reader))
        with os.fdopen(writing, "w") as file:
            try:
                yield file
            finally:
                task.cancel()
                transport.close()

    async def _keep_last(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65536):
            self._errors += data
            del self._errors[:-_LAST_WORDS]

    async def _list(self) -> Listing:
        assert self._client is not None
        tools: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await self._client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                return Listing(tuple(tools), self._client.server_info)
        raise InfraError(f"MCP server {self._address}: its list of tools has more than {PAGES} pages")

    async def _guarded(self, what: str, work: Awaitable[T], seconds: float) -> T:
        """Awaits an exchange with the server; whatever goes wrong in it has one of four types."""
        where = f"MCP server {self._address}"
        try:
            async with asyncio.timeout(seconds):
                return await work
        except (InfraError, InputError, asyncio.CancelledError):
            raise
        except TimeoutError:
            raise InfraError(f"{where} has not answered {what} within {seconds:g} s{self._said()}") from None
        except FileNotFoundError:
            raise InputError(f"{where}: no program named {self._address.command!r}") from None
        except MCPError as error:
            if error.code in (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT):
                raise InfraError(f"{where} ended before it answered {what}{self._said()}") from None
            raise ToolFailed(_line(error.message)) from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise InfraError(f"{where} broke the protocol: {place}: {_line(first['msg'])}") from None
        except RuntimeError as error:  # the SDK's word for a result that does not fit its declared schema
            raise ResultError(_line(str(error))) from None
        except Exception as error:
            raise InfraError(f"{where} broke off: {_line(describe(_first(error)))}{self._said()}") from None

    def _said(self) -> str:
        lines = [line.strip(_FRAMES) for line in self._errors.decode(errors="replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "")
        return f"; its last words: {_line(last)}" if last else ""


def _write(folder: Path, name: str, text: str) -> None:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"setup['files']: {name!r} leads out of the scratch folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _first(error: BaseException) -> BaseException:
    """The error inside of the groups that task groups make."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _line(text: str) -> str:
    """At most `_LONGEST` characters of a text, as one line of whole words."""
    line = " ".join(text.split())
    if len(line) <= _LONGEST:
        return line
    return f"{line[:_LONGEST].rpartition(' ')[0] or line[:_LONGEST]} ..."


@contextmanager
def telling(address: Address) -> Iterator[None]:
    """Says on standard error what is waited for, and for how long at most, once a server takes its time."""
    words = f"waiting for MCP server {address} to start and list its tools, at most {START_SECONDS:g} s for each ..."
    later = partial(print, words, file=sys.stderr, flush=True)
    notice = asyncio.get_running_loop().call_later(QUIET_SECONDS, later)
    try:
        yield
    finally:
        notice.cancel()


_alive: set[asyncio.Task[None]] = set()
_background = Background("quintain-mcp")


async def elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """Awaits something on the connections' loop; cancelling here cancels there."""
    return await _background.there(work)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The same for callers outside of any loop, or who may block theirs."""
    return _background.start(work).result()


async def _end() -> None:
    for life in tuple(_alive):
        if not life.cancelling():  # a second time would break off the server's end, and leave it running
            life.cancel()
    if _alive:
        await asyncio.wait(tuple(_alive), timeout=_END_SECONDS)


def _end_all() -> None:
    """Ends all servers with this process."""
    with suppress(concurrent.futures.TimeoutError):
        if _alive:
            _background.start(_end()).result(_END_SECONDS + 1)


atexit.register(_end_all)
