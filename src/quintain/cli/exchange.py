"""The command line of `import`, `curate` and `export`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from quintain.cli.output import add_json, stated

EXCHANGED = ("messages", "sharegpt", "atif")
"""Formats of trajectories that are read and written."""

MODELS = ("model", "adapter", "gguf")
"""Formats of a trained model."""


def add_exchange(commands: Any) -> None:
    """Adds the three commands."""
    one = commands.add_parser(
        "import",
        help="other programs' trajectories become a journal to curate and train on",
        description="Reads conversations with `messages` and `tools` (OpenAI, TRL), ShareGPT or ATIF into a folder for "
        "a curate stage to name under `imports`. What can't be read without guessing is listed there with its line.",
    )
    one.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="JSON Lines or JSON; a folder: its *.json files"
    )
    one.add_argument("--format", choices=EXCHANGED, default="messages", help="default: messages")
    one.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new folder")
    one.add_argument("--verdict", choices=("success", "failure"), default=None, help="of records that state none")
    one.add_argument("--strict", action="store_true", help="stop at the first record that can't be read")
    add_json(one)
    one.set_defaults(command=_import)

    one = commands.add_parser(
        "curate",
        help="choose what is learnt from episodes, without a recipe",
        description="Does what a curate stage does, with folders of episodes: checks, filters, duplicates, caps, "
        "balance, the share of failures and the loss mask. `quintain export` writes the result for other trainers.",
    )
    one.add_argument(
        "folders", type=Path, nargs="+", metavar="FOLDER", help="RUN/STAGE, or a folder of `quintain import`"
    )
    one.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="for lessons.jsonl, rejected.jsonl")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of `mix`, as in a recipe")
    add_json(one)
    one.set_defaults(command=_curate)

    one = commands.add_parser(
        "export",
        help="write a trained model, or episodes, for other programs",
        description="Writes a trained model as transformers, vLLM and llama.cpp serve it; or the episodes of a stage's "
        "folder or of an import; or the lessons of a curate stage with a `weight` of 0 at each assistant message that "
        "carries no loss. Formats of a model: model (a folder with all weights), adapter (the same with a LoRA stage's "
        "adapter alone), gguf (one file). Of episodes: messages, sharegpt, atif, inspect (an evaluation's log).",
    )
    one.add_argument(
        "folder", type=Path, metavar="FOLDER", help="RUN/STAGE; a model also by RUN, episodes by an import's folder"
    )
    one.add_argument("--format", choices=(*MODELS, *EXCHANGED, "inspect"), default="messages", help="default: messages")
    one.add_argument("--out", type=Path, required=True, metavar="PATH", help="a new file or folder")
    add_json(one)
    one.set_defaults(command=_export)


def _import(options: argparse.Namespace) -> int:
    from quintain.commands.exchange import import_trajectories

    arguments = (options.files, options.format, options.out, options.verdict, options.strict)
    return stated(lambda: import_trajectories(*arguments), options.json)


def _curate(options: argparse.Namespace) -> int:
    from quintain.commands.exchange import curate_folders

    return stated(lambda: curate_folders(options.folders, options.set, options.out), options.json)


def _export(options: argparse.Namespace) -> int:
    if options.format in MODELS:
        from quintain.export.model import export_model

        return stated(lambda: export_model(options.folder, options.format, options.out), options.json)
    from quintain.commands.exchange import export_trajectories

    return stated(lambda: export_trajectories(options.folder, options.format, options.out), options.json)
