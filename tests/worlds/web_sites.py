"""Small sites for the tests of the world `web`: a folder of pages, and a server that answers as it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loopback import Quiet, listening

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


def page(title: str, body: str) -> str:
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"


def write(folder: Path, pages: dict[str, str | bytes]) -> Path:
    """Files by their path below the folder."""
    for name, content in pages.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def handbook(folder: Path, chapters: int = 12) -> Path:
    """A site with links to walk: each chapter has three sections and links to two others by their own names."""
    pages: dict[str, str | bytes] = {"index.html": page("Handbook", "<p>Contents of it.</p>")}
    for number in range(chapters):
        ways = "".join(f'<li><a href="chapter{(number + step) % chapters}.html">way {step}</a></li>' for step in (1, 3))
        sections = "".join(
            f"<h2>Part {number}{letter}</h2><p>The valve of the machine in room {letter} must be set to "
            f"{1000 + 37 * number + at} before anything else is done.</p>"
            for at, letter in enumerate("abc")
        )
        pages[f"chapter{number}.html"] = page(f"Chapter number {number}", f"<ul>{ways}</ul>{sections}")
    return write(folder, pages)


@contextmanager
def serve(answers: dict[str, Answer]) -> Iterator[int]:
    """A server on the loopback interface that gives these answers by path; yields its port."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            status, headers, body = answers[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with listening(Handler) as port:
        yield port
