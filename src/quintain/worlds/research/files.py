"""Text of documents that people keep as files: PDF, Word, Excel, PowerPoint, CSV, HTML and plain text."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import PurePath
from typing import Any

from quintain.interface.errors import InfraError
from quintain.worlds.web.page import NoPage, decoded, read_page

MAX_BYTES = 50_000_000
"""Larger files are refused, also what an Office file unpacks to."""

MAX_ROWS = 5_000
"""Rows read of one table."""


def text_of(name: str, data: bytes) -> str:
    """The text of a document, by its name's ending.

    Raises:
        NoPage: it is too large, damaged, of another kind, or holds no text.
        InfraError: the library that reads it is missing: no fault of the agent.
    """
    kind = PurePath(name).suffix.lower()
    if len(data) > MAX_BYTES:
        raise NoPage(f"has more than {MAX_BYTES // 1_000_000} MB")
    if kind not in READERS:
        raise NoPage(f"is of a kind that is not read; read are {', '.join(sorted(READERS))}")
    try:
        if kind in _OFFICE:
            _check_unpacked(data)
        lines = [line.rstrip() for line in READERS[kind](data)]
    except NoPage:
        raise
    except ModuleNotFoundError as error:
        raise InfraError(
            f"reading {kind} files needs the package {error.name}: pip install 'quintain[research]'"
        ) from None
    except Exception as error:  # the parsers raise errors of many kinds on damaged files
        raise NoPage(f"is damaged: {type(error).__name__}") from None
    text = "\n".join(line for line in lines if line.strip())
    if not text:
        raise NoPage("holds no text")
    return text


def _check_unpacked(data: bytes) -> None:
    """Refuses archives that unpack to far more than they are."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(one.file_size for one in archive.infolist())
    if size > MAX_BYTES:
        raise NoPage(f"unpacks to {size / 1e6:.0f} MB > {MAX_BYTES / 1e6:.0f} MB allowed")


def _pdf(data: bytes) -> Iterator[str]:
    from pypdf import PdfReader

    for number, page in enumerate(PdfReader(io.BytesIO(data)).pages, start=1):
        text = page.extract_text()
        if text.strip():
            yield f"[page {number}]"
            yield from text.split("\n")


def _docx(data: bytes) -> Iterator[str]:
    from docx import Document
    from docx.table import Table

    for part in Document(io.BytesIO(data)).iter_inner_content():
        if isinstance(part, Table):
            yield from (_row(cell.text for cell in row.cells) for row in islice(part.rows, MAX_ROWS))
        else:
            yield part.text


def _xlsx(data: bytes) -> Iterator[str]:
    from openpyxl import load_workbook

    for sheet in load_workbook(io.BytesIO(data), read_only=True, data_only=True).worksheets:
        yield f"[sheet {sheet.title}]"
        yield from (_row(row) for row in islice(sheet.iter_rows(values_only=True), MAX_ROWS))


def _pptx(data: bytes) -> Iterator[str]:
    from pptx import Presentation

    for number, slide in enumerate(Presentation(io.BytesIO(data)).slides, start=1):
        yield f"[slide {number}]"
        for shape in slide.shapes:
            if shape.has_text_frame:
                yield from shape.text_frame.text.split("\n")
            if shape.has_table:
                yield from (_row(cell.text for cell in row.cells) for row in shape.table.rows)


def _csv(data: bytes) -> Iterator[str]:
    """Rows as they are: one that is longer or shorter than the others is no reason to lose a table."""
    text = decoded(data)
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count)
    yield from (_row(row) for row in islice(csv.reader(io.StringIO(text), delimiter=delimiter), MAX_ROWS))


def _html(data: bytes) -> Iterator[str]:
    yield from read_page(decoded(data), "/", _no_link).text.split("\n")


def _plain(data: bytes) -> Iterator[str]:
    yield from decoded(data).split("\n")


def _no_link(reference: str, base: str) -> str:
    raise ValueError(reference)


def _row(cells: Any) -> str:
    return " | ".join("" if cell is None else " ".join(str(cell).split()) for cell in cells).rstrip(" |")


_OFFICE = {".docx", ".xlsx", ".pptx"}
READERS: dict[str, Callable[[bytes], Iterator[str]]] = {
    ".pdf": _pdf,
    ".docx": _docx,
    ".xlsx": _xlsx,
    ".pptx": _pptx,
    ".csv": _csv,
    ".tsv": _csv,
    ".html": _html,
    ".htm": _html,
    **dict.fromkeys((".txt", ".md", ".json", ".jsonl", ".xml", ".py"), _plain),
}
"""By a name's ending, what gives the lines of a file."""
