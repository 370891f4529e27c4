"""The text of an HTML page: a line for each block, as a person sees it."""

from __future__ import annotations

from typing import Any

_BLOCKS = "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6"
_BLOCKS += " header hr li main nav ol p pre section table tr ul"
_BREAK = "\0"
"""Where a line ends; a page whose own text holds one is no text file."""


def block_lines(soup: Any) -> str:
    """Each paragraph, heading, list item and row of a table as one line; what stands inline stays on its line.

    Args:
        soup: a page parsed by BeautifulSoup, without what is not to be read; it is changed.

    >>> from bs4 import BeautifulSoup
    >>> block_lines(BeautifulSoup("<h1>Garage</h1><p>Staff:\\n<b>6</b></p><tr><td>Area<td>900</tr>", "html.parser"))
    'Garage\\nStaff: 6\\nArea 900'
    """
    for element in soup(["td", "th"]):
        element.insert_before(" ")
    for text in soup.select("pre"):
        text.string = text.get_text().replace("\n", _BREAK)
    for element in soup(_BLOCKS.split()):
        element.insert_before(_BREAK)
        element.insert_after(_BREAK)
    lines = (" ".join(line.split()) for line in soup.get_text().split(_BREAK))
    return "\n".join(filter(None, lines))
