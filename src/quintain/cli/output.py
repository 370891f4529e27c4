"""What every command that reports a result prints: lines for a person, or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds `--json`, which every command with a result has."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON on standard output")


def stated(work: Callable[[], str], as_json: bool) -> int:
    """Prints a result that is one line; exit code 0."""
    return finish(lambda: {"lines": [work()]}, as_json)


def printed(work: Callable[[], dict[str, Any]], as_json: bool) -> dict[str, Any]:
    """Prints the result, and returns it."""
    with redirect_stdout(sys.stderr):  # what a world prints must not mix with the result
        result = work()
    if as_json:
        print(json.dumps(result, ensure_ascii=False, indent=1))
    else:
        for line in result["lines"]:
            print(line)
    return result


def finish(work: Callable[[], dict[str, Any]], as_json: bool) -> int:
    """Prints the result; exit code 0."""
    printed(work, as_json)
    return 0


def judged(work: Callable[[], dict[str, Any]], as_json: bool) -> int:
    """Prints the result; exit code 1 where it says that it did not pass."""
    return 0 if printed(work, as_json)["passed"] else 1
