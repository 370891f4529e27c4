"""Questions about any site, made from its links alone: no model reads the pages.

A walk names its start by a title that no other page has, and each link by a text that leads to one address on its
page. Its end asks for what comes after a heading that the page has once, or for the word missing in a sentence that
the site has once. `common_link` asks for the only page that two pages both link to. So each has one answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from random import Random

from quintain.interface.words import fold
from quintain.worlds.desk.atlas import split_of
from quintain.worlds.drawing import Language, Split
from quintain.worlds.web.drafts import Draft, Step
from quintain.worlds.web.page import Link, Page
from quintain.worlds.web.site import Section, Site
from quintain.worlds.web.wording import CLOZE, COMMON, HEADING, WALK

_EVERYWHERE = 0.2
"""A page that more than this share of the pages link to is part of the site's navigation and no way to walk."""

_LABEL = (3, 60)
"""Fewest and most characters of a link's text, a heading or a title in a question."""

_SENTENCE = re.compile(
    r"(?:^[\s*]*|(?<=[.!?] )|(?<=[。！？]))([^\s.!?。！？][^.!?。！？\n]{40,200}[.!?。！？])(?=\s|$)", re.MULTILINE
)
_RARE = re.compile(r"(?<![\w.-])(?:[A-Za-z]+_\w+|[A-Z]{3,}\w*|\d{2,}|[a-z]+[A-Z]\w*)(?![\w.-])")
"""Words that are hard to guess from their sentence: identifiers, capitals and numbers."""

_KNOWN = 0.02
"""A word that stands on more than this share of the pages is not asked for."""


class WalkQuestions:
    """Questions about one side of a site; a page is on the side that its address falls on.

    Args:
        site: any.
        split: which side.
        width: of a part of a page, in characters.
    """

    templates = {  # noqa: RUF012
        "heading_1": False,
        "heading_2": False,
        "heading_3": False,
        "cloze_1": False,
        "cloze_2": False,
        "common_link": False,
        "cloze_3": True,
    }

    def __init__(self, site: Site, split: Split, width: int) -> None:
        self._section = site.section("/")
        self._width = width
        pages = self._section.pages
        titles = Counter(fold(page.title) for page in pages.values())
        self._mine = {
            address: page
            for address, page in pages.items()
            if split_of(address) == split and titles[fold(page.title)] == 1 and _labels(page.title)
        }
        linked = Counter(target for page in pages.values() for target in {link.address for link in page.links})
        most = max(_EVERYWHERE * len(pages), 5)
        self._all = {
            address: {link.address for link in page.links if linked[link.address] <= most} & pages.keys()
            for address, page in pages.items()
        }
        self._spread = Counter(word for page in pages.values() for word in set(_RARE.findall(page.text)))
        self._ways = {address: self._ways_of(page) for address, page in self._mine.items()}
        self._starts = sorted(address for address, ways in self._ways.items() if ways)

    def root(self, language: Language) -> str:
        """The whole site, whatever the language of the question."""
        return "/"

    def section(self, language: Language) -> Section:
        """All pages."""
        return self._section

    def draft(self, name: str, language: Language, rng: Random) -> Draft | None:
        """A question of a template; None where what was drawn does not make one."""
        if not self._starts:
            return None
        if name == "common_link":
            return self._common(language, rng)
        kind, steps = name.rsplit("_", 1)
        walk = self._walk(int(steps), rng)
        if walk is None:
            return None
        start, links = walk
        end = self._mine[links[-1].address]
        made = self._heading(end, language, rng) if kind == "heading" else self._cloze(end, language, rng)
        if made is None or not made[2]:
            return None
        question, answer, shown = made
        opening, first, further = WALK[language]
        words = [first.format(l=links[0].text), *(further.format(l=link.text) for link in links[1:])]
        addresses = [start, *(link.address for link in links)]
        plan = self._reach([start])
        plan += [[("follow", {"link": link.number})] for link in links]
        part = int(shown[0].rsplit("#", 1)[1])
        if part > 1:
            plan.append([("open", {"address": end.address, "page": part})])
        return Draft(
            asked="|".join((kind, *addresses, answer)),
            prompt=" ".join((opening.format(a=self._mine[start].title), *words, question)),
            cluster=start,
            answer={"text": answer},
            said=answer,
            evidence=[*([address] for address in addresses[:-1]), shown],
            plan=plan,
            hops=len(addresses),
        )

    def _reach(self, addresses: Sequence[str]) -> list[list[Step]]:
        searches: list[Step] = [("search", {"query": self._mine[one].title}) for one in addresses]
        return [searches, [("open", {"address": one}) for one in addresses]]

    def _ways_of(self, page: Page) -> list[Link]:
        """Links to pages of this side whose text leads to one address."""
        targets: dict[str, set[str]] = {}
        for link in page.links:
            targets.setdefault(fold(link.text), set()).add(link.address)
        return [
            link
            for link in page.links
            if link.address in self._mine
            and link.address in self._all[page.address]
            and len(targets[fold(link.text)]) == 1
            and _labels(link.text)
        ]

    def _walk(self, steps: int, rng: Random) -> tuple[str, list[Link]] | None:
        start = rng.choice(self._starts)
        here, seen, links = start, {start}, []
        for _ in range(steps):
            ways = [link for link in self._ways[here] if link.address not in seen]
            if not ways:
                return None
            links.append(rng.choice(ways))
            here = links[-1].address
            seen.add(here)
        return start, links

    def _heading(self, page: Page, language: Language, rng: Random) -> tuple[str, str, list[str]] | None:
        """Question, answer, and the parts of the page that show it."""
        count = Counter(fold(one) for one in page.headings)
        pairs = [
            (one, following)
            for one, following in zip(page.headings, page.headings[1:], strict=False)
            if count[fold(one)] == 1 and _labels(one) and _labels(following)
        ]
        if not pairs:
            return None
        before, answer = rng.choice(pairs)
        return HEADING[language].format(h=before), answer, self._shown(page, answer)

    def _cloze(self, page: Page, language: Language, rng: Random) -> tuple[str, str, list[str]] | None:
        sentences = [one for one in _SENTENCE.findall(page.text) if "[" not in one and _RARE.search(one)]
        if not sentences:
            return None
        sentence = rng.choice(sentences)
        most = max(_KNOWN * len(self._section.pages), 2)
        words = Counter(_RARE.findall(sentence))
        rare = sorted(word for word, times in words.items() if times == 1 and self._spread[word] <= most)
        if not rare:
            return None
        answer = rng.choice(rare)
        blanked = re.sub(rf"(?<![\w.-]){re.escape(answer)}(?![\w.-])", "____", sentence)
        if self._places(blanked) != 1:
            return None
        return CLOZE[language].format(s=blanked), answer, self._shown(page, sentence)

    def _places(self, blanked: str) -> int:
        """How often a sentence with a gap stands on the site, whatever fills the gap."""
        fits = re.compile(re.escape(blanked).replace("____", r"\S+"))
        pieces = blanked.split("____")
        texts = (page.text for page in self._section.pages.values())
        return sum(len(fits.findall(text)) for text in texts if all(piece in text for piece in pieces))

    def _shown(self, page: Page, text: str) -> list[str]:
        """Addresses of the parts of a page that show a text, as the world notes what was read."""
        parts = page.parts(self._width)
        return [f"{page.address}#{number}" for number, part in enumerate(parts, start=1) if text in part]

    def _common(self, language: Language, rng: Random) -> Draft | None:
        """Two pages with exactly one page that both link to."""
        target = rng.choice(sorted(self._mine))
        sources = [one for one in self._mine if target in self._all[one] and one != target]
        if len(sources) < 2:
            return None
        pair = rng.sample(sources, 2)
        if self._all[pair[0]] & self._all[pair[1]] != {target}:
            return None
        one, other = (self._mine[address] for address in pair)
        title = self._mine[target].title
        link = next(link for link in other.links if link.address == target)
        return Draft(
            asked="|".join(("common", *sorted(pair))),
            prompt=COMMON[language].format(a=one.title, b=other.title),
            cluster=pair[0],
            answer={"text": title},
            said=title,
            evidence=[[pair[0]], [pair[1]], [target]],
            plan=[*self._reach(pair), [("follow", {"link": link.number})]],
            hops=3,
        )


def _labels(text: str) -> bool:
    """True if a text can stand in a question and name what it belongs to."""
    return _LABEL[0] <= len(text) <= _LABEL[1]
