"""One HTML page as an agent reads it: text with numbered links, headings, the addresses behind the numbers.

`lxml` parses (broken pages are the rule), `inscriptis` lays the text out: lists, tables and line breaks come out as a
browser would show them, and what inline style hides stays hidden. A link is followed by its number in
brackets, `Paris [3]`; one number stands for one address. Links that leave the site have no number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bs4.dammit import UnicodeDammit
from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.html_engine import Inscriptis
from inscriptis.model.config import ParserConfig
from lxml import etree, html

from quintain.worlds.desk.collection import pages_of

Resolve = Callable[[str, str], str]
"""From a reference and the address it stands on to an address of the site; raises `ValueError` if it leaves it."""

_CONFIG = ParserConfig(css=CSS_PROFILES["strict"].copy(), table_cell_separator=" | ")
_GAP = re.compile(r"(?<=\S)[ \t\xa0]{2,}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


class NoPage(ValueError):
    """What an address holds can't be read as a page; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link that stays on the site.

    Attributes:
        number: as the text shows it; links to one address share it.
        text: what is underlined.
        address: where it leads.
    """

    number: int
    text: str
    address: str


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows.

    Attributes:
        address: its place on the site.
        title: of `<title>`, else of the first heading, else the address.
        text: laid out, links numbered.
        links: in the order of the page, those with text only.
        headings: texts of `h1` to `h6`, in order.
    """

    address: str
    title: str
    text: str
    links: tuple[Link, ...] = ()
    headings: tuple[str, ...] = ()

    def parts(self, width: int) -> list[str]:
        """The text in parts of at most `width` characters; a Chinese character counts four times."""
        return list(_parts(self.text, width))

    def target(self, number: int) -> str | None:
        """The address behind a number."""
        return next((link.address for link in self.links if link.number == number), None)


@lru_cache(maxsize=1024)
def _parts(text: str, width: int) -> tuple[str, ...]:
    return tuple(pages_of(text, width))


def decoded(data: bytes, charset: str = "") -> str:
    """Bytes as text: by byte order mark, the given charset, the page's own declaration, or what the bytes look like.

    Raises:
        NoPage: the data is binary, or in no encoding known.
    """
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NoPage("is binary")
    known = [charset] if charset else []
    text = UnicodeDammit(data, known_definite_encodings=known, user_encodings=["utf-8"], is_html=True).unicode_markup
    if text is None:
        raise NoPage("is in no encoding known")
    return text


def read_page(text: str, address: str, resolve: Resolve) -> Page:
    """Reads HTML.

    Raises:
        NoPage: it has no text, or is nested too deep to be read whole.
    """
    parser = html.HTMLParser(encoding="utf-8")
    plain = _CONTROL.sub("", text).encode("utf-8", "replace")
    if not plain.strip():
        raise NoPage("is empty")
    try:
        tree = html.document_fromstring(plain, parser=parser)
    except etree.ParserError:
        raise NoPage("holds no text") from None
    if any("depth" in one.message for one in parser.error_log):
        raise NoPage("nests its elements too deep to be read")
    title = _title(tree)
    headings = tuple(filter(None, (_text(one) for one in tree.iter(*_HEADINGS))))
    images = sum(1 for _ in tree.iter("img"))
    links = _number_links(tree, address, resolve)
    shown = _tidy(Inscriptis(tree, _CONFIG).get_text())
    if not shown:
        raise NoPage(f"holds no text, only {images} images" if images else "holds no text")
    return Page(address, title or (headings[0] if headings else address), shown, links, headings)


def plain_page(text: str, address: str) -> Page:
    """A text file as a page, titled by its address.

    Raises:
        NoPage: there is no text.
    """
    shown = _tidy(_CONTROL.sub("", text))
    if not shown:
        raise NoPage("is empty")
    return Page(address, address.rsplit("/", 1)[-1], shown)


def _title(tree: Any) -> str:
    found = tree.find(".//title")
    return _text(found) if found is not None else ""


def _text(element: Any) -> str:
    return " ".join(str(element.text_content()).split())


def _number_links(tree: Any, address: str, resolve: Resolve) -> tuple[Link, ...]:
    """Writes the number behind every link of the tree, and returns the links."""
    base = next((str(one.get("href")) for one in tree.iter("base") if one.get("href")), "")
    numbers: dict[str, int] = {}
    links = []
    for anchor in list(tree.iter("a")):
        text, reference = _text(anchor), anchor.get("href")
        if not text or not reference or reference.startswith("#"):
            continue
        try:
            home = resolve(base, address) if base else address
            target = resolve(reference, home)
        except ValueError:
            continue
        if target == address:
            continue
        number = numbers.setdefault(target, len(numbers) + 1)
        links.append(Link(number, text, target))
        if len(anchor):
            anchor[-1].tail = f"{anchor[-1].tail or ''} [{number}]"
        else:
            anchor.text = f"{anchor.text} [{number}]"
    return tuple(links)


def _tidy(text: str) -> str:
    """Without blank lines, padding and empty cells at the end of a row."""
    lines = (_GAP.sub(" ", line).rstrip(" |\t\xa0") for line in text.split("\n"))
    return "\n".join(line for line in lines if line.strip())
