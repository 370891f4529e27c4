"""The templates: each draws entities and drafts one question with its plan and gold answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from string import ascii_uppercase
from typing import Any

from quintain.worlds.desk.atlas import Entity, Kind, entities, given, real_airport_codes, split_of
from quintain.worlds.desk.calculator import calculate
from quintain.worlds.desk.phrases import ATTRIBUTES, UNKNOWN
from quintain.worlds.drawing import Language, Split

Step = tuple[str, str, str]
"""Tool, its argument, and the kind of thought that goes before it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that is not worded yet.

    Attributes:
        words: what the phrases insert (`a`, `b`, `c`, `x`).
        cluster: the main entity.
        plan: the turns of the reference solution, each a list of steps.
        answer: the gold answer as `answers.wrong` reads it, or `{"decline": name}`.
        said: what the reference solution answers.
        documents: titles that must be opened.
        facts: `(entity, attribute, value)` the question rests on.
        closing: kind of the last thought.
    """

    words: dict[str, str]
    cluster: str
    plan: list[list[Step]]
    answer: Any
    said: str
    documents: list[str] = field(default_factory=list)
    facts: list[tuple[str, str, str]] = field(default_factory=list)
    closing: str = "answer"


class Draw:
    """Draws entities of one split so that each comes up about equally often."""

    def __init__(self, rng: random.Random, split: Split) -> None:
        self.rng = rng
        self.split = split
        self._pool = [entity for entity in entities() if entity.split == split]
        self._queue: dict[Kind, list[Entity]] = {}

    def one(self, kind: Kind, language: Language, *attributes: str) -> Entity:
        """The next entity of a kind that has all the attributes."""
        while True:
            if not self._queue.get(kind):
                self._queue[kind] = [entity for entity in self._pool if entity.kind == kind]
                self.rng.shuffle(self._queue[kind])
            entity = self._queue[kind].pop()
            if all(name in entity.facts[language] for name in attributes):
                return entity

    def several(self, count: int, kind: Kind, language: Language, attribute: str) -> list[Entity]:
        """Entities whose values of the attribute differ; all but the first may come up at any time."""
        found = [self.one(kind, language, attribute)]
        fit = [entity for entity in self._pool if entity.kind == kind and attribute in entity.facts[language]]
        while len(found) < count:
            other = self.rng.choice(fit)
            if all(other.facts[language][attribute] != entity.facts[language][attribute] for entity in found):
                found.append(other)
        self.rng.shuffle(found)
        return found


def _value(entity: Entity, language: Language, attribute: str) -> str:
    return entity.facts[language][attribute]


def _fact(entity: Entity, language: Language, attribute: str) -> tuple[str, str, str]:
    return (entity.key, attribute, _value(entity, language, attribute))


def _reading(titles: Sequence[str]) -> list[list[Step]]:
    """Search for every title in one turn and open all of them in the next."""
    several = "_all" if len(titles) > 1 else ""
    return [
        [("search", title, f"search{several}") for title in titles],
        [("open", t, f"open{several}") for t in titles],
    ]


def _lookup(kind: Kind, choices: tuple[str, ...], draw: Draw, language: Language) -> Draft:
    attribute = draw.rng.choice([name for name in choices if name in given(kind, language)])
    entity = draw.one(kind, language, attribute)
    title, value = entity.titles[language], _value(entity, language, attribute)
    number = attribute not in ("capital", "subregion", "currency", "language", "city", "country", "symbol")
    return Draft(
        {"a": title, "x": ATTRIBUTES[attribute][language], "q": "是多少" if number else "是什么"},
        entity.key,
        _reading([title]),
        {"number": value} if number else {"text": value},
        value,
        [title],
        [_fact(entity, language, attribute)],
    )


def _airport_code(draw: Draw, language: Language) -> Draft:
    entity = draw.one("airport", language)
    title, name, code = entity.titles[language], _value(entity, language, "name"), entity.key.removeprefix("airport:")
    query = name if language == "en" else f"{name}机场"
    plan: list[list[Step]] = [[("search", query, "search")], [("open", title, "open")]]
    facts = [_fact(entity, language, "name")]
    return Draft({"a": name}, entity.key, plan, {"text": code, "aliases": [title]}, code, [title], facts)


def _two_hop(choices: tuple[str, ...], draw: Draw, language: Language) -> Draft:
    attribute = draw.rng.choice([name for name in choices if name in given("country", language)])
    airport = draw.one("airport", language)
    country = next(entity for entity in entities() if entity.key == airport.group)
    if attribute not in country.facts[language]:
        return _two_hop(choices, draw, language)
    title, other, value = airport.titles[language], country.titles[language], _value(country, language, attribute)
    return Draft(
        {"a": title, "x": ATTRIBUTES[attribute][language]},
        airport.key,
        [*_reading([title]), [("open", other, "next")]],
        {"text": value},
        value,
        [title, other],
        [_fact(airport, language, "country"), _fact(country, language, attribute)],
    )


def _compare(kind: Kind, choices: tuple[str, ...], draw: Draw, language: Language) -> Draft:
    attribute = draw.rng.choice(choices)
    first, second = draw.several(2, kind, language, attribute)
    titles = [first.titles[language], second.titles[language]]
    expression = f"{_value(first, language, attribute)} > {_value(second, language, attribute)}"
    winner = 0 if calculate(expression) == "true" else 1
    return Draft(
        {"a": titles[0], "b": titles[1], "x": ATTRIBUTES[attribute][language]},
        min(first.key, second.key),
        [*_reading(titles), [("calculate", expression, "calculate")]],
        {"text": titles[winner], "reject": [titles[1 - winner]]},
        titles[winner],
        titles,
        [_fact(first, language, attribute), _fact(second, language, attribute)],
        closing=("first", "second")[winner],
    )


def _computed(parts: list[tuple[Entity, str]], expression: str, words: dict[str, str], language: Language) -> Draft:
    """A question whose answer is a calculation over attributes; `{0}`, `{1}` ... stand for their values."""
    chosen = list(dict.fromkeys(entity.key for entity, _ in parts))
    found = {entity.key: entity for entity, _ in parts}
    titles = [found[key].titles[language] for key in chosen]
    filled = expression.format(*(_value(entity, language, name) for entity, name in parts))
    result = calculate(filled)
    return Draft(
        words | dict(zip("abc", titles, strict=False)),
        min(chosen),
        [*_reading(titles), [("calculate", filled, "calculate")]],
        {"number": result} | ({"rounded": True} if "." in result else {}),
        result,
        titles,
        [_fact(entity, language, name) for entity, name in parts],
    )


def _total(count: int, choices: tuple[str, ...], draw: Draw, language: Language) -> Draft:
    attribute = draw.rng.choice(choices)
    parts = [(entity, attribute) for entity in draw.several(count, "country", language, attribute)]
    expression = " + ".join(f"{{{index}}}" for index in range(count))
    return _computed(parts, expression, {"x": ATTRIBUTES[attribute][language]}, language)


def _running_total(choices: tuple[str, ...], draw: Draw, language: Language) -> Draft:
    """A long errand: one document after the other, a running total carried along; three turns a document."""
    attribute = draw.rng.choice(choices)
    parts = draw.several(draw.rng.randint(*RUNNING), "country", language, attribute)
    titles = [entity.titles[language] for entity in parts]
    total, plan = "", list[list[Step]]()
    for entity, title in zip(parts, titles, strict=True):
        plan += [[("search", title, "search")], [("open", title, "open")]]
        value = _value(entity, language, attribute)
        if total:
            plan.append([("calculate", f"{total} + {value}", "calculate")])
        total = calculate(f"{total} + {value}") if total else value
    return Draft(
        {"names": ("、" if language == "zh" else ", ").join(titles), "x": ATTRIBUTES[attribute][language]},
        parts[0].key,
        plan,
        {"number": total},
        total,
        titles,
        [_fact(entity, language, attribute) for entity in parts],
    )


def _elevation_difference(draw: Draw, language: Language) -> Draft:
    pair = draw.several(2, "airport", language, "elevation")
    high, low = sorted(pair, key=lambda entity: -int(_value(entity, language, "elevation")))
    negative = _value(low, language, "elevation").startswith("-")
    return _computed(
        [(high, "elevation"), (low, "elevation")], "{0} - ({1})" if negative else "{0} - {1}", {}, language
    )


def _people_per_km2(draw: Draw, language: Language) -> Draft:
    entity = draw.one("country", language, "population", "area")
    return _computed([(entity, "population"), (entity, "area")], "{0} / {1}", {}, language)


def _elevation_metres(draw: Draw, language: Language) -> Draft:
    entity = draw.one("airport", language, "elevation")
    return _computed([(entity, "elevation")], "{0} * 0.3048", {}, language)


def _mass_ratio(draw: Draw, language: Language) -> Draft:
    pair = [(entity, "mass") for entity in draw.several(2, "element", language, "mass")]
    return _computed(pair, "{0} / {1}", {}, language)


def _missing_entity(draw: Draw, language: Language) -> Draft:
    kind: Kind = draw.rng.choice(("country", "airport", "element"))
    name = _invented(kind, draw, language)
    choices = {"country": ("capital", "population"), "airport": ("city", "elevation"), "element": ("symbol", "mass")}
    words = {"a": name, "x": ATTRIBUTES[draw.rng.choice(choices[kind])][language]}
    plan: list[list[Step]] = [[("search", name, "search")]]
    return Draft(words, f"missing:{name}", plan, {"decline": name}, "no_document", closing="no_document")


def _missing_attribute(draw: Draw, language: Language) -> Draft:
    kind: Kind = draw.rng.choice(("country", "airport", "element"))
    entity, unknown = draw.one(kind, language), UNKNOWN[kind][language]
    half = len(unknown) // 2
    attribute = draw.rng.choice(unknown[:half] if draw.split == "train" else unknown[half:])
    absent = [name for name in ("density", "currency", "neighbours") if _lacks(entity, language, name)]
    if absent and draw.rng.random() < 0.5:
        attribute = ATTRIBUTES[draw.rng.choice(absent)][language]
    title = entity.titles[language]
    words = {"a": title, "x": attribute}
    answer = {"decline": attribute}
    return Draft(words, entity.key, _reading([title]), answer, "no_value", [title], closing="no_value")


def _lacks(entity: Entity, language: Language, attribute: str) -> bool:
    """True if documents of this kind give the attribute, but not this one."""
    return attribute in given(entity.kind, language) and attribute not in entity.facts[language]


RUNNING = (7, 20)
"""Fewest and most documents of a long task: with three turns each, 21 to 60 turns."""

_SYLLABLES = (
    "ba",
    "dor",
    "el",
    "fi",
    "gan",
    "ka",
    "lu",
    "mo",
    "nar",
    "ost",
    "pel",
    "ri",
    "sa",
    "tov",
    "ur",
    "ve",
    "zin",
)
_CHARACTERS = "阿贝卡多菲格拉莫纳奥帕里萨塔维佐"


def _invented(kind: Kind, draw: Draw, language: Language) -> str:
    """A name that nothing in the collection has (no airport of the world, for codes), on this side of the split."""
    while True:
        name = _name(kind, draw.rng, language)
        taken = name[:3] in real_airport_codes() if kind == "airport" else name in _titles(language)
        if not taken and split_of(name) == draw.split:
            return name


@cache
def _titles(language: Language) -> frozenset[str]:
    return frozenset(entity.titles[language] for entity in entities())


def _name(kind: Kind, rng: random.Random, language: Language) -> str:
    if kind == "airport":
        return "".join(rng.choices(ascii_uppercase, k=3)) + (" airport" if language == "en" else "机场")
    if language == "zh":
        return "".join(rng.choices(_CHARACTERS, k=3)) + ("国" if kind == "country" else "素")
    stem = "".join(rng.choices(_SYLLABLES, k=2))
    return stem.capitalize() + "ia" if kind == "country" else stem + "ium"


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of question.

    Attributes:
        draft: draws one.
        held_out: never used in training.
        long: 21 to 60 turns; made only where `long` or its name is asked for.
    """

    draft: Callable[[Draw, Language], Draft]
    held_out: bool = False
    long: bool = False


def _of(function: Callable[..., Draft], *fixed: Any) -> Callable[[Draw, Language], Draft]:
    return lambda draw, language: function(*fixed, draw, language)


TEMPLATES: dict[str, Template] = {
    "country_text": Template(_of(_lookup, "country", ("capital", "subregion", "currency", "language"))),
    "country_number": Template(_of(_lookup, "country", ("population", "area", "calling_code", "neighbours"))),
    "airport_fact": Template(_of(_lookup, "airport", ("city", "country", "elevation"))),
    "element_fact": Template(_of(_lookup, "element", ("symbol", "number", "mass", "density"))),
    "airport_code": Template(_airport_code),
    "airport_capital": Template(_of(_two_hop, ("capital", "language"))),
    "compare_country": Template(_of(_compare, "country", ("population", "area"))),
    "compare_elevation": Template(_of(_compare, "airport", ("elevation",))),
    "total_country": Template(_of(_total, 2, ("population", "area"))),
    "elevation_difference": Template(_elevation_difference),
    "people_per_km2": Template(_people_per_km2),
    "elevation_metres": Template(_elevation_metres),
    "missing_entity": Template(_missing_entity),
    "missing_attribute": Template(_missing_attribute),
    "airport_currency": Template(_of(_two_hop, ("currency", "subregion")), held_out=True),
    "compare_mass": Template(_of(_compare, "element", ("mass", "number")), held_out=True),
    "total_three": Template(_of(_total, 3, ("population", "area")), held_out=True),
    "mass_ratio": Template(_mass_ratio, held_out=True),
    "running_total": Template(_of(_running_total, ("population", "area")), long=True),
}
