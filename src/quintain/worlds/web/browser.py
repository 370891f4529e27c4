"""Fetches pages from one server on the loopback interface, and from nowhere else.

Every connection goes to the one address given at construction, whatever a link, a redirect or an agent says: a name
is never looked up, another host never contacted. Addresses are shown as paths, `/a/b.html`: the same in every run.
"""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import quote, urljoin, urlsplit

from quintain.interface.errors import InfraError, describe
from quintain.worlds.web.page import NoPage, Page, decoded, plain_page, read_page

MAX_BYTES = 10_000_000
"""Larger pages are refused."""

MAX_REDIRECTS = 5
SECONDS = 60.0
"""Longest silence of the server. Other limits end a call sooner; this one ends a thread that waits for nothing."""

_KEPT = 2048
"""Parsed pages kept."""

_HOST = "site"
"""Stands for the server in addresses; no request carries it to a resolver."""

_SAFE = "/%:@!$&'()*+,;=~-._"
_INDEX = "index.html"
_HTML = {"text/html", "application/xhtml+xml"}


class Refused(ValueError):
    """An address is not on the site, or the server gave no page; the message is one line for the agent."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server sent.

    Attributes:
        address: where it was found, redirects followed.
        data: the body.
        kind: media type.
        charset: as the header says; "" if it does not.
    """

    address: str
    data: bytes
    kind: str
    charset: str


class Browser:
    """Reads one site.

    Args:
        port: of its server on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._own = {_HOST, f"127.0.0.1:{port}"}
        self._read = lru_cache(maxsize=_KEPT)(self._parse)

    def resolve(self, reference: str, base: str = "/") -> str:
        """The path a reference on a page means, without its fragment.

        Raises:
            Refused: it leaves the site.
        """
        shown = reference if len(reference) <= 80 else reference[:77] + "..."
        try:
            target = urlsplit(urljoin(f"http://{_HOST}{base}", reference.strip().replace("\\", "/")))
            own = target.scheme == "http" and target.netloc in self._own
        except ValueError:
            own = False
        if not own:
            raise Refused(f"{shown!r} is not on this site; only its own pages can be opened")
        path = quote(target.path or "/", safe=_SAFE)
        path += _INDEX if path.endswith("/") else ""
        return path + ("?" + quote(target.query, safe=_SAFE + "?") if target.query else "")

    def fetch(self, address: str) -> Reply:
        """What the server has at an address.

        Raises:
            Refused: it has nothing there, too much, or sends the reader away.
            InfraError: it does not answer.
        """
        for _ in range(MAX_REDIRECTS + 1):
            status, reply, location = self._get(address)
            if status in (301, 302, 303, 307, 308) and location:
                address = self.resolve(location, address)
                continue
            if status != 200:
                raise Refused(f"{address!r}: HTTP {status} {http.client.responses.get(status, '')}".rstrip())
            return reply
        raise Refused(f"{address!r}: more than {MAX_REDIRECTS} redirects")

    def page(self, address: str) -> Page:
        """The page at an address.

        Raises:
            Refused: there is none, or none that can be read.
        """
        return self._read(self.fetch(address))

    def _parse(self, reply: Reply) -> Page:
        if reply.kind not in _HTML and not reply.kind.startswith("text/"):
            raise Refused(f"{reply.address!r} is no page but {reply.kind or 'of unknown kind'}")
        try:
            text = decoded(reply.data, reply.charset)
            if reply.kind in _HTML:
                return read_page(text, reply.address, self.resolve)
            return plain_page(text, reply.address)
        except NoPage as error:
            raise Refused(f"{reply.address!r} {error}") from None

    def _get(self, address: str) -> tuple[int, Reply, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("GET", address, headers={"Host": f"127.0.0.1:{self.port}"})
            response = connection.getresponse()
            size = response.length or 0
            data = response.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
        except (OSError, http.client.HTTPException) as error:
            raise InfraError(f"the site's server failed at {address!r}: {describe(error)}") from error
        finally:
            connection.close()
        if max(size, len(data)) > MAX_BYTES:
            raise Refused(f"{address!r} has more than {MAX_BYTES // 1_000_000} MB; such pages are not opened")
        kind = response.headers.get_content_type() if "Content-Type" in response.headers else ""
        reply = Reply(address, data, kind, response.headers.get_content_charset() or "")
        return response.status, reply, response.headers.get("Location") or ""


def address_of(path: PurePosixPath) -> str:
    """The address of a file, from its path relative to the site's folder."""
    return "/" + quote(str(path), safe=_SAFE.replace("%", ""))
