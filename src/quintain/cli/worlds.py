"""The command line of `quintain worlds`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from quintain.cli.output import add_json, finish
from quintain.interface.errors import InputError

EndpointOf = Callable[[argparse.Namespace], dict[str, Any] | None]


def add_worlds(commands: Any, endpoint_of: EndpointOf) -> None:
    """Adds the command.

    Args:
        commands: where it is added.
        endpoint_of: keys of the `endpoint` table that `--agent` stands for.
    """
    one = commands.add_parser("worlds", help="make a world of your own from tables", description="Worlds of your own.")
    actions = one.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = actions.add_parser(
        "new",
        help="a world with tools, tasks, verifier and recipe from a database or CSV files",
        description="Reads a SQLite file, an .sql script or CSV files, and writes a folder that is yours: a world with "
        "read and write tools, tasks of rising levels, and a recipe. A task is kept only if its reference solution "
        "succeeds and silent, random and spoiled solutions fail. With a model, its pass rate is printed by level.",
    )
    action.add_argument(
        "sources", type=Path, nargs="+", metavar="FILE", help="*.sqlite, *.sql, *.csv, or a folder of *.csv"
    )
    action.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new folder")
    action.add_argument("--name", default=None, help="of the world (default: the folder's name)")
    action.add_argument("--tables", default="", metavar="A,B", help="take only these tables")
    action.add_argument("--tasks", type=int, default=40, help="tasks of each level, for training and for evaluation")
    action.add_argument("--languages", default="en", metavar="en,zh", help="of the prompts (default: en)")
    action.add_argument("--seed", type=int, default=0, help="of all draws")
    action.add_argument("--model", default=None, help="path or hub id of a model to measure")
    action.add_argument("--agent", default=None, metavar="openai:MODEL", help="a model behind a server to measure")
    action.add_argument("--base-url", default=None, metavar="URL", help="the server's address")
    add_json(action)
    action.set_defaults(command=partial(_new, endpoint_of), price_in=0.0, price_out=0.0)


def _new(endpoint_of: EndpointOf, options: argparse.Namespace) -> int:
    from quintain.commands.new_world import new_world
    from quintain.commands.new_world.measured import measured_agent

    if options.tasks < 1:
        raise InputError(f"--tasks {options.tasks}: give at least 1")

    def work() -> dict[str, Any]:
        return new_world(
            options.sources,
            options.out,
            name=options.name,
            tables=[name for name in options.tables.split(",") if name],
            count=options.tasks,
            languages=[name for name in options.languages.split(",") if name],
            seed=options.seed,
            agent=measured_agent(options.model, endpoint_of(options)),
        )

    return finish(work, options.json)
