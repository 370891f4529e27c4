"""Checks a built site: every link and asset is a file of it, anchors included; nothing is loaded from elsewhere."""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ASSETS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}


class Page(HTMLParser):
    """Ids and references of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[bool, str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what a tag is called and what it points at."""
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if value and (tag, name) in ASSETS | {("a", "href")}:
                self.links.append(((tag, name) in ASSETS, value))


def broken(site: Path) -> list[str]:
    """What is wrong, one line each.

    Args:
        site: folder of the built site.
    """
    page = cache(Page)
    return [
        f"{path.relative_to(site)}: {link}"
        for path in sorted(site.rglob("*.html"))
        for is_asset, link in page(path).links
        if not _resolves(path, link, is_asset, page)
    ]


def _resolves(path: Path, link: str, is_asset: bool, page: type[Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return not is_asset and parts.scheme in ("http", "https", "mailto")
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return False
    return not parts.fragment or target.suffix != ".html" or unquote(parts.fragment) in page(target).ids


if __name__ == "__main__":
    found = broken(Path(sys.argv[1]))
    print("\n".join(found) or "all links resolve")
    sys.exit(1 if found else 0)
