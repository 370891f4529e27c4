"""A benchmark that is one recipe's run: run it now, or read one that is done."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.results import write_result

Figures = dict[str, Any]


def main(
    about: str | None, run: Callable[[Path], object], read: Callable[[Path], Figures], show: Callable[[Figures], None]
) -> None:
    """The command line of such a benchmark.

    Args:
        about: the script's docstring.
        run: does the run in this folder.
        read: figures of the run in this folder.
        show: prints them as a table.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=None, help="a finished run (default: run it now)")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.run or Path(scratch) / "run"
        if options.run is None:
            run(folder)
        figures = read(folder)
    show(figures)
    write_result(options.out, figures)
