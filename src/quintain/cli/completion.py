"""The command line of `quintain completion`: tab completion for a shell, by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

MakeParser = Callable[[], argparse.ArgumentParser]


def add_completion(commands: Any, make_parser: MakeParser) -> None:
    """Adds the command.

    Args:
        commands: where it is added.
        make_parser: makes the parser that is completed.
    """
    one = commands.add_parser(
        "completion",
        help="print a script that completes commands, options and files in a shell",
        description="For bash: quintain completion bash > ~/.local/share/bash-completion/completions/quintain. "
        "For zsh: quintain completion zsh > DIRECTORY/_quintain, with DIRECTORY in $fpath.",
    )
    one.add_argument("shell", choices=("bash", "zsh", "tcsh"), metavar="SHELL", help="bash, zsh or tcsh")
    one.set_defaults(command=partial(_completion, make_parser))


def _completion(make_parser: MakeParser, options: argparse.Namespace) -> int:
    import shtab

    parser = make_parser()
    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser and of the commands below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
