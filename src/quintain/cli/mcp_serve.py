"""The command line of `quintain mcp-serve`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_mcp_serve(commands: Any) -> None:
    """Adds the command."""
    one = commands.add_parser(
        "mcp-serve",
        help="serve a recipe's world as an MCP server, for other agents",
        description="Offers the world's tools over standard input and output, or over HTTP on this machine. Every "
        "session has a world of its own, reset to one task; the MCP prompt `task` says what to do.",
    )
    one.add_argument("recipe", type=Path, metavar="RECIPE", help="names the world and its pools")
    one.add_argument("--task", default=None, metavar="ID", help="which task (default: the first of the first pool)")
    one.add_argument("--port", type=int, default=None, help="streamable HTTP on http://127.0.0.1:PORT/mcp instead")
    one.set_defaults(command=_serve)


def _serve(options: argparse.Namespace) -> int:
    from quintain.commands.mcp_serve import serve

    serve(options.recipe, options.task, options.port)
    return 0
