"""The command line of `quintain init`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from quintain.cli.output import add_json, finish


def add_init(commands: Any) -> None:
    """Adds the command."""
    one = commands.add_parser(
        "init",
        help="start a project of your own: a world, tasks, a recipe",
        description="Writes a folder that `quintain doctor` accepts and `quintain run` trains as it stands: a world of "
        "your own to change, or your tools or documents as a world, with first tasks made from them.",
    )
    one.add_argument("name", type=Path, metavar="NAME", help="the folder to make; names the world as well")
    source = one.add_mutually_exclusive_group()
    source.add_argument("--from-mcp", dest="mcp", metavar="COMMAND", help="that starts an MCP server, or its URL")
    source.add_argument("--from-functions", dest="functions", metavar="MODULE", help="its functions become tools")
    source.add_argument("--from-openapi", dest="openapi", type=Path, metavar="FILE", help="its operations become tools")
    source.add_argument("--from-docs", dest="docs", type=Path, metavar="FOLDER", help="questions about its documents")
    add_json(one)
    one.set_defaults(command=_init)


def _init(options: argparse.Namespace) -> int:
    from quintain.commands.init.sources import SOURCES, own

    given = next((kind for kind in SOURCES if getattr(options, kind) is not None), None)
    if given is None:
        return finish(lambda: own(options.name), options.json)
    return finish(lambda: SOURCES[given](options.name, getattr(options, given)), options.json)
