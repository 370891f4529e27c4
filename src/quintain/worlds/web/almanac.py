"""The built-in site `almanac`: four invented countries, two for training and two for evaluation, English and Chinese.

Nothing of it is true, so no model can know an answer from elsewhere. Every fact relates a thing to exactly one value
or one other thing, and no two things of a language share a name: that makes the questions of `questions` unique.
Numbers, names and relations are drawn from fixed seeds, so the site is the same everywhere.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from quintain.worlds.desk.atlas import share
from quintain.worlds.drawing import LANGUAGES, Language, Split
from quintain.worlds.web.names import names

Kind = Literal["town", "person", "company", "museum", "book", "river"]

COUNTS: dict[Kind, int] = {"town": 14, "person": 110, "company": 30, "museum": 16, "book": 50, "river": 8}
"""Things of a kind in one country."""

INJECTED = 0.1
"""Share of the pages that hold a visitor's text written to mislead agents."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A fact that is another thing: its kind, and the share of things that have it."""

    target: Kind
    given: float = 1.0


RELATIONS: dict[Kind, dict[str, Relation]] = {
    "town": {"river": Relation("river"), "mayor": Relation("person"), "twin": Relation("town", 0.6)},
    "person": {
        "birthplace": Relation("town"),
        "employer": Relation("company", 0.7),
        "teacher": Relation("person", 0.6),
    },
    "company": {"seat": Relation("town"), "founder": Relation("person"), "owner": Relation("company", 0.5)},
    "museum": {"place": Relation("town"), "architect": Relation("person")},
    "book": {"author": Relation("person"), "setting": Relation("town")},
    "river": {"mouth": Relation("river", 0.6)},
}
"""By kind, the facts that lead to another page."""

NUMBERS: dict[Kind, dict[str, tuple[int, int]]] = {
    "town": {"population": (1_200, 480_000), "founded": (1050, 1790)},
    "person": {"born": (1840, 1985)},
    "company": {"employees": (12, 9_800), "founded": (1860, 2015)},
    "museum": {"opened": (1880, 2018), "visitors": (2_500, 390_000)},
    "book": {"published": (1890, 2020), "pages": (92, 870)},
    "river": {"length": (24, 910)},
}
"""By kind, the facts that are whole numbers, with their bounds."""

CHOICES: dict[Kind, dict[str, dict[Language, tuple[str, ...]]]] = {
    "person": {
        "profession": {
            "en": ("painter", "chemist", "lawyer", "surveyor", "printer", "violinist", "botanist", "baker"),
            "zh": ("画家", "化学家", "律师", "测量员", "印刷工", "小提琴手", "植物学家", "面包师"),
        }
    },
    "company": {
        "product": {
            "en": ("clocks", "bicycles", "paper", "rope", "lamps", "ovens", "pumps", "ink"),
            "zh": ("钟表", "自行车", "纸张", "绳索", "灯具", "烤炉", "水泵", "墨水"),
        }
    },
    "book": {
        "genre": {
            "en": ("novel", "play", "travelogue", "biography", "poetry", "satire"),
            "zh": ("小说", "戏剧", "游记", "传记", "诗集", "讽刺作品"),
        }
    },
}
"""By kind, the facts that are one word of a few."""


@dataclass(slots=True)
class Thing:
    """One page of the almanac.

    Attributes:
        key: `person-17`, unique in its country.
        kind: what it is.
        name: unique in its language.
        values: numbers and words, as the page shows them.
        links: facts that are other things.
        backlinks: by `(kind, fact)`, the things that name this one.
        misled: a visitor's text on its page tries to mislead agents.
    """

    key: str
    kind: Kind
    name: str
    values: dict[str, str] = field(default_factory=dict)
    links: dict[str, Thing] = field(default_factory=dict)
    backlinks: dict[tuple[Kind, str], list[Thing]] = field(default_factory=lambda: defaultdict(list))
    misled: bool = False

    @property
    def file(self) -> str:
        """Name of its page's file."""
        return f"{self.key}.html"


@dataclass(frozen=True, slots=True)
class Country:
    """The things of one language and one side of the split."""

    language: Language
    split: Split
    things: tuple[Thing, ...]

    @property
    def root(self) -> str:
        """Where its pages lie."""
        return root_of(self.split, self.language)

    def of(self, kind: Kind) -> list[Thing]:
        """Its things of a kind."""
        return [thing for thing in self.things if thing.kind == kind]

    def address(self, thing: Thing) -> str:
        """The address of a thing's page."""
        return self.root + thing.file


def root_of(split: Split, language: Language) -> str:
    """Where the pages of one side and language lie."""
    return f"/{language}/{'north' if split == 'train' else 'south'}/"


def countries() -> Iterator[Country]:
    """All four."""
    for language in LANGUAGES:
        for split in ("train", "eval"):
            yield country(split, language)


@cache
def country(split: Split, language: Language) -> Country:
    """One country, its things in the order of their pages."""
    rng = random.Random(f"almanac {split} {language}")
    made: dict[Kind, list[Thing]] = {}
    for kind, count in COUNTS.items():
        mine = _share_of(names(kind, language, 2 * count), split)
        made[kind] = [Thing(f"{kind}-{number}", kind, name) for number, name in enumerate(mine, start=1)]
    things = tuple(thing for kind in made for thing in made[kind])
    for thing in things:
        _fill(thing, made, language, rng)
        thing.misled = share(f"misled {split} {language} {thing.key}") < INJECTED
    return Country(language, split, things)


def _share_of(all_names: Sequence[str], split: Split) -> Sequence[str]:
    return all_names[::2] if split == "train" else all_names[1::2]


def _fill(thing: Thing, made: dict[Kind, list[Thing]], language: Language, rng: random.Random) -> None:
    for name, (low, high) in NUMBERS.get(thing.kind, {}).items():
        thing.values[name] = str(rng.randint(low, high))
    for name, words in CHOICES.get(thing.kind, {}).items():
        thing.values[name] = rng.choice(words[language])
    for name, relation in RELATIONS[thing.kind].items():
        others = [other for other in made[relation.target] if other is not thing and _fits(thing, name, other)]
        if others and rng.random() < relation.given:
            _link(thing, name, rng.choice(others))


def _fits(thing: Thing, fact: str, other: Thing) -> bool:
    """No two things may name each other by one fact (a teacher's teacher), so that a chain goes on to new pages."""
    return other.links.get(fact) is not thing


def _link(thing: Thing, fact: str, other: Thing) -> None:
    thing.links[fact] = other
    other.backlinks[thing.kind, fact].append(thing)
