"""Where searches and pages come from: a search server on the network, or a site served here.

The seam is `Provider`. `SearXNG` and `Serper` speak the JSON of the servers of those names; `Offline` is a site of the
world `web`, so that everything runs without a network.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import requests

from quintain.interface.errors import InfraError, InputError
from quintain.worlds.research.reader import NetworkReader
from quintain.worlds.web.browser import Refused
from quintain.worlds.web.page import Page
from quintain.worlds.web.site import Site

SECONDS = 30.0
"""Longest wait for a search server."""

SNIPPET = 300
"""Most characters of a hit's text."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search.

    Attributes:
        title: of the page or paper.
        url: its address.
        snippet: what the server shows of it; for a paper with its authors, year and citations, where given.
    """

    title: str
    url: str
    snippet: str


class Provider(Protocol):
    """Searches and reads. Safe to share between threads."""

    def search(self, query: str, count: int) -> list[Hit]:
        """At most `count` pages, best first."""
        ...

    def scholar(self, query: str, count: int) -> list[Hit]:
        """At most `count` papers, best first."""
        ...

    def page(self, url: str) -> Page:
        """A page to read.

        Raises:
            Refused: there is none, or none that may or can be read.
        """
        ...


class SearXNG:
    """A SearXNG-compatible server: `GET URL/search?q=...&format=json` (its settings must allow `json`).

    Args:
        url: base address of the server.
        reader: reads pages.
    """

    def __init__(self, url: str, reader: NetworkReader) -> None:
        self._url = url.rstrip("/") + "/search"
        self._reader = reader

    def search(self, query: str, count: int) -> list[Hit]:
        """Results of the general categories."""
        return self._ask({"q": query, "format": "json"}, count)

    def scholar(self, query: str, count: int) -> list[Hit]:
        """Results of the category `science`."""
        return self._ask({"q": query, "format": "json", "categories": "science"}, count)

    def page(self, url: str) -> Page:
        """A page of the network."""
        return self._reader.page(url)

    def _ask(self, parameters: dict[str, str], count: int) -> list[Hit]:
        found = _json(requests.get, self._url, params=parameters)
        return _hits(found, "results", ("title", "url", ("publishedDate", "content")), count)


class Serper:
    """A Serper-compatible server: `POST URL/search` and `URL/scholar` with the key as `X-API-KEY`.

    Args:
        reader: reads pages.
        url: base address of the server.
        key: name of the environment variable that holds the key.

    Raises:
        InputError: the variable is not set.
    """

    def __init__(
        self, reader: NetworkReader, url: str = "https://google.serper.dev", key: str = "SERPER_API_KEY"
    ) -> None:
        if not os.environ.get(key):
            raise InputError(f"research: the search server {url} needs a key; set the environment variable {key}")
        self._url = url.rstrip("/")
        self._key = key
        self._reader = reader

    def search(self, query: str, count: int) -> list[Hit]:
        """Organic results."""
        return self._ask("search", query, count, ("date", "snippet"))

    def scholar(self, query: str, count: int) -> list[Hit]:
        """Papers with where and when they were published, and how often they are cited."""
        return self._ask("scholar", query, count, ("publicationInfo", "year", "citedBy", "snippet"))

    def page(self, url: str) -> Page:
        """A page of the network."""
        return self._reader.page(url)

    def _ask(self, place: str, query: str, count: int, shown: Sequence[str]) -> list[Hit]:
        headers = {"X-API-KEY": os.environ[self._key]}
        found = _json(requests.post, f"{self._url}/{place}", json={"q": query, "num": count}, headers=headers)
        return _hits(found, "organic", ("title", "link", shown), count)


class Offline:
    """A site of the world `web` as the whole network: its pages are found and read, and nothing else.

    Args:
        site: its pages.
        root: the part of it that an episode sees.
    """

    def __init__(self, site: Site, root: str = "/") -> None:
        self._site = site
        self._root = root

    def search(self, query: str, count: int) -> list[Hit]:
        """Pages of the site."""
        found = self._site.section(self._root).search(query)[:count]
        return [Hit(page.title, page.address, _short(page.text)) for page in found]

    def scholar(self, query: str, count: int) -> list[Hit]:
        """The same pages: a site has no papers of its own."""
        return self.search(query, count)

    def page(self, url: str) -> Page:
        """A page of the site."""
        address = self._site.browser.resolve(url, self._root)
        if not address.startswith(self._root):
            raise Refused(f"{url!r} is not on this site; its pages begin with {self._root}")
        return self._site.browser.page(address)


def _json(ask: Any, url: str, **arguments: Any) -> dict[str, Any]:
    """The JSON object a search server answers.

    Raises:
        InfraError: it refuses the request, fails, is silent, or answers something else.
    """
    try:
        reply = ask(url, timeout=SECONDS, allow_redirects=False, **arguments)
        if reply.status_code in (401, 403, 404):
            remedy = "check the key, the address and, for SearXNG, that its settings allow the format json"
            raise InfraError(f"search server {url}: HTTP {reply.status_code}; {remedy}")
        reply.raise_for_status()
        found = reply.json()
    except (requests.RequestException, ValueError) as error:
        raise InfraError(f"search server {url}: {type(error).__name__}") from error
    if not isinstance(found, dict):
        raise InfraError(f"search server {url}: the answer is no JSON object")
    return found


def _hits(found: dict[str, Any], name: str, keys: tuple[str, str, Sequence[str]], count: int) -> list[Hit]:
    """The results of an answer that have a title and an address."""
    title, url, shown = keys
    results = [one for one in found.get(name) or () if isinstance(one, dict) and one.get(title) and one.get(url)]
    return [
        Hit(str(one[title]), str(one[url]), _short(" · ".join(str(one[key]) for key in shown if one.get(key))))
        for one in results[:count]
    ]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SNIPPET else line[: SNIPPET - 3] + "..."


def provider_of(name: str, url: str, key: str, site: str, root: str, reader: NetworkReader) -> Provider:
    """The provider of a recipe.

    Raises:
        InputError: it is unknown, or its address is missing.
    """
    if name == "offline":
        from quintain.worlds.web.world import Web

        return Offline(Web.resources(site=site), root)
    if name == "searxng":
        if not url:
            raise InputError('research: provider "searxng" needs `search_url`, such as "http://127.0.0.1:8080"')
        return SearXNG(url, reader)
    if name == "serper":
        return Serper(reader, url or "https://google.serper.dev", key)
    raise InputError(f"research: provider {name!r}; allowed are offline, searxng, serper")


def folder_of(files: str) -> Path | None:
    """Where the files of tasks lie; None if there are none.

    Raises:
        InputError: there is no such folder.
    """
    if files and not Path(files).is_dir():
        raise InputError(f"research: files = {files!r} is no folder")
    return Path(files).resolve() if files else None
