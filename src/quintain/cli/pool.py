"""The command line of `quintain pool`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from quintain.cli.output import add_json, printed, stated


def add_pool(commands: Any) -> None:
    """Adds the command."""
    one = commands.add_parser(
        "pool",
        help="seal a pool of evaluation tasks, or search a corpus for them",
        description="A sealed pool is encrypted, and a log says who opened it, when, and for which checkpoint.",
    )
    actions = one.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = actions.add_parser(
        "seal",
        help="encrypt a pool of a recipe",
        description="Encrypts a pool with a key file (made if it does not exist) and begins its log. Then the recipe "
        'names `sealed = "FILE"` and `key = "FILE"` in place of `file` or `split`.',
    )
    action.add_argument("recipe", type=Path, metavar="RECIPE", help="names the pool")
    action.add_argument("pool", metavar="POOL", help="which pool of the recipe")
    action.add_argument("--out", type=Path, required=True, metavar="FILE", help="the sealed file to write")
    action.add_argument("--key", type=Path, required=True, metavar="FILE", help="the key file; keep it apart")
    add_json(action)
    action.set_defaults(command=_seal)
    action = actions.add_parser(
        "audit",
        help="search files for the tasks of a recipe's evaluation pools; exit 1 if there are any",
        description="Reads JSON Lines, JSON and text files, or folders of them (a run's, for one), and prints every "
        "text that gives a task away beside the task. Sealed pools are opened for it, which their log says.",
    )
    action.add_argument("recipe", type=Path, metavar="RECIPE", help="names the pools")
    action.add_argument("files", type=Path, nargs="+", metavar="FILE", help="what is searched")
    add_json(action)
    action.set_defaults(command=_audit)


def _seal(options: argparse.Namespace) -> int:
    from quintain.commands.pools import seal_pool

    return stated(lambda: seal_pool(options.recipe, options.pool, options.out, options.key), options.json)


def _audit(options: argparse.Namespace) -> int:
    from quintain.commands.pools import audit_files

    found = printed(lambda: audit_files(options.recipe, options.files), options.json)
    return 1 if found["findings"] else 0
