"""A folder of pages, served and indexed."""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cached_property
from pathlib import Path, PurePosixPath

from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.worlds.desk.search import Ranking
from quintain.worlds.web.browser import MAX_BYTES, Browser, Refused, address_of
from quintain.worlds.web.page import Page
from quintain.worlds.web.server import serve_folder

HITS = 5
"""Most hits of one search."""

SUFFIXES = {".html", ".htm", ".xhtml"}


class Section:
    """The pages under one address, with a search index. An episode sees one section and nothing beside it."""

    def __init__(self, pages: list[Page]) -> None:
        self.pages = {page.address: page for page in pages}
        self._order = list(self.pages)
        self._ranking = Ranking([(page.title, page.text) for page in pages])

    def search(self, query: str) -> list[Page]:
        """The at most `HITS` best pages, best first."""
        return [self.pages[self._order[index]] for index in self._ranking.best(query, HITS)]


class Site:
    """Serves a folder as long as the process lives and reads its pages through the server, as an agent does.

    Args:
        folder: the pages; links between them are relative or begin with `/`.
        name: for messages.

    Raises:
        InputError: there is no such folder, or no HTML file in it.
    """

    def __init__(self, folder: Path, name: str) -> None:
        if not folder.is_dir():
            raise InputError(f"site not found: {folder}; give a folder of .html files")
        self.name = name
        self.skipped: Counter[str] = Counter()
        self._files = dict(self._readable(folder.resolve()))
        if not self._files:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items())) or "no file"
            raise InputError(f"site {folder}: no page ({reasons}); {', '.join(sorted(SUFFIXES))} files are read")
        self.browser = Browser(serve_folder(folder))
        self._sections: dict[str, Section] = {}

    def section(self, root: str) -> Section:
        """The pages under an address such as `/` or `/en/`, read at the first call.

        Raises:
            InputError: no page under it can be read.
        """
        if root not in self._sections:
            pages = [page for address in self._files if address.startswith(root) and (page := self._page(address))]
            if not pages:
                reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
                raise InputError(f"site {self.name!r}: no page under {root} can be read ({reasons or 'no file'})")
            self._sections[root] = Section(pages)
        return self._sections[root]

    @cached_property
    def digest(self) -> str:
        """Digest of all pages' addresses and bytes."""
        return digest(
            [[address, hashlib.sha256(file.read_bytes()).hexdigest()] for address, file in self._files.items()]
        )

    def _readable(self, folder: Path) -> list[tuple[str, Path]]:
        found = []
        for file in sorted(folder.rglob("*")):
            path = PurePosixPath(file.relative_to(folder).as_posix())
            reason = _unfit(file, path, folder)
            if reason:
                self.skipped[reason] += 1
            elif file.is_file():
                found.append((address_of(path), file))
        return found

    def _page(self, address: str) -> Page | None:
        try:
            return self.browser.page(address)
        except Refused as error:
            self.skipped[str(error).removeprefix(repr(address)).strip(": ")] += 1
            return None


def _unfit(file: Path, path: PurePosixPath, folder: Path) -> str:
    """Why a file is no page of the site; "" if it is one, or a folder."""
    if any(part.startswith(".") for part in path.parts):
        return "hidden"
    if any("\ud800" <= letter <= "\udfff" for letter in str(path)):
        return "named in bytes that are no UTF-8"
    if not file.resolve().is_relative_to(folder):
        return "links out of the folder"
    if file.is_dir():
        return ""
    if not file.is_file() or file.suffix.lower() not in SUFFIXES:
        return "of another kind"
    if file.stat().st_size > MAX_BYTES:
        return f"larger than {MAX_BYTES // 1_000_000} MB"
    return ""
