"""A document as declarative statements about its entity, each with a time and a source.

The memory of the AgentFounder recipe (Su et al. 2025, arXiv 2509.13310) keeps declarative statements by entity and
no typed relations. Where a sentence has a plain form (`Label: value`, `The X of E is V`) the attribute and the value
are noted beside the text: the teacher that works without a model derives its questions from them.
"""

from __future__ import annotations

import calendar
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from quintain.interface.words import fold, has_chinese, language_of
from quintain.synthesis.documents import Document

SHORTEST, LONGEST = 4, 400
"""Bounds of a statement in characters: shorter ones say nothing, longer ones are no single statement."""

_SHORT = ("St", "Mt", "Dr", "Mr", "Ms", "Mrs", "Jr", "No", "vs", "e.g", "i.e")
"""Abbreviations whose full stop ends no sentence; neither does the one behind a single capital letter."""
_NO_END = "".join(rf"(?<!\b{re.escape(one)}\.)" for one in _SHORT) + r"(?<!\b[A-Z]\.)"
_SENTENCE = re.compile(_NO_END + r"(?<=[.!?])\s+(?=\S)|(?<=\.)\s+(?=[^\W\d_][^:.]{0,30}:\s)|(?<=[。！？])|\n+")
_FIELD = re.compile(r"^([^\W\d_][^:：.。!?！？|]{0,40}?)(?::\s+|\s*：\s*)(\S.*?)[.。]?$")
_ROW = re.compile(r"^\|\s*([^|]+?)\s*\|\s*([^|]+?)\s*\|$")
_DATE = re.compile(r"\b((?:19|20)\d\d)(?:[-/](\d\d))?\b|((?:19|20)\d\d)年(?:(\d{1,2})月)?")
_MONTHS = tuple(name.lower() for name in calendar.month_name[1:])
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)}) ((?:19|20)\d\d)\b", re.IGNORECASE)
_VERB = r"(?:is|are|was|were|reached|stood at|amounts? to|amounted to)"
_VALUE = r"(?P<v>[^,;]{1,80}?|\d[\d,.]*(?: [^,;]{1,60}?)?)(?P<w> in (?:\w+ )?\d{4})?\.?$"


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing said about an entity.

    Attributes:
        entity: what it is about.
        text: one declarative sentence.
        language: `en` or `zh`.
        source: where it was said.
        time: ISO date, month or year it speaks of; else that of its document; "" if unknown.
        attribute: which property it gives, where its form is plain ("" otherwise).
        value: the property's value ("" otherwise).
    """

    entity: str
    text: str
    language: str
    source: str = ""
    time: str = ""
    attribute: str = ""
    value: str = ""

    @property
    def hash(self) -> bytes:
        """SHA-256 of entity and text, case, accents, width variants and spacing aside."""
        return hashlib.sha256(
            "\0".join(" ".join(fold(one).split()) for one in (self.entity, self.text)).encode()
        ).digest()


def statements(document: Document, left_out: Counter[str] | None = None) -> Iterator[Statement]:
    """The statements of a document, in order.

    A line `Label: value` becomes a sentence of its own, so that every statement can be read alone.

    Args:
        document: what is said.
        left_out: counts fragments without a verb's worth of words and overlong sentences.
    """
    for sentence in _SENTENCE.split(document.text):
        text = " ".join(sentence.split())
        if not text:
            continue
        reason = _unfit(text)
        if not reason:
            yield _statement(document, text)
        elif left_out is not None:
            left_out[reason] += 1


def _unfit(text: str) -> str:
    """Why a sentence is no statement; "" if it is one."""
    if len(text) > LONGEST:
        return f"sentences longer than {LONGEST} characters"
    return "" if len(text) >= SHORTEST and _says_something(text) else "fragments that say nothing"


def _says_something(text: str) -> bool:
    """True for a sentence: three words, or a field, or four Chinese characters."""
    chinese = sum(1 for char in text if has_chinese(char))
    return bool(_FIELD.match(text) or _ROW.match(text)) or len(text.split()) >= 3 or chinese >= 4


def _statement(document: Document, text: str) -> Statement:
    entity, time = document.title, _time(text) or document.time
    field = _FIELD.match(text) or _ROW.match(text)
    if field and len(field[1].split()) <= 6:
        attribute, value = _plain(field[1]), field[2]
        chinese = has_chinese(attribute)
        said = f"{entity}的{attribute}是{value}。" if chinese else f"The {attribute} of {entity} is {value}."
        return Statement(entity, said, "zh" if chinese else "en", document.source, time, attribute, value)
    attribute, value = property_of(entity, text)
    return Statement(entity, text, language_of(text), document.source, time, attribute, value)


def property_of(entity: str, text: str) -> tuple[str, str]:
    """Attribute and value of a sentence of plain form, `("", "")` of any other.

    >>> property_of("France", "Tourist arrivals in France reached 4,222 thousand in June 2025.")
    ('tourist arrivals in June 2025', '4,222 thousand')
    >>> property_of("法国", "法国的首都是巴黎。")
    ('首都', '巴黎')
    """
    name = re.escape(entity)
    patterns = (
        rf"^The (?P<a>[^,;]{{1,50}}?) of {name} {_VERB} {_VALUE}",
        rf"^{name}(?:'s|’s) (?P<a>[^,;]{{1,50}}?) {_VERB} {_VALUE}",
        rf"^(?P<a>[^,;]{{1,50}}?) (?:in|of|for|at) {name} {_VERB} {_VALUE}",
        rf"^{name}的(?P<a>[^，。；]{{1,15}}?)(?:是|为|达到|约为|有)(?P<v>[^，。；]{{1,40}})(?P<w>)[。.]?$",
    )
    for pattern in patterns:
        if match := re.match(pattern, text):
            return _plain(match["a"]) + (match["w"] or ""), match["v"]
    return "", ""


def _plain(attribute: str) -> str:
    """A label as it stands inside a sentence: `Area in km2` becomes `area in km2`, `IATA code` stays."""
    attribute = attribute.removeprefix("The ").removeprefix("the ")
    return attribute if attribute[1:2].isupper() else attribute[:1].lower() + attribute[1:]


def _time(text: str) -> str:
    if match := _MONTH.search(text):
        return f"{match[2]}-{_MONTHS.index(match[1].lower()) + 1:02d}"
    if match := _DATE.search(text):
        year, month = match[1] or match[3], match[2] or match[4]
        return f"{year}-{int(month):02d}" if month and 1 <= int(month) <= 12 else year
    return ""
