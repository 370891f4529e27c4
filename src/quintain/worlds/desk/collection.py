"""A collection of documents: titles, texts in pages, a search index and a digest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.interface.words import fold
from quintain.worlds.desk.search import Ranking

PAGE_WIDTH = 320
"""Characters of one page of a document, about 100 tokens of English; a Chinese character counts four times."""

HITS = 3
"""Most hits of one search."""

SNIPPET_CHARACTERS = 40
"""Most characters of the text shown with a hit."""

_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")


@dataclass(frozen=True, slots=True)
class Document:
    """A title, unique in its collection, and a text."""

    title: str
    text: str

    def pages(self) -> list[str]:
        """The text in pages of at most `PAGE_WIDTH`."""
        return pages_of(self.text, PAGE_WIDTH)

    def snippet(self) -> str:
        """The first sentence below headings, at most `SNIPPET_CHARACTERS`; "" if the title says as much."""
        first = _SENTENCE.split(self._body(), maxsplit=1)[0].strip().rstrip(".。")
        if fold(first) in fold(self.title):
            return ""
        return first if len(first) <= SNIPPET_CHARACTERS else first[: SNIPPET_CHARACTERS - 3].rstrip() + "..."

    def _body(self) -> str:
        """The text without the title and the headings it begins with."""
        text = self.text.strip()
        first, _, rest = text.partition("\n")
        while rest and (first.startswith("#") or fold(first.strip()) in fold(self.title)):
            text = rest.strip()
            first, _, rest = text.partition("\n")
        return text


def pages_of(text: str, width: int) -> list[str]:
    """A text in pieces of at most `width`, cut between words where there is one to cut at."""
    text, pages, at = text.strip(), [], 0
    while at < len(text):
        window = text[at : at + width]
        fit = _fitting(window, width)
        if at + fit < len(text):
            cut = max(window.rfind(mark, fit // 2, fit) for mark in (" ", "\n", "。"))
            fit = fit if cut < 0 else cut + 1
        pages.append(window[:fit].strip())
        at += fit
        while at < len(text) and text[at].isspace():
            at += 1
    return pages or [""]


def _fitting(window: str, width: int) -> int:
    """How many characters from the start fit on one page; a Chinese character counts four times."""
    widths = accumulate(4 if "㐀" <= char <= "鿿" else 1 for char in window)
    return sum(1 for one in widths if one <= width)


class Collection:
    """Documents with a search index. Read-only after construction, so episodes share one.

    Args:
        documents: in an order that stays the same.
        name: for the digest and messages.
        skipped: how many files were left out, by reason.

    Raises:
        InputError: there is no document.
    """

    def __init__(self, documents: Iterable[Document], name: str, skipped: dict[str, int] | None = None) -> None:
        self.documents = tuple(documents)
        self.name = name
        self.skipped = dict(skipped or {})
        if not self.documents:
            raise InputError(f"collection {name!r}: no document")
        self._by_title = {fold(document.title): document for document in reversed(self.documents)}
        self._ranking = Ranking([(document.title, document.text) for document in self.documents])

    def __len__(self) -> int:
        return len(self.documents)

    def search(self, query: str) -> list[Document]:
        """The at most `HITS` best documents, best first."""
        return [self.documents[index] for index in self._ranking.best(query, HITS)]

    def find(self, title: str) -> Document | None:
        """The document of a title; case, accents and width variants do not count."""
        return self._by_title.get(fold(title.strip()))

    @cached_property
    def digest(self) -> str:
        """Digest of all titles and texts."""
        content: list[Any] = [[document.title, document.text] for document in self.documents]
        return digest(content)
