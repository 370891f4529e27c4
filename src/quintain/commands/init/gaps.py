"""Sentences with a gap: a whole name, a number with its unit, or a date; nothing that is the same in every document."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quintain.interface.words import fold
from quintain.synthesis.quantities import QUANTITY
from quintain.synthesis.statements import Statement

GAP = "___"
LONGEST = 60
"""Longest value that is asked for, in characters."""

_MONTH = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_DATE = rf"""
    \b\d{{1,2}}(?:st|nd|rd|th)?\ (?:of\ )?{_MONTH}(?:,?\ \d{{4}})?\b
    | \b{_MONTH}\ \d{{1,2}}(?:st|nd|rd|th)?(?:,?\ \d{{4}})?\b
    | \b{_MONTH}\ \d{{4}}\b | \b\d{{4}}-\d\d-\d\d\b | \b\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}\b | \b\d{{1,2}}:\d\d\b
    | (?:\d{{4}}年)?\d{{1,2}}月(?:\d{{1,2}}[日号])? | \d{{4}}年
"""
_CAPITAL = r"(?:(?:Dr|Mr|Mrs|Ms|Prof|St)\.|[A-ZÀ-ÖØ-Þ]\.|[A-ZÀ-ÖØ-Þ][\w'’-]*)"
_LINK = r"(?:(?:&|of|de|del|di|da|du|la|le|van|von|der)\ )"
_NAME = rf"\b{_CAPITAL}(?:\ {_LINK}{{0,2}}{_CAPITAL})*"
_OPENING = """
a all an and any as at both but by each every for from he her here his if in it its many most no of on or our she
some that the their there these they this those to we when where while with you your
"""
_OPENERS = frozenset(_OPENING.split())
"""Words that begin a sentence with a capital and belong to no name."""
_CHINESE = r"([^，。；：、！？\s\d（）《》“”]{2,12}?)"
_SAID_OF = "|".join(
    (
        rf"由{_CHINESE}(?:于|在|制造|建造|生产|组织|负责|主办|举办|设计|管理|维护|保养|编写|创办|创立)",
        rf"(?:在|于){_CHINESE}(?:举行|举办|召开|建造|制造|生产|成立)",
        rf"(?:位于|属于|来自|停放在|存放在){_CHINESE}(?=[，。；]|$)",
        rf"^{_CHINESE}(?:负责|管理|维护|保养)",
        r"[《“「]([^》”」]{2,20})[》”」]",
    )
)
_PATTERNS = tuple(re.compile(one, re.VERBOSE) for one in (_DATE, _SAID_OF.replace(" ", ""), QUANTITY, _NAME))
"""What is looked for first may not be a part of what is looked for later: a date holds a number and a name."""
_WORD = re.compile(r"[A-Za-z]{6,}")
_OF_A_VERB = ("ed", "ing", "ly")


@dataclass(frozen=True, slots=True)
class Gap:
    """A sentence and the value that is left out."""

    said: Statement
    value: str

    @property
    def sentence(self) -> str:
        """The sentence with the gap."""
        return self.said.text.replace(self.value, GAP)


def gaps(told: Sequence[Sequence[Statement]]) -> list[list[Gap]]:
    """The gaps of every document.

    A value is left out if all documents that say such a sentence agree in it, or if it stands in more than half of all.
    Only a document without any gap is asked for a word, one that stands in no other.

    Args:
        told: the sentences of each document.
    """
    found = [[gap for said in sentences for gap in _gaps(said)] for sentences in told]
    texts = [fold(" ".join(said.text for said in sentences)) for sentences in told]
    values: dict[tuple[str, int], list[str]] = defaultdict(list)
    for gap, frame in ((gap, frame) for document in found for gap, frame in document):
        values[frame].append(gap.value)

    def tells(gap: Gap, frame: tuple[str, int]) -> bool:
        holders = sum(fold(gap.value) in text for text in texts)
        return len(set(values[frame])) > 1 or (len(values[frame]) == 1 and (holders == 1 or 2 * holders <= len(texts)))

    kept = [[gap for gap, frame in document if tells(gap, frame)] for document in found]
    return [own or list(_words(sentences, texts)) for own, sentences in zip(kept, told, strict=True)]


def _gaps(said: Statement) -> Iterator[tuple[Gap, tuple[str, int]]]:
    """Gaps with their frames: the sentence without its entity and values, and which of the values it is."""
    values = _values(said.text)
    frame = said.text
    for value in values:
        frame = frame.replace(value, GAP, 1)
    frame = fold(frame.replace(said.entity, "")).strip()
    for number, value in enumerate(values):
        about = fold(value) in fold(said.entity) or fold(said.entity) in fold(value)
        if not about and len(value) <= LONGEST and said.text.count(value) == 1 and GAP not in said.text:
            yield Gap(said, value), (frame, number)


def _values(text: str) -> list[str]:
    """Dates, quantities and names, in the order they stand."""
    spans: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            group = match.lastindex or 0
            start, end = match.start(group), match.end(group)
            start = _name_start(text, start, end) if pattern is _PATTERNS[-1] else start
            if start < end and all(end <= first or start >= last for first, last in spans):
                spans.append((start, end))
    return [text[start:end] for start, end in sorted(spans)]


def _name_start(text: str, start: int, end: int) -> int:
    """Where a run of capitalised words begins to be a name; its end if it is none.

    The first word of a sentence has its capital from there: alone it is no name.
    """
    words = text[start:end].split(" ")
    if words[0].lower() in _OPENERS:
        return start + len(words[0]) + 1 if len(words) > 1 else end
    alone = len(words) == 1 and (start == 0 or len(words[0].rstrip(".")) < 2)
    return end if alone else start


def _words(sentences: Sequence[Statement], texts: Sequence[str]) -> Iterator[Gap]:
    """The longest word of each sentence that no other document has."""
    for said in sentences:
        words = [one for one in _WORD.findall(said.text) if said.text.count(one) == 1 and not one.endswith(_OF_A_VERB)]
        own = [
            one for one in words if sum(fold(one) in text for text in texts) == 1 and fold(one) not in fold(said.entity)
        ]
        if own and GAP not in said.text:
            yield Gap(said, max(own, key=len))
