"""What the world `web` reads from a server, and what it refuses to read or to contact."""

from __future__ import annotations

import os
import re
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from web_sites import page, serve, write

from quintain.interface.errors import InputError
from quintain.worlds.web import browser as browser_module
from quintain.worlds.web.browser import Browser, Refused
from quintain.worlds.web.page import NoPage, read_page
from quintain.worlds.web.site import Site

HTML = {"Content-Type": "text/html"}
CLOSED = Browser(9)
"""Its server does not exist: what it resolves, it resolves without asking anyone."""


def read(body, address="/a/b.html"):
    return read_page(page("T", body), address, CLOSED.resolve)


def test_links_are_numbered_where_they_stand_and_one_address_has_one_number():
    found = read('<p>See <a href="c.html">C</a>, <a href="/d.html#x">D</a> and <a href="c.html">C again</a>.</p>')
    assert found.text.split("\n")[1] == "See C [1], D [2] and C again [1]."
    assert [(link.number, link.address) for link in found.links] == [(1, "/a/c.html"), (2, "/d.html"), (1, "/a/c.html")]


@pytest.mark.parametrize(
    "href",
    [
        "http://example.com/x.html",
        "https://example.com",
        "//example.com/x.html",
        "\\\\example.com\\x",
        "file:///etc/passwd",
        "ftp://site/x",
        "javascript:alert(1)",
        "mailto:a@b.c",
        "data:text/html,hello",
        "http://site@example.com/",
        "http://site:80@example.com/",
        "http://127.0.0.1:1/x.html",
        "http://localhost/x.html",
        "http://[::1",
        "#part",
    ],
)
def test_what_leads_off_the_site_has_no_number_and_is_refused_when_asked_for(href):
    assert read(f'<a href="{href}">away</a>').links == ()
    if not href.startswith("#"):
        with pytest.raises(Refused, match="not on this site"):
            CLOSED.resolve(href)


def test_a_page_can_not_move_its_links_to_another_host():
    found = read_page('<base href="http://example.com/"><a href="x.html">x</a>', "/a.html", CLOSED.resolve)
    assert found.links == ()


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_whatever_is_asked_for_is_a_path_of_the_site_or_refused(reference):
    try:
        address = CLOSED.resolve(reference)
    except Refused:
        return
    assert re.fullmatch(r"/[!-~]*", address)


def test_a_file_whose_name_is_no_text_is_left_out_and_said(tmp_path):
    (tmp_path / "a.html").write_text(page("A", "Hello."))
    (tmp_path / os.fsdecode(b"caf\xe9.html")).write_text(page("B", "Lost."))
    site = Site(tmp_path, "mine")
    assert list(site.section("/").pages) == ["/a.html"]
    assert site.skipped == {"named in bytes that are no UTF-8": 1}


def test_tables_lists_and_hidden_text_come_out_as_a_browser_shows_them():
    found = read(
        "<table><tr><th>a</th><td>1</td></tr><tr><th>long name</th><td>2</td></tr></table>"
        '<ul><li>one<li>two</ul><p style="display:none">secret</p><script>var x</script>'
    )
    assert found.text == "T\na | 1\nlong name | 2\n  * one\n  * two"


def test_broken_html_is_read():
    text = "<p><b>Bold <i>both</b> only</i><td>cell<a href=x.html>link</p></div></div><<p"
    assert read(text).text == "T\nBold both only\ncelllink< [1]"


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("", "is empty"),
        ("<html><body></body></html>", "holds no text"),
        ("<img src=a.png><img src=b.png>", "holds no text, only 2 images"),
        ("<div>" * 3000 + "x", "too deep"),
        ("<!-- only a comment -->", "holds no text"),
    ],
)
def test_a_page_without_readable_text_is_refused_in_one_line(html, reason):
    with pytest.raises(NoPage, match=reason):
        read_page(html, "/x.html", CLOSED.resolve)


@pytest.mark.parametrize(
    ("headers", "body", "text"),
    [
        ({"Content-Type": "text/html; charset=gb18030"}, "<p>德国的首都".encode("gb18030"), "德国的首都"),
        (HTML, b'<meta charset="iso-8859-1"><p>caf\xe9', "café"),
        (HTML, "<p>naïve café".encode(), "naïve café"),
        (HTML, "<p>wide".encode("utf-16"), "wide"),
        ({"Content-Type": "text/plain"}, b"a <b> c", "a <b> c"),
    ],
)
def test_pages_are_read_in_their_own_encoding(headers, body, text):
    with serve({"/x": (200, headers, body)}) as port:
        assert Browser(port).page("/x").text == text


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, HTML, b"gone"), "HTTP 404 Not Found"),
        ((500, HTML, b"oops"), "HTTP 500 Internal Server Error"),
        ((200, {"Content-Type": "image/png"}, b"\x89PNG"), "is no page but image/png"),
        ((200, {}, b"x"), "is no page but of unknown kind"),
        ((200, HTML, b"<p>a\0b"), "is binary"),
        ((200, HTML, b"<p>" + b"x" * 2000), "more than 0 MB"),
        ((200, HTML | {"Content-Length": "50000000"}, b"<p>"), "more than 0 MB"),
        ((302, {"Location": "http://example.com/"}, b""), "not on this site"),
        ((302, {"Location": "//example.com/x"}, b""), "not on this site"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "not on this site"),
        ((301, {"Location": "/x"}, b""), "more than 5 redirects"),
        ((200, HTML, b"<img src=a>"), "only 1 images"),
    ],
)
def test_what_is_no_page_is_refused_in_one_line(answer, reason, monkeypatch):
    monkeypatch.setattr(browser_module, "MAX_BYTES", 1000)
    with serve({"/x": answer}) as port, pytest.raises(Refused, match=re.escape(reason)) as caught:
        Browser(port).page("/x")
    assert "\n" not in str(caught.value)


def test_a_redirect_on_the_site_is_followed_and_the_page_has_its_last_address():
    moved = (302, {"Location": "b.html"}, b"")
    with serve({"/a/x": moved, "/a/b.html": (200, HTML, b"<p>here")}) as port:
        assert Browser(port).page("/a/x").address == "/a/b.html"


def test_no_name_is_ever_looked_up_and_no_other_address_contacted(monkeypatch, tmp_path):
    contacted = set()
    connect = socket.socket.connect

    def watched(self, address):
        contacted.add(address)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    monkeypatch.setattr(socket, "gethostbyaddr", lambda *_: pytest.fail("a name was looked up"))
    write(tmp_path, {"a.html": page("A", '<a href="http://example.com">x</a><img src="http://example.com/i.png">')})
    site = Site(tmp_path, "small")
    site.section("/")
    for reference in ("http://example.com/", "//localhost/a.html", "/a.html"):
        try:
            site.browser.page(site.browser.resolve(reference))
        except Refused:
            continue
    assert contacted == {("127.0.0.1", site.browser.port)}


def test_a_site_serves_its_own_files_only(tmp_path):
    write(tmp_path / "outside", {"secret.html": page("Secret", "s")})
    folder = write(tmp_path / "site", {"a.html": page("A", "a"), ".git/x.html": page("G", "g"), "sub/b.html": "<p>b"})
    (folder / "out.html").symlink_to(tmp_path / "outside" / "secret.html")
    site = Site(folder, "own")
    for address in ("/out.html", "/.git/x.html", "/../outside/secret.html", "/%2e%2e/outside/secret.html", "/sub/"):
        with pytest.raises(Refused, match="HTTP 404"):
            site.browser.page(address)
    assert sorted(site.section("/").pages) == ["/a.html", "/sub/b.html"]
    assert site.skipped == {"hidden": 2, "links out of the folder": 1}


def test_an_empty_folder_and_one_of_images_are_refused_with_the_reason(tmp_path):
    with pytest.raises(InputError, match="no page \\(no file\\)"):
        Site(tmp_path, "empty")
    write(tmp_path, {"a.png": b"\x89PNG", "b.txt": "text"})
    with pytest.raises(InputError, match="2 of another kind"):
        Site(tmp_path, "images")
    with pytest.raises(InputError, match="site not found"):
        Site(tmp_path / "none", "none")
    write(tmp_path, {"c.html": '<img src="a.png">', "d.html": b"a\0b", "e.html": ""})
    with pytest.raises(InputError, match=r"under / can be read .*1 holds no text, only 1 images, 1 is binary"):
        Site(tmp_path, "pictures").section("/")
