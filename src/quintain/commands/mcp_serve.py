"""Serves a recipe's world as an MCP server, for agents that other people wrote. State per session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from quintain import __version__
from quintain.agents.remote import RemoteAgent
from quintain.harness.loop import Harness
from quintain.interface.errors import InputError
from quintain.interface.messages import Observation
from quintain.interface.tasks import Task
from quintain.interface.tools import Tool
from quintain.pipeline.workshop import Workshop
from quintain.progress import say
from quintain.recipe import load_recipe
from quintain.recipe.worlds import RecipeWorld

try:
    from mcp import MCPError, types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server
    from mcp.types.version import MODERN_PROTOCOL_VERSIONS
except ImportError:
    raise InputError("an MCP server needs the package mcp: pip install 'quintain[mcp]'") from None

RESULT = "result"
"""MCP results are objects: any other value is the member of this name, as the SDK's own servers do it."""

HOST = "127.0.0.1"

UNBOUND = ("turns", "tool_calls", "seconds", "format_errors")
"""What a session may use without end; a single call keeps the recipe's bounds."""
ENDLESS = 10**9

Context = ServerRequestContext[Any, Any]


class Stage:
    """One session: an episode of the harness, so that what breaks is retried and what hangs is replaced as ever."""

    def __init__(self, harness: Harness, task: Task) -> None:
        self._agent = RemoteAgent()
        self._episode = asyncio.create_task(harness.run(task, self._agent))

    async def call(self, name: str, arguments: dict[str, Any]) -> Observation:
        """What a call returns or how it fails.

        Raises:
            MCPError: the episode is over.
        """
        seen = asyncio.ensure_future(self._agent.call(name, arguments))
        await asyncio.wait({seen, self._episode}, return_when=asyncio.FIRST_COMPLETED)
        if not seen.done():
            seen.cancel()
            raise MCPError(types.INTERNAL_ERROR, f"the session is over: {self._why()}")
        return seen.result()

    def _why(self) -> str:
        problem = self._episode.exception()
        if problem is not None:
            return str(problem)
        outcome = self._episode.result().outcome
        return f"{outcome} {outcome.detail}".strip()

    async def close(self) -> None:
        """Ends the episode, which frees what the world took."""
        self._agent.leave()
        await asyncio.wait({self._episode})


class WorldServer:
    """The MCP server of a world.

    Args:
        world: of the recipe.
        task: what every session is reset to.
    """

    def __init__(self, world: RecipeWorld, task: Task) -> None:
        patient = replace(world.budget, **dict.fromkeys(UNBOUND, ENDLESS))
        self._harness = Harness(world.make, budget=patient, judge=False)
        self._task = task
        self._tools = [_listed(one) for one in world.toolset()]
        self._alone: Stage | None = None

    def server(self) -> Server[Any]:
        """As the SDK takes it."""
        return Server(
            self._harness.world_name,
            version=__version__,
            instructions=self._harness.instructions or None,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
        )

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """The connection over standard input and output: this process is one session."""
        self._alone = Stage(self._harness, self._task)
        try:
            yield
        finally:
            await self._alone.close()

    async def _list(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call(self, context: Context, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        stage = self._alone or await self._stage(context)
        seen = await stage.call(parameters.name, parameters.arguments or {})
        text: list[types.ContentBlock] = [types.TextContent(type="text", text=seen.content)]
        if seen.error:
            return types.CallToolResult(content=text, is_error=True)
        value = seen.value if isinstance(seen.value, dict) else {RESULT: seen.value}
        return types.CallToolResult(content=text, structured_content=value)

    def server_with_sessions(self) -> Server[Any]:
        """The same for a transport of many clients: only the handshake gives each a session."""
        server = self.server()
        server.add_request_handler("server/discover", types.RequestParams, _no_discovery)
        return server

    async def _stage(self, context: Context) -> Stage:
        """The world of an HTTP session; it ends with the session.

        Raises:
            MCPError: the client speaks a version of the protocol that has no sessions.
        """
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.INVALID_REQUEST, "this world keeps state: connect with the initialize handshake")
        connection = context.session._connection  # the SDK documents its state and exit stack, but has no way there yet
        if "stage" not in connection.state:
            connection.state["stage"] = stage = Stage(self._harness, self._task)
            connection.exit_stack.push_async_callback(stage.close)
        found: Stage = connection.state["stage"]
        return found

    async def _prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="task", description="what to do in this session")])

    async def _prompt(self, _: Context, parameters: types.GetPromptRequestParams) -> types.GetPromptResult:
        if parameters.name != "task":
            raise MCPError(types.INVALID_PARAMS, f"no prompt named {parameters.name!r}; there is one: task")
        content = types.TextContent(type="text", text=self._task.prompt)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def _no_discovery(_: Context, __: types.RequestParams) -> types.DiscoverResult:
    raise MCPError(types.METHOD_NOT_FOUND, "this world keeps state: connect with the initialize handshake")


def serve(recipe: Path, task: str | None, port: int | None) -> None:
    """Serves until the client hangs up (standard input and output) or the process is stopped (HTTP).

    Args:
        recipe: names the world and its pools.
        task: id of the task a session is reset to; None takes the first one of the first pool.
        port: of the loopback interface, for streamable HTTP; None for standard input and output.

    Raises:
        InputError: the recipe is wrong, has no such task, or the port is taken.
    """
    home = recipe.parent.resolve()
    workshop = Workshop(load_recipe(recipe), home, home)
    chosen = _task(workshop, task)
    world = WorldServer(workshop.worlds[chosen.world], chosen)
    if port is None:
        asyncio.run(_over_stdio(world))
    else:
        _over_http(world, port)


def _task(workshop: Workshop, wanted: str | None) -> Task:
    if wanted is None:
        world = workshop.one_world("a server without --task", remedy="name a task with --task")
        return workshop.pools.sample(world.name)
    names = [name for name, pool in workshop.recipe.pools.items() if pool.sealed is None]
    found = next((task for name in names for task in workshop.pool(name) if task.id == wanted), None)
    if found is None:
        raise InputError(f"no task {wanted!r} in the pools {', '.join(names)}")
    return found


async def _over_stdio(world: WorldServer) -> None:
    server = world.server()
    async with world.alone(), stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _over_http(world: WorldServer, port: int) -> None:
    import uvicorn

    app = world.server_with_sessions().streamable_http_app(host=HOST)
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=port, log_level="warning"))
    say(f"serving http://{HOST}:{port}/mcp until Ctrl-C")
    try:
        server.run()
    except SystemExit:
        raise InputError(f"port {port} of {HOST} can't be opened; is another program using it?") from None


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=_wrapped(tool.result),
        annotations=types.ToolAnnotations(read_only_hint=tool.read_only),
    )


def _wrapped(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """The result's schema as MCP has it: of an object."""
    if not result or result.get("type") == "object":
        return result or None
    inner = {key: value for key, value in result.items() if key != "$defs"}
    definitions = {"$defs": result["$defs"]} if "$defs" in result else {}
    return {"type": "object", "properties": {RESULT: inner}, "required": [RESULT], **definitions}
