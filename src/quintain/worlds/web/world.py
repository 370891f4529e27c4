"""The world `web`: answer questions from the pages of a real site, served on the loopback interface."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InputError
from quintain.interface.messages import DECLINE_PREFIXES, Action, Call
from quintain.interface.tasks import Task
from quintain.interface.tools import tool
from quintain.interface.words import fold, language_of, words
from quintain.worlds.answers import wrong
from quintain.worlds.drawing import LANGUAGES, Language, Split, known_split
from quintain.worlds.web.almanac import root_of
from quintain.worlds.web.browser import Refused
from quintain.worlds.web.drafts import Questions
from quintain.worlds.web.page import Page
from quintain.worlds.web.publish import publish
from quintain.worlds.web.questions import AlmanacQuestions
from quintain.worlds.web.site import Site
from quintain.worlds.web.tasks import generate
from quintain.worlds.web.walks import WalkQuestions
from quintain.worlds.web.wording import THOUGHTS

PAGE_WIDTH = 1_500
"""Characters of one part of a page; a Chinese character counts four times."""

FOUND = 5
"""Most lines that `find` shows."""

LINE = 240
"""Most characters of a line that `find` or `search` shows."""


class Web(World):
    """Question answering over a site: search, open, follow links, find in the page.

    A right answer succeeds only if the pages it rests on (`setup["evidence"]`: of each group one address, or one
    `address#part`) were opened in the episode. Nothing but the site's own server on 127.0.0.1 is ever contacted.

    Args:
        site: `almanac` (built in), or the path of a folder of HTML files, such as a mirrored site.
        page_width: characters of one part of a page.

    Raises:
        InputError: the folder does not exist or holds no page.
    """

    name: ClassVar[str] = "web"
    instructions: ClassVar[str] = (
        "Answer from the pages of the site, using the tools; reply with the short answer only. "
        "If they do not hold it, reply `Cannot answer: <reason>`."
    )

    def __init__(self, site: str = "almanac", page_width: int = PAGE_WIDTH) -> None:
        if page_width < 100:
            raise InputError(f"web: page_width = {page_width}; at least 100 characters are needed")
        self.site_name = site
        self.page_width = page_width
        self.root = "/"
        self.here = ""
        self.opened: list[str] = []
        self.resources(site=site)

    @classmethod
    def shared(cls, **options: Any) -> Site:
        """The site with its server and index."""
        name = str(options.get("site", "almanac"))
        if name != "almanac":
            return Site(Path(name), name)
        folder = Path(tempfile.mkdtemp(prefix="quintain-almanac-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        publish(folder)
        return Site(folder, name)

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Tasks about the site: of the almanac from its facts, of any other from its links.

        Raises:
            InputError: an argument is unknown, or the site does not give as many tasks.
        """
        side = known_split("web", split)
        name = options.get("site", "almanac")
        site: Site = cls.resources(site=name)
        questions: Questions = (
            AlmanacQuestions(site, side)
            if name == "almanac"
            else WalkQuestions(site, side, options.get("page_width", PAGE_WIDTH))
        )
        return generate(questions, split, count, seed, languages, templates)

    @classmethod
    def corpus(cls, split: str, languages: Sequence[str], **options: Any) -> Iterator[tuple[str, str]]:
        """Pages of one side of the almanac; all pages of another site are `train`."""
        name = options.get("site", "almanac")
        site: Site = cls.resources(site=name)
        if name == "almanac":
            roots = [root_of(cast(Split, split), one) for one in LANGUAGES if one in languages]
        else:
            roots = ["/"] if split == "train" else []
        for page in (page for root in roots for page in site.section(root).pages.values()):
            if name == "almanac" or language_of(page.title + page.text) in languages:
                yield page.title, page.text

    @property
    def site(self) -> Site:
        """The site this instance reads."""
        found: Site = self.resources(site=self.site_name)
        return found

    def data_digest(self) -> str:
        """Digest of all pages."""
        return digest({"world": self.name, "pages": self.site.digest})

    def reset(self, task: Task) -> None:
        """Opens nothing yet; `setup["root"]` bounds what may be opened."""
        self.root = task.setup.get("root", "/")
        self.here, self.opened = "", []

    @tool(read_only=True)
    def search(self, query: str) -> str:
        """Finds pages of the site.

        Args:
            query: name or keywords.
        """
        hits = self.site.section(self.root).search(query)
        return "\n".join(f"{hit.title} ({hit.address}): {_snippet(hit, query)}" for hit in hits) or "No page found."

    @tool
    def open(self, address: str, page: int = 1) -> str:
        """Reads a page; links are numbered in brackets.

        Args:
            address: as search shows it.
            page: which part of a long one.
        """
        return self._show(self.site.browser.resolve(address, self.here or self.root), page)

    @tool
    def follow(self, link: int) -> str:
        """Follows a link of the open page.

        Args:
            link: its number.
        """
        here = self._here()
        target = here.target(link)
        if target is None:
            most = max((one.number for one in here.links), default=0)
            raise ValueError(
                f"{here.address} has links 1 to {most}, not {link}" if most else f"{here.address} has no links"
            )
        return self._show(target, 1)

    @tool
    def find(self, text: str) -> str:
        """Finds lines of the open page, all its parts.

        Args:
            text: what they hold.
        """
        if not text.strip():
            raise ValueError("give a text to find")
        parts = self._here().parts(self.page_width)
        found = [
            (number, line)
            for number, part in enumerate(parts, start=1)
            for line in part.split("\n")
            if fold(text) in fold(line)
        ]
        self.opened += [f"{self.here}#{number}" for number, _ in found[:FOUND]]
        shown = [f"page {number}: {_around(line, text)}" for number, line in found[:FOUND]]
        more = [f"({len(found) - FOUND} more lines)"] if len(found) > FOUND else []
        return "\n".join(shown + more) or f"{text!r} is not on this page."

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges the last answer and whether it rests on pages opened in this episode."""
        reason = self._fault(task, episode.answer)
        return Verdict(success=not reason, reasons=(reason,) if reason else ())

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """For each group of pages that hold one piece of evidence, whether one was opened."""
        groups = task.setup.get("evidence", ())
        return {f"opened {' or '.join(group)}": any(one in self.opened for one in group) for group in groups}

    def solution(self, task: Task) -> Solution:
        """The plan the generator checked, with a short thought before each turn.

        Raises:
            NotImplementedError: the task was not made by the generator.
        """
        if "plan" not in task.setup:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        language: Language = "zh" if "lang:zh" in task.tags else "en"
        for number, steps in enumerate(task.setup["plan"]):
            calls = tuple(Call(f"c{number}_{at}", name, dict(given)) for at, (name, given) in enumerate(steps))
            yield Action(thought=THOUGHTS[steps[0][0]][language], calls=calls)
        yield Action(thought=THOUGHTS["answer"][language], answer=task.setup["said"])

    def _show(self, address: str, number: int) -> str:
        if not address.startswith(self.root):
            raise Refused(f"{address!r} is not on this site; its pages begin with {self.root}")
        shown = self.site.browser.page(address)
        if not shown.address.startswith(self.root):
            raise Refused(f"{address!r} leads to {shown.address!r}, which is not on this site")
        parts = shown.parts(self.page_width)
        if not 1 <= number <= len(parts):
            raise ValueError(f"{shown.address} has pages 1 to {len(parts)}, not {number}")
        self.here = shown.address
        self.opened += [shown.address, f"{shown.address}#{number}"]
        if len(parts) == 1 and parts[0].startswith(shown.title):
            return parts[0]
        more = f" (page {number} of {len(parts)})" if len(parts) > 1 else ""
        return f"{shown.title}{more}\n{parts[number - 1]}"

    def _here(self) -> Page:
        if not self.here:
            raise ValueError("no page is open yet")
        return self.site.browser.page(self.here)

    def _fault(self, task: Task, answer: str | None) -> str:
        if answer is None or not answer.strip():
            return "no answer"
        declines = answer.lstrip().startswith(DECLINE_PREFIXES)
        if (isinstance(task.answer, dict) and "decline" in task.answer) != declines:
            return "declined, but the site holds the answer" if declines else "answered, but there is no answer"
        left = [name for name, done in self.milestones(task).items() if not done]
        if left:
            return f"not {left[0]} in this episode"
        return "" if declines else wrong(task.answer, answer, task.prompt)


def _snippet(page: Page, query: str) -> str:
    """The line of a page that shares most words with a query, the title's own aside."""
    wanted = set(words(query))
    lines = [line.strip() for line in page.text.split("\n") if line.strip() != page.title]
    best = max(lines, key=lambda line: sum(word in line.casefold() for word in wanted), default="")
    return best if len(best) <= LINE else best[: LINE - 3] + "..."


def _around(line: str, text: str) -> str:
    """A line, cut to what stands around a text."""
    line = line.strip()
    at = max(fold(line).find(fold(text)) - LINE // 3, 0)
    return line if len(line) <= LINE else ("..." if at else "") + line[at : at + LINE] + "..."
