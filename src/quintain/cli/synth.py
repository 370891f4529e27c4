"""The command `quintain synth`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quintain.cli.output import finish, judged
from quintain.interface.errors import InputError


def add_synth(commands: Any, add_out: Callable[[argparse.ArgumentParser, str | None], None]) -> None:
    """Adds the command.

    Args:
        commands: where it is added.
        add_out: adds `--out` and `--json`.
    """
    one = commands.add_parser(
        "synth",
        help="make training data from documents; show some and the price first; audit the judge",
        description="Runs a recipe's synthesis stages and what they read; `quintain run` goes on from there. "
        "`synth audit` measures the judge of the recipe's fas stage on plans whose truth is known, and exits with 1 "
        "below precision 0.90 or recall 0.95.",
    )
    one.add_argument("words", nargs="*", metavar="[audit] [RECIPE]", help="default recipe: the desk, offline")
    one.add_argument("--preview", type=int, default=None, metavar="N", help="show N samples of each kind and the price")
    add_out(one, "runs/synth")
    one.set_defaults(command=_synth, resumes=True)


def _synth(options: argparse.Namespace) -> int:
    from quintain.commands.commands import recipes_folder
    from quintain.pipeline import synth

    audits = options.words[:1] == ["audit"]
    named = options.words[audits:]
    if len(named) > 1 or (audits and options.preview is not None):
        raise InputError(f"synth: give one recipe, and `audit` or --preview, found {' '.join(options.words)}")
    recipe, folder = Path(named[0]) if named else recipes_folder() / "synth-desk.toml", Path(options.out)
    if audits:
        from quintain.commands.judge_audit import audit_judge

        return judged(lambda: audit_judge(recipe, folder), options.json)
    if options.preview is not None:
        from quintain.pipeline.preview import preview

        return finish(lambda: preview(recipe, folder, options.preview), options.json)
    return finish(lambda: synth.make(recipe, folder), options.json)
