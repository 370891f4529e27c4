"""An HTML page as lines: blocks apart, what stands inline together."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from quintain.interface.markup import block_lines


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h1>Garage</h1><p>Staff: 6</p><p>It has <b>12</b> places.</p>", "Garage\nStaff: 6\nIt has 12 places."),
        ("<p>one\n   long\tline</p>", "one long line"),
        ("<ul><li>tea<li>soap</ul>after", "tea\nsoap\nafter"),
        ("<table><tr><th>Staff<td>40</tr><tr><th>Area<td>900</tr></table>", "Staff 40\nArea 900"),
        ("tea<br>soap", "tea\nsoap"),
        ("<pre>a = 1\nb = 2</pre>", "a = 1\nb = 2"),
        ("<p>seen</p><!-- <p>not seen</p> -->", "seen"),
        ("<div><div>deep</div></div>", "deep"),
        ("  ", ""),
    ],
)  # fmt: skip
def test_a_line_is_a_block(page, text):
    assert block_lines(BeautifulSoup(page, "html.parser")) == text


def test_a_page_of_blocks_in_blocks_is_read_to_its_bottom():
    assert block_lines(BeautifulSoup("<div>" * 20_000 + "deep", "html.parser")) == "deep"


def test_blocks_in_verbatim_text_keep_its_lines():
    assert (
        block_lines(BeautifulSoup("<pre>a\nb <b>c\nd</b><div>e</div>f</pre>g\nh", "html.parser"))
        == "a\nb c\nd\ne\nf\ng h"
    )
