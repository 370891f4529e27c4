"""Reads pages of the network: public addresses only, no blocked host, bounded in size and time."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from urllib.parse import urljoin, urlsplit

import requests

from quintain.worlds.research.files import text_of
from quintain.worlds.web.browser import MAX_BYTES, MAX_REDIRECTS, Refused
from quintain.worlds.web.page import NoPage, Page, decoded, plain_page, read_page

SECONDS = 30.0
"""Longest silence of a server."""

_HTML = {"text/html", "application/xhtml+xml"}
_PARSED = {"application/pdf": "page.pdf"}


class NetworkReader:
    """Fetches pages. A name that means a private, local or reserved address is refused before anything is sent.

    Args:
        blocked: hosts that are never read, with all below them (`huggingface.co`).
        trusted: `host:port` of the user's own servers, which may be private.
    """

    def __init__(self, blocked: Collection[str] = (), trusted: Collection[str] = ()) -> None:
        self._blocked = tuple(host.lower().strip(".") for host in blocked)
        self._trusted = frozenset(trusted)

    def blocks(self, url: str) -> bool:
        """True if the address is on a blocked host."""
        try:
            host = (urlsplit(url).hostname or "").lower().rstrip(".")
        except ValueError:
            return False
        return any(host == one or host.endswith("." + one) for one in self._blocked)

    def page(self, url: str) -> Page:
        """The page or PDF at an address.

        Raises:
            Refused: it may not, or can't, be read.
        """
        for _ in range(MAX_REDIRECTS + 1):
            self._check(url)
            try:
                reply = requests.get(url, timeout=SECONDS, stream=True, allow_redirects=False)
                with reply:
                    if reply.is_redirect:
                        url = urljoin(url, reply.headers["location"])
                        continue
                    return self._read(url, reply)
            except Refused:
                raise
            except requests.RequestException as error:
                raise Refused(f"{url[:200]!r}: {type(error).__name__}") from None
            except ValueError as error:  # a redirect to what is no address
                raise Refused(f"{url[:200]!r} can't be read: {error}") from None
        raise Refused(f"{url[:200]!r}: more than {MAX_REDIRECTS} redirects")

    def _check(self, url: str) -> None:
        shown = repr(url[:200])
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise Refused(f"{shown} is no address") from None
        if parts.scheme not in ("http", "https") or not host:
            raise Refused(f"{shown} is no address of the web; give http:// or https://")
        if self.blocks(url):
            raise Refused(f"{shown} is on a blocked host")
        if f"{host}:{port}" in self._trusted:
            return
        try:
            found = {str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        except (OSError, UnicodeError):
            raise Refused(f"{shown}: no such host") from None
        if not all(ipaddress.ip_address(one.partition("%")[0]).is_global for one in found):
            raise Refused(f"{shown} is not on the public network")

    def _read(self, url: str, reply: requests.Response) -> Page:
        if reply.status_code != 200:
            raise Refused(f"{url[:200]!r}: HTTP {reply.status_code} {reply.reason or ''}".rstrip())
        kind, _, rest = reply.headers.get("content-type", "").partition(";")
        kind, charset = kind.strip().lower(), rest.partition("charset=")[2].strip(" \"';")
        data = b"".join(_bounded(reply, url))
        try:
            if kind in _PARSED:
                return plain_page(text_of(_PARSED[kind], data), url)
            if kind in _HTML:
                return read_page(decoded(data, charset), url, _absolute)
            if kind.startswith("text/") or kind == "application/json":
                return plain_page(decoded(data, charset), url)
        except NoPage as error:
            raise Refused(f"{url[:200]!r} {error}") from None
        raise Refused(f"{url[:200]!r} is no page but {kind or 'of unknown kind'}")


def _bounded(reply: requests.Response, url: str) -> list[bytes]:
    parts, size = [], 0
    for part in reply.iter_content(1 << 16):
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise Refused(f"{url[:200]!r} has more than {MAX_BYTES // 1_000_000} MB; such pages are not read")
    return parts


def _absolute(reference: str, base: str) -> str:
    """The address a link means, for `read_page`."""
    target = urljoin(base, reference)
    if not target.startswith(("http://", "https://")):
        raise ValueError(reference)
    return target
