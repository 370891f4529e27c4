"""Documents on disk as titles and texts: text, Markdown, HTML and JSON Lines, whatever their encoding.

Everything that is left out or repaired is counted by reason; nothing is dropped silently. JSON Lines are read
line by line, so a corpus may be larger than the memory of the machine.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from quintain.interface.errors import InputError
from quintain.interface.files import files_under
from quintain.interface.markup import block_lines
from quintain.interface.words import encodable

MAX_BYTES = 20_000_000
"""A larger single document (or line of JSON Lines) is left out: it is a dump, not a text about one thing."""

MAX_TITLE = 100
"""Longer titles are cut, in characters."""

REENCODED = "read from another encoding than UTF-8"
"""Counted among the reasons, but what was read is kept."""

_TEXT = {".txt", ".text"}
_MARKDOWN = {".md", ".markdown"}
_HTML = {".html", ".htm"}
_LINES = {".jsonl", ".ndjson"}

_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""How a text of two or four bytes a character begins."""
_HEAD = 200_000
"""Bytes that an encoding is recognised from."""
_HIGH = bytes(range(128, 256))

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
# each looks at no more than a line or a bound from where it begins: a file of brackets or blanks must not take hours
_LINK = re.compile(r"!?\[([^\[\]]{0,1000})\]\([^)]{0,2000}\)")
_MARKUP = re.compile(r"^[ \t]{0,100}(?:[-*+>]|\d{1,9}\.|#{1,6})[ \t]+|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", re.MULTILINE)
_TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """A text about one entity.

    Attributes:
        title: the entity.
        text: what is said about it.
        source: where it came from: a path, a world's collection, an episode.
        time: ISO date it is from; "" if unknown.
    """

    title: str
    text: str
    source: str
    time: str = ""


class Skip(Exception):
    """A file or line is left out; the message is the reason that is counted."""


def read_documents(paths: Iterable[Path], skipped: Counter[str], *, titled: bool = True) -> Iterator[Document]:
    """Every document of files and folders, in the order of their paths, one at a time.

    A text file is titled by its name, Markdown by its `# heading` (each one begins a document), a page by its
    `<title>`, a line of JSON Lines by `title` with its `text` (and `source`, `time`, where given).

    Args:
        paths: files or folders.
        skipped: counts what is left out or repaired, by reason.
        titled: leave out lines of JSON Lines without a title; otherwise they are titled by their file.

    Raises:
        InputError: a path does not exist.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"documents not found: {path}; give a folder of .txt, .md, .html or .jsonl files")
        for file in files_under(path, lambda: skipped.update(["folders that can't be read"])):
            try:
                yield from _read(file, skipped, titled)
            except Skip as reason:
                skipped[str(reason)] += 1
            except OSError:
                skipped["can't be read"] += 1


def _read(file: Path, skipped: Counter[str], titled: bool) -> Iterator[Document]:
    kind = file.suffix.lower()
    if kind not in _TEXT | _MARKDOWN | _HTML | _LINES:
        raise Skip("of another kind")
    if not file.is_file():  # a link to nowhere, a pipe
        raise Skip("can't be read")
    time = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    if kind in _LINES:
        with file.open("rb") as stream:
            wide = stream.peek(2).startswith(_WIDE)
            if not wide:
                yield from _lines(stream, file, time, skipped, None if titled else file.stem)
                return
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise Skip(f"larger than {MAX_BYTES // 1_000_000} MB")
    text = decode(file.read_bytes(), skipped)
    if not text.strip():
        raise Skip("empty")
    if kind in _LINES:  # in an encoding whose lines no byte ends
        yield from _lines(BytesIO(text.encode()), file, time, skipped, None if titled else file.stem)
        return
    found = _page(text, file.stem) if kind in _HTML else _sections(text, file.stem, kind in _MARKDOWN)
    for title, body in found:
        yield _document(title, body, str(file), time)


def decode(data: bytes, skipped: Counter[str]) -> str:
    """Bytes as text: UTF-8, or what `charset-normalizer` recognises; lines in another encoding are read on their own.

    Raises:
        Skip: the data is binary.
    """
    if b"\0" in data and not data.startswith(_WIDE):
        raise Skip("binary")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        skipped[REENCODED] += 1
    lines = data.split(b"\n")
    odd = [line for line in lines if not _is_utf8(line)]
    if 2 * len(odd) > len(lines) or data.startswith(_WIDE):
        return data.decode(_encoding(data), errors="replace")
    other = _encoding(b"\n".join(odd))
    return "\n".join(line.decode() if _is_utf8(line) else line.decode(other, errors="replace") for line in lines)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _encoding(data: bytes) -> str:
    from charset_normalizer import from_bytes

    head = data[:_HEAD]
    if len(data) > _HEAD and not data.startswith(_WIDE):
        head = head.rstrip(_HIGH) or head  # a character cut in two is in no encoding
    best = from_bytes(head).best()
    if best is None:
        raise Skip("in no encoding known")
    return best.encoding


def _page(text: str, stem: str) -> list[tuple[str, str]]:
    try:
        from bs4 import BeautifulSoup
        from bs4.builder import ParserRejectedMarkup
    except ImportError:
        raise InputError("reading HTML needs beautifulsoup4: pip install 'quintain[synth]'") from None

    try:
        soup = BeautifulSoup(text, "html.parser")
    except (ParserRejectedMarkup, RecursionError):
        raise Skip("HTML that can't be parsed") from None
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for element in soup(["script", "style", "title", "nav"]):
        element.decompose()
    body = block_lines(soup)
    if not body:
        raise Skip("HTML without text")
    return [(title or stem, body)]


def without_markup(text: str) -> str:
    """Markdown as plain text: links by their words, no headings' `#`, bullets or emphasis."""
    return _MARKUP.sub("", _LINK.sub(r"\1", text))


def _sections(text: str, stem: str, markdown: bool) -> Iterator[tuple[str, str]]:
    """Title and body of each `# heading`; what comes before the first one belongs to the file's name."""
    if not markdown:
        yield stem, text
        return
    text = _LINK.sub(r"\1", _FENCE.sub("", text))
    pieces = _TITLE.split(text)
    titles = [stem, *(_unclosed(title) or stem for title in pieces[1::2])]
    found = [(title, _MARKUP.sub("", body)) for title, body in zip(titles, pieces[::2], strict=True)]
    full = [(title, body) for title, body in found if body.strip()]
    if not full:
        raise Skip("empty")
    yield from full


def _unclosed(title: str) -> str:
    """A heading without the closing `#` that may end it."""
    bare = title.rstrip().rstrip("#")
    return bare.rstrip() if bare.endswith((" ", "\t")) else title.rstrip()


def _lines(stream: IO[bytes], file: Path, time: str, skipped: Counter[str], untitled: str | None) -> Iterator[Document]:
    number = 0
    while line := stream.readline(MAX_BYTES):
        number += 1
        if not line.strip():
            continue
        try:
            if len(line) == MAX_BYTES and not line.endswith(b"\n"):
                _pass_over(stream)
                raise Skip(f"larger than {MAX_BYTES // 1_000_000} MB")
            yield _record(decode(line, skipped), f"{file}:{number}", time, untitled)
        except Skip as reason:
            skipped[str(reason)] += 1


def _pass_over(stream: IO[bytes]) -> None:
    """Reads on to the end of a line too long to hold."""
    while (rest := stream.readline(MAX_BYTES)) and not rest.endswith(b"\n"):
        pass


def _record(line: str, where: str, time: str, untitled: str | None) -> Document:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise Skip("lines that are not JSON") from None
    fields = record if isinstance(record, dict) else {}
    title, text = fields.get("title", untitled), fields.get("text")
    if not (isinstance(title, str) and isinstance(text, str)):
        raise Skip("lines without title and text")
    if not (title.strip() and text.strip()):
        raise Skip("empty")
    return _document(title, text, str(fields.get("source") or where), str(fields.get("time") or time))


def _document(title: str, text: str, source: str, time: str) -> Document:
    plain = " ".join(title.split())[:MAX_TITLE]
    return Document(encodable(plain), encodable(text), encodable(source), encodable(time))
