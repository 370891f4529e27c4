"""Reads a user's own folder of text, Markdown, HTML and JSON Lines files into a collection."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup

from quintain.interface.errors import InputError
from quintain.interface.markup import block_lines
from quintain.interface.words import fold
from quintain.worlds.desk.collection import Collection, Document

MAX_BYTES = 5_000_000
"""Larger files are skipped."""

MAX_TITLE = 100
"""Longer titles are cut, in characters."""

_TITLE = re.compile(r"\w[^.!?:;,|。！？：；，]{0,59}")
_TEXT = {".txt", ".text", ".md", ".markdown"}
_HTML = {".html", ".htm"}
_LINES = {".jsonl", ".ndjson"}


class Skip(Exception):
    """A file or line is left out; the message is the reason that is counted."""


def read_collection(path: Path) -> Collection:
    """Every readable file under a folder (or the one file given) as documents, in the order of their paths.

    A text file is one document titled by its first Markdown heading, by a short first line that a blank one follows,
    or by its name, a page by its `<title>`, a line of JSON Lines by `title` with its `text`. Titles that repeat get a
    number. Files that are empty, not UTF-8, binary, larger than `MAX_BYTES` or of another kind are skipped and counted
    by reason.

    Raises:
        InputError: the path does not exist, or nothing in it is readable.
    """
    if not path.exists():
        raise InputError(f"collection not found: {path}; give a folder of .txt, .md, .html or .jsonl files")
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    skipped: Counter[str] = Counter()
    found = [document for file in files for document in _documents(file, skipped)]
    if not found:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(skipped.items())) or "no file"
        raise InputError(f"collection {path}: no readable document ({reasons}); .txt, .md, .html and .jsonl are read")
    return Collection(_numbered(found), path.name, dict(skipped))


def _documents(file: Path, skipped: Counter[str]) -> Iterator[Document]:
    try:
        yield from _read(file, skipped)
    except Skip as reason:
        skipped[str(reason)] += 1


def _read(file: Path, skipped: Counter[str]) -> Iterator[Document]:
    kind = file.suffix.lower()
    if kind not in _TEXT | _HTML | _LINES:
        raise Skip("of another kind")
    text = _decoded(file)
    if kind in _LINES:
        yield from _lines(text, skipped)
    elif kind in _HTML:
        yield _page(text, file.stem)
    else:
        yield Document(_heading(text) or _title_line(text) or file.stem, text.strip())


def _decoded(file: Path) -> str:
    try:
        data = file.read_bytes() if file.stat().st_size <= MAX_BYTES else None
    except OSError:
        raise Skip("unreadable") from None
    if data is None:
        raise Skip(f"larger than {MAX_BYTES // 1_000_000} MB")
    if b"\0" in data:
        raise Skip("binary")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Skip("not UTF-8") from None
    if not text.strip():
        raise Skip("empty")
    return text


def _page(text: str, stem: str) -> Document:
    soup = BeautifulSoup(text, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for element in soup(["script", "style", "title"]):
        element.decompose()
    body = block_lines(soup)
    if not body:
        raise Skip("empty")
    return Document(title or stem, body)


def _heading(text: str) -> str:
    first = text.strip().split("\n", 1)[0]
    return first.lstrip("#").strip() if first.startswith("#") else ""


def _title_line(text: str) -> str:
    """The first line, if it reads like a title: a few words without the marks of a sentence or a list."""
    first, _, rest = text.strip().partition("\n")
    blank, _, body = rest.partition("\n")
    title = first.strip()
    return title if body.strip() and not blank.strip() and _TITLE.fullmatch(title) else ""


def _lines(text: str, skipped: Counter[str]) -> Iterator[Document]:
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            yield _record(line)
        except Skip as reason:
            skipped[str(reason)] += 1


def _record(line: str) -> Document:
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        raise Skip("lines that are not JSON") from None
    title, text = (record.get("title"), record.get("text")) if isinstance(record, dict) else (None, None)
    if not (isinstance(title, str) and isinstance(text, str) and title.strip() and text.strip()):
        raise Skip("lines without title and text")
    if any("\ud800" <= char <= "\udfff" for char in title + text):
        raise Skip("lines with half a character")
    return Document(title.strip(), text.strip())


def _numbered(documents: list[Document]) -> Iterator[Document]:
    """The documents with titles made unique: `Notes`, `Notes (2)`, ..."""
    taken: set[str] = set()
    for document in documents:
        plain = " ".join(document.title.split())[:MAX_TITLE]
        title, number = plain, 1
        while fold(title) in taken:
            number += 1
            title = f"{plain} ({number})"
        taken.add(fold(title))
        yield Document(title, document.text)
