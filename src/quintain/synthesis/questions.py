"""Questions from an excerpt of the memory: several styles from the same statements.

The AgentFounder recipe (Su et al. 2025, arXiv 2509.13310) varies the question, not the decoding: several analyses of
one question stay alike and repeat its tokens.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from quintain.endpoint.structured import Reply, Shape
from quintain.interface.words import fold, language_of
from quintain.synthesis.matching import names, stands
from quintain.synthesis.memory import Excerpt
from quintain.synthesis.statements import Statement
from quintain.synthesis.teacher import Request

Style = Literal["factual", "numerical", "multi_hop", "comparison", "obfuscated", "synthesis"]

STYLES: dict[Style, str] = {
    "factual": "one fact, asked directly",
    "numerical": "a number that has to be calculated from several statements",
    "multi_hop": "a fact about something that has to be found first",
    "comparison": "which of several things has more, is earlier, larger, ...",
    "obfuscated": "a riddle: nothing is named, everything is described",
    "synthesis": "a short report that brings several facts together",
}
"""What is asked for in each style."""

LONGEST = 600
"""Most characters of a question."""


class MadeQuestion(Shape):
    """One question as a teacher writes it."""

    style: str
    question: str
    answer: list[str]
    statements: list[int]
    frame: SkipJsonSchema[dict[str, Any]] = Field(default_factory=dict)
    """How the offline teacher built it; empty for others."""


class MadeQuestions(Shape):
    """A teacher's reply to a request for questions."""

    questions: list[MadeQuestion]
    invalid: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what it was made from.

    Attributes:
        id: digest of language and text.
        cluster: id of the excerpt.
        style: one of `STYLES`.
        language: `en` or `zh`.
        text: what is asked.
        answer: values that must stand in a right answer.
        knowledge: the statements it was made from.
        frame: how the offline teacher built it; empty for others.
    """

    id: str
    cluster: str
    style: str
    language: str
    text: str
    answer: tuple[str, ...]
    knowledge: tuple[Statement, ...]
    frame: Mapping[str, Any] = field(default_factory=dict)

    @property
    def subjects(self) -> tuple[str, ...]:
        """What the statements are about, each once."""
        return tuple(dict.fromkeys(one.entity for one in self.knowledge))


def question_request(excerpt: Excerpt, styles: Sequence[str], seed: int) -> Request:
    """Asks for one question in each of the styles."""
    fields = {
        "entity": excerpt.entity,
        "count": str(len(styles)),
        "styles": [f"{style}: {STYLES[style]}" for style in styles if style in STYLES],
        "statements": [f"{number}. {one.text}" for number, one in enumerate(excerpt.all, start=1)],
    }
    return Request("questions", excerpt.language, fields, MadeQuestions, {"excerpt": excerpt, "styles": styles}, seed)


def take_questions(excerpt: Excerpt, styles: Sequence[str], reply: Reply, counts: Counter[str]) -> list[Question]:
    """The questions of a reply that can be used; what is left out is counted by reason."""
    if reply.value is None:
        counts[f"question requests: {reply.problem}"] += 1
        return []
    made: MadeQuestions = reply.value
    if not made.questions:
        counts["memories that make no question (INVALID)"] += 1
    if len(made.questions) > len(styles):
        counts["questions left out: more than asked for"] += len(made.questions) - len(styles)
    found: dict[str, Question] = {}
    for one in made.questions[: len(styles)]:
        second = any(one.style == each.style for each in found.values())
        reason = _unfit(one, excerpt, styles) or ("a second one of its style" if second else "")
        if reason:
            counts[f"questions left out: {reason}"] += 1
            continue
        key = f"{excerpt.language}\0{' '.join(fold(one.question).split())}"
        identity = hashlib.sha256(key.encode()).hexdigest()[:16]
        if identity in found:
            counts["questions left out: asked twice in one reply"] += 1
            continue
        knowledge = tuple(excerpt.all[number - 1] for number in one.statements)
        found[identity] = Question(
            identity, excerpt.id, one.style, excerpt.language, one.question, tuple(one.answer), knowledge, one.frame
        )
    return list(found.values())


def _unfit(one: MadeQuestion, excerpt: Excerpt, styles: Sequence[str]) -> str:
    """Why a question can't be used; "" if it can."""
    if one.style not in styles:
        return "another style than asked for"
    if not one.question.strip() or len(one.question) > LONGEST:
        return "no text, or one too long"
    if language_of(one.question) != excerpt.language:
        return "in the wrong language"
    if not one.answer or not all(value.strip() for value in one.answer):
        return "no answer"
    if not one.statements or not all(1 <= number <= len(excerpt.all) for number in one.statements):
        return "no such statement"
    if one.style == "obfuscated":
        return _unfit_riddle(one, excerpt)
    return ""


def _unfit_riddle(one: MadeQuestion, excerpt: Excerpt) -> str:
    if names(one.question, excerpt.entity):
        return "a riddle that names what it asks about"
    if any(stands(value, one.question) for value in one.answer):
        return "a riddle that says its answer"
    if not any(stands(value, one.question) for value in excerpt.telling):
        return "a riddle without a clue that fits one thing only"
    return ""
