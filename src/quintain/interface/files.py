"""Files on disk: written in one step, and read line by line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from quintain.interface.errors import InputError


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A new file beside `path` that takes its place when the block ends without an error, on disk by then.

    A reader sees the old file or the whole new one; after an error the old one stays.

    Args:
        path: what is replaced, or made; its folder must be there.
        mode: permissions of the new file, before the umask.
    """
    partial = path.with_name(path.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def files_under(path: Path, unreadable: Callable[[], object] = lambda: None) -> list[Path]:
    """A file itself, or every file of a folder and the folders in it, links to folders included, in order.

    Args:
        path: file or folder.
        unreadable: called for each folder whose files can't be listed.
    """
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    seen: set[str] = set()
    for folder, inner, names in os.walk(path, followlinks=True, onerror=lambda _: unreadable()):
        real = os.path.realpath(folder)
        if real in seen:  # a link that leads back
            inner.clear()
            continue
        seen.add(real)
        found += [Path(folder, name) for name in names]
    return sorted(found)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their numbers from 1, one at a time.

    They are bytes, because text lines also end at characters that JSON strings may hold (U+2028, U+0085).
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The records of a JSON Lines file with the numbers of their lines, one at a time.

    Raises:
        InputError: a line is not JSON; the message names it.
    """
    for number, line in numbered_lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not valid JSON: {error}") from None
        yield number, record
