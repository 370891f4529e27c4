"""A question that is being made, and the checks that every question passes before it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from quintain.worlds.answers import tokens
from quintain.worlds.drawing import Language
from quintain.worlds.web.site import Section

Step = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its reference solution.

    Attributes:
        asked: what makes it the same question as another, whatever the wording.
        prompt: the question.
        cluster: the page it starts from.
        answer: the gold answer, as `answers.wrong` reads it, or `{"decline": ...}`.
        said: what the reference solution answers.
        evidence: of each group of addresses, one page must be opened in the episode.
        plan: turns of the reference solution.
        hops: pages on the way.
        tags: beside language and hops.
    """

    asked: str
    prompt: str
    cluster: str
    answer: Any
    said: str
    evidence: list[list[str]]
    plan: list[list[Step]]
    hops: int
    tags: tuple[str, ...] = field(default=())


class Questions(Protocol):
    """Makes questions about a site."""

    templates: dict[str, bool]
    """Names of templates, and whether each is held out from training."""

    def section(self, language: Language) -> Section:
        """The pages that questions in a language are about."""
        ...

    def root(self, language: Language) -> str:
        """Where those pages lie."""
        ...

    def draft(self, name: str, language: Language, rng: Random) -> Draft | None:
        """A question of a template; None where what was drawn does not make one."""
        ...


def sound(draft: Draft, section: Section) -> bool:
    """True if the question does not hold its answer, and every search of the plan finds the page opened after it."""
    given = set(tokens(draft.prompt))
    if "decline" not in draft.answer and set(tokens(draft.said)) <= given:
        return False
    searches = [arguments["query"] for turn in draft.plan for tool, arguments in turn if tool == "search"]
    opened = [arguments["address"] for turn in draft.plan for tool, arguments in turn if tool == "open"]
    return all(
        any(hit.address == address for hit in section.search(query))
        for query, address in zip(searches, opened, strict=False)
    )
