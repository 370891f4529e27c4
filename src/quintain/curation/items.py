"""What the contamination scan reads: every text in files of any kind the project writes or a corpus comes in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from quintain.curation.contamination import Item
from quintain.interface.errors import InputError
from quintain.interface.files import files_under, numbered_lines

TEXT = (".txt", ".md", ".rst", ".html", ".htm", ".csv", ".tsv")
RECORDS = (".jsonl", ".ndjson", ".json")
BLOCK = 1 << 16
"""Characters of a text file that make one item."""
SHORTEST = 4
"""Texts of fewer characters give nothing away."""


def read_items(path: Path, kinds: tuple[str, ...] = TEXT + RECORDS) -> Iterator[Item]:
    """All texts of a file, or of the files in a folder and below it, one at a time.

    Args:
        path: file or folder.
        kinds: endings of the files of a folder that are read; a file that is named itself is always read.

    Raises:
        InputError: there is no such file or folder, a line is no JSON, or a file holds something else than text.
    """
    if not path.exists():
        raise InputError(f"no such file or folder: {path}")
    for file in files_under(path):
        if file.suffix not in kinds and file != path:
            continue
        yield from _lines(file) if file.suffix in RECORDS else _blocks(file)


def unread(path: Path) -> Counter[str]:
    """How many files of a folder and below it `read_items` passes over, by their ending."""
    files = (
        file for file in files_under(path) if file != path and file.is_file() and file.suffix not in TEXT + RECORDS
    )
    return Counter(file.suffix or file.name for file in files)


def texts_of(value: Any) -> Iterator[str]:
    """Every text of a JSON value; a text that is JSON itself, as arguments are in a journal, is read too."""
    if isinstance(value, str):
        inner = _unescaped(value)
        yield from texts_of(inner) if inner is not None else (value,)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, str | dict | list):  # most of a journal is token ids
                yield from texts_of(item)


def _unescaped(text: str) -> Any:
    if text[:1] not in '{["' or text[-1:] not in '}]"':
        return None
    try:
        found = orjson.loads(text)
    except ValueError:
        return None  # a text that only looks like JSON
    return None if found == text else found


def _lines(file: Path) -> Iterator[Item]:
    """Texts of each line, or of the whole where the file is one JSON value."""
    for number, line in numbered_lines(file):
        where = f"{file}:{number}"
        try:
            record = orjson.loads(line)
        except ValueError as error:
            if number == 1 and file.suffix == ".json":
                yield from _whole(file)
            elif line.endswith(b"\n"):
                raise InputError(f"{where}: not valid JSON: {error}") from None
            return  # a journal's last line may be torn
        yield from (Item(where, text) for text in texts_of(record) if len(text) >= SHORTEST)


def _whole(file: Path) -> Iterator[Item]:
    try:
        record = orjson.loads(file.read_bytes())
    except ValueError as error:
        raise InputError(f"{file}: not valid JSON: {error}") from None
    yield from (Item(str(file), text) for text in texts_of(record) if len(text) >= SHORTEST)


def _blocks(file: Path) -> Iterator[Item]:
    with file.open("rb") as raw:
        if b"\0" in raw.read(BLOCK):
            raise InputError(f"{file} is no text in UTF-8: convert it to one of {', '.join(TEXT + RECORDS)}")
    with file.open(encoding="utf-8", errors="replace") as stream:
        begin, size, block = 1, 0, []
        for number, line in enumerate(stream, start=1):
            block.append(line)
            size += len(line)
            if size >= BLOCK:
                yield Item(f"{file}:{begin}", "".join(block))
                begin, size, block = number + 1, 0, []
        if block:
            yield Item(f"{file}:{begin}", "".join(block))
