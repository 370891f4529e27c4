"""Progress of long work: a bar with rate and time left on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol


class Advance(Protocol):
    """Moves the bar by `amount` and shows `note` behind it."""

    def __call__(self, amount: float = 1, note: str = "") -> None:
        """Advances."""
        ...


@contextmanager
def progress(label: str, total: float | None, unit: str = "") -> Iterator[Advance]:
    """A progress bar on standard error.

    Args:
        label: what is being done.
        total: how much there is to do; None if unknown.
        unit: unit of `total`, for the rate shown.
    """
    if not sys.stderr.isatty():
        yield lambda amount=1, note="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(label, total=total, rate="", note="")

        def advance(amount: float = 1, note: str = "") -> None:
            bars.update(bar, advance=amount, note=note)
            speed = bars.tasks[0].speed
            bars.update(bar, rate=f"{speed:.1f} {unit}/s" if speed else "")

        yield advance


_logs: list[IO[str]] = []


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Adds what is said meanwhile to a log file, with the time; an error that ends the block is its last line."""
    with path.open("a", encoding="utf-8") as file:
        _logs.append(file)
        try:
            yield
        except BaseException as error:
            _log(file, ": ".join(filter(None, (f"ended by {type(error).__name__}", str(error)))))
            raise
        finally:
            _logs.remove(file)


def say(line: str) -> None:
    """One line for the person at the terminal, on standard error, so that `--json` output stays clean."""
    print(line, file=sys.stderr, flush=True)
    for file in _logs:
        _log(file, line)


def _log(file: IO[str], line: str) -> None:
    moment = datetime.now().astimezone().isoformat(timespec="seconds")
    print(moment, " ".join(line.splitlines()), file=file, flush=True)
