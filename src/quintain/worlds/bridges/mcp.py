"""Any MCP server as a world: its tools are the agent's tools."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from quintain.interface.canonical import digest
from quintain.interface.errors import InfraError, InputError, InterfaceDrift
from quintain.interface.lock import compare_specs
from quintain.interface.tasks import Task
from quintain.interface.tools import ResultError, Tool, Toolset
from quintain.worlds.bridges.schemas import parameters, rewritten
from quintain.worlds.bridges.session import Address, Listing, Session, at_once, elsewhere, telling, types
from quintain.worlds.bridges.world import BridgedWorld, ToolFailed, from_environment

_NAME = re.compile(r"[\w.:/-]{1,128}")
_WRAPPED = "result"
"""Servers wrap a result that is no object in this member (the SDK's `MCPServer` does)."""
IDLE = 4
"""Most sessions kept for episodes to come; each holds a process."""


class MCPWorld(BridgedWorld):
    """The tools of one MCP server; tasks come from a file and are judged as `BridgedWorld` says.

    Every episode has a session of its own, and so a process of its own where the server is a command; one in which only
    tools declared read-only were called is as new, and goes on to another episode. A session begins with the texts of
    the task's `setup["files"]` in a scratch folder, which `{scratch}` stands for in `args` and `env`.
    After a time-out or an infra error a new session takes its place, in which the calls so far are made again.

    Args:
        command: program of a server that speaks over its standard input and output.
        args: its arguments.
        url: of a server that speaks streamable HTTP, in place of a command.
        env: additional environment of the command; `$NAME` stands for a variable of this process.
        headers: of every HTTP request; `$NAME` likewise.
        seconds: a server that has not answered a call by then hangs: an infra error.
        stateless: no call changes anything, so that all episodes may use one session.

    Raises:
        InputError: neither or both of command and url are given, a variable is not set, or `seconds` is not positive.
    """

    name: ClassVar[str] = "mcp"
    snapshots: ClassVar[Literal["exact", "replay", "none"]] = "replay"

    def __init__(
        self,
        command: str = "",
        args: Sequence[str] = (),
        url: str = "",
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = 8.0,
        stateless: bool = False,
    ) -> None:
        self._options: dict[str, Any] = {
            "command": command,
            "args": list(args),
            "url": url,
            "env": env or {},
            "headers": headers or {},
        }
        self._address = _address(**self._options)
        if seconds <= 0:
            raise InputError(f"mcp: seconds = {seconds}; a server needs more than 0 to answer a call")
        self._seconds = seconds
        self._stateless = stateless
        self._session: Session | None = None
        self._as_new = False

    @classmethod
    def shared(cls, **options: Any) -> _Server:
        """What the server lists, asked once per process, and the session of stateless ones."""
        return _Server(_address(**options))

    def toolset(self) -> Toolset:
        """The server's tools.

        Raises:
            InputError: the server can't be reached, or its tools can't be used.
        """
        return Toolset(one.bind(partial(self._call, one.name)) for one in self._server.toolset)

    @property
    def destructive(self) -> set[str]:
        """Names of the tools that may destroy: by the protocol all but those marked read-only or not destructive."""
        return self._server.destructive

    def data_digest(self) -> str:
        """Digest of the server's name and version."""
        server = self._server.listing.server
        return digest({"world": self.name, "server": [server.name, server.version] if server else []})

    async def reset(self, task: Task) -> None:
        """Opens a session.

        Raises:
            InfraError: the server does not come up.
            InterfaceDrift: it lists other tools than before.
        """
        files = task.setup.get("files", {})
        self._session = await (self._server.kept() if self._stateless else self._server.opened(files))
        self._as_new = not files

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Calls a tool, also from a `reset` or `verify` of your own; returns its result as JSON.

        Raises:
            InfraError: the server ends or hangs.
            ToolFailed: the tool says that the call failed.
            ResultError: the result is not what the tool declares, or no text.
        """
        assert self._session is not None, "reset() opens the session"
        self._as_new &= tool in self._server.read_only
        try:
            result = await self._session.call(tool, arguments, self._seconds)
        except InfraError:
            self._server.drop(self._session)
            raise
        return _value(tool, result, tool in self._server.wrapped)

    async def _call(self, tool: str, /, **arguments: Any) -> Any:
        return await self.call(tool, arguments)

    def close(self) -> None:
        """Ends the session, or leaves it to the next episode where nothing can have changed in it."""
        if self._session is not None and self._as_new and not self._stateless:
            self._server.put_back(self._session)
        else:
            self.abandon()
        self._session = None

    def abandon(self) -> None:
        """Ends the session, unless all episodes share it."""
        if self._session is not None and not self._stateless:
            self._session.close()

    @property
    def _server(self) -> _Server:
        found: _Server = self.resources(**self._options)
        return found


class _Server:
    """What all episodes know of a server."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._session: Session | None = None
        self._idle: list[Session] = []
        self._opening = asyncio.Lock()
        self.listing = at_once(self._look())
        self.toolset = _toolset(self.listing, str(address))
        self.read_only = {one.name for one in self.toolset if one.read_only}
        tame = {one.name for one in self.listing.tools if one.annotations and one.annotations.destructive_hint is False}
        self.destructive = {one.name for one in self.toolset} - self.read_only - tame
        self.wrapped = {one.name for one in self.listing.tools if one.output_schema and _wraps(one.output_schema)}

    async def _look(self) -> Listing:
        try:
            with telling(self._address):
                session = await Session.open(self._address)
                try:
                    listing = await session.listing()
                except BaseException:
                    session.close()
                    raise
            self.put_back(session)
            return listing
        except ToolFailed as error:
            raise InputError(f"MCP server {self._address} does not list its tools: {error}") from None
        except (InfraError, ResultError) as error:
            raise InputError(str(error)) from None

    async def kept(self) -> Session:
        """The session that episodes of a stateless server share, opened again after it broke."""
        return await elsewhere(self._keep())

    async def _keep(self) -> Session:
        async with self._opening:
            if self._session is None:
                self._session = await self.opened({})
            return self._session

    async def opened(self, files: Mapping[str, str]) -> Session:
        """A session in which nothing has happened: an idle one where the task brings no files, or a new one.

        Raises:
            InterfaceDrift: it lists other tools than the first one.
        """
        if self._idle and not files:
            return self._idle.pop()
        session = await Session.open(self._address, files)
        try:
            tools = _toolset(await session.listing(), str(self._address))
            found = compare_specs(self.toolset.specs(), tools.specs())
        except BaseException:
            session.close()
            raise
        if found:
            session.close()
            changes = "; ".join(map(str, found))
            raise InterfaceDrift(f"MCP server {self._address} lists other tools than when this run began: {changes}")
        return session

    def put_back(self, session: Session) -> None:
        """Keeps a session as new for the next episode; one over HTTP, which costs no process and may expire, ends."""
        if self._address.command and len(self._idle) < IDLE:
            self._idle.append(session)
        else:
            session.close()

    def drop(self, session: Session) -> None:
        """Forgets a session that broke, and idle ones, which may have ended meanwhile."""
        for one in (session, *self._idle):
            one.close()
        self._idle.clear()
        if self._session is session:
            self._session = None


def _address(
    command: str = "",
    args: Sequence[str] = (),
    url: str = "",
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Address:
    return Address(
        command,
        tuple(args),
        url,
        from_environment(env or {}, "env of the MCP server"),
        from_environment(headers or {}, "headers of the MCP server"),
    )


def _toolset(listing: Listing, where: str) -> Toolset:
    if not listing.tools:
        raise InputError(f"MCP server {where} has no tools")
    try:
        return Toolset(_tool(one) for one in listing.tools)
    except InputError as error:
        raise InputError(f"MCP server {where}: {error}") from None


def _tool(listed: types.Tool) -> Tool:
    if not _NAME.fullmatch(listed.name):
        raise InputError(f"tool {listed.name[:60]!r}: a name has up to 128 letters, digits and `_.:/-`")
    where = f"tool {listed.name!r}"
    result = rewritten(listed.output_schema, where=where) if listed.output_schema else None
    read_only = bool(listed.annotations and listed.annotations.read_only_hint)
    return Tool(
        name=listed.name,
        description=" ".join((listed.description or listed.title or "").split()),
        parameters=parameters(listed.input_schema, where=where),
        result=_inner(result) if result and _wraps(result) else result,
        read_only=read_only,
    )


def _wraps(result: Mapping[str, Any]) -> bool:
    return list(result.get("properties", ())) == [_WRAPPED] and result.get("required") == [_WRAPPED]


def _inner(result: Mapping[str, Any]) -> dict[str, Any]:
    inner = result["properties"][_WRAPPED]
    definitions = {"$defs": result["$defs"]} if "$defs" in result else {}
    return {**(inner if isinstance(inner, dict) else {}), **definitions}


def _value(tool: str, result: types.CallToolResult, wrapped: bool) -> Any:
    """A result as JSON: the structured one where there is one, else its texts."""
    if result.is_error:
        raise ToolFailed(_texts(tool, result) or "no reason given")
    if result.structured_content is not None:
        return result.structured_content[_WRAPPED] if wrapped else result.structured_content
    return _texts(tool, result)


def _texts(tool: str, result: types.CallToolResult) -> str:
    found = []
    for part in result.content:
        match part:
            case types.TextContent():
                found.append(part.text)
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                found.append(resource.text)
            case types.ResourceLink():
                found.append(f"{part.name}: {part.uri}")
            case _:
                raise ResultError(f"{tool} returned a part of type {part.type!r}; version 1 accepts text only")
    return "\n".join(found)
