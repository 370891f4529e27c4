"""The text of an HTML page: a line for each block, as a person sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_HEAVY = "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6"
_BLOCKS = frozenset(f"{_HEAVY} header hr li main nav ol p pre section table tr ul".split())
_BREAK = "\0"
"""Where a line ends; a page whose own text holds one is no text file."""


def block_lines(soup: Any) -> str:
    """Each paragraph, heading, list item and row of a table as one line; what stands inline stays on its line.

    Args:
        soup: a page parsed by BeautifulSoup, without what is not to be read.

    >>> from bs4 import BeautifulSoup
    >>> block_lines(BeautifulSoup("<h1>Garage</h1><p>Staff:\\n<b>6</b></p><tr><td>Area<td>900</tr>", "html.parser"))
    'Garage\\nStaff: 6\\nArea 900'
    """
    lines = (" ".join(line.split()) for line in "".join(_pieces(soup)).split(_BREAK))
    return "\n".join(filter(None, lines))


def _pieces(soup: Any) -> Iterator[str]:
    """Texts, breaks around blocks and a space before each cell; nested blocks take no longer than flat ones."""
    from bs4.element import CData, NavigableString, Tag

    open_tags, inner, verbatim = [soup], [iter(soup.contents)], 0
    while open_tags:
        child = next(inner[-1], None)
        if child is None:
            inner.pop()
            name = open_tags.pop().name
            verbatim -= name == "pre"
            yield _BREAK if name in _BLOCKS else ""
        elif isinstance(child, Tag):
            yield _BREAK if child.name in _BLOCKS else " " if child.name in ("td", "th") else ""
            verbatim += child.name == "pre"
            open_tags.append(child)
            inner.append(iter(child.contents))
        elif type(child) in (NavigableString, CData):  # no comment
            yield child.replace("\n", _BREAK) if verbatim else child
