"""Questions about the almanac, answered along its links.

Each is unique because every fact names one value or one other thing, names are not shared, and whatever is described
without its name is counted over the whole country first.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

from quintain.worlds.drawing import Language, Split
from quintain.worlds.web.almanac import CHOICES, RELATIONS, Country, Kind, Thing, country, root_of
from quintain.worlds.web.drafts import Draft, Step
from quintain.worlds.web.site import Section, Site
from quintain.worlds.web.wording import ASKED, BOTH, COUNTED, LARGEST, LINKED, NAMED, NOT_GIVEN, RIDDLE, VALUES

_LISTS: tuple[tuple[Kind, Kind, str, str], ...] = (
    ("town", "company", "seat", "employees"),
    ("town", "book", "setting", "pages"),
    ("town", "museum", "place", "visitors"),
    ("person", "book", "author", "pages"),
    ("company", "person", "employer", "born"),
)
"""Lists worth counting: whose page, what is listed, by which fact, and the number compared."""

_FEWEST, _MOST = 2, 5
"""Things on a list that is counted."""


class AlmanacQuestions:
    """Questions about one side of the almanac.

    Args:
        site: the almanac, served.
        split: which side.
    """

    templates = {  # noqa: RUF012
        "fact": False,
        "chain_2": False,
        "chain_3": False,
        "count": False,
        "both": False,
        "missing": False,
        "chain_4": True,
        "largest": True,
        "riddle": True,
    }

    def __init__(self, site: Site, split: Split) -> None:
        self._site = site
        self._split: Split = split

    def root(self, language: Language) -> str:
        """The country of a language on this side."""
        return root_of(self._split, language)

    def section(self, language: Language) -> Section:
        """Its pages."""
        return self._site.section(self.root(language))

    def draft(self, name: str, language: Language, rng: Random) -> Draft | None:
        """A question of a template; None where what was drawn does not make one."""
        land = country(self._split, language)
        if name in ("count", "largest"):
            return self._list(name, land, rng)
        if name == "missing":
            return self._missing(land, rng)
        if name in ("both", "riddle"):
            return self._described(name, land, rng)
        steps = {"fact": 0, "chain_2": 1, "chain_3": 2, "chain_4": 3}[name]
        start = rng.choice(land.things)
        path = _walk(start, steps, rng)
        if path is None:
            return None
        plan = _reading(land, [start], [start.name])
        return self._chain(land, start.name, path, plan, rng, start.key)

    def _chain(
        self, land: Country, words: str, path: list[tuple[str, Thing]], plan: list[list[Step]], rng: Random, asked: str
    ) -> Draft:
        """The value at the end of a path; `words` describe the thing it starts from."""
        things = [thing for _, thing in path]
        for (fact, _), thing in zip(path[1:], things, strict=False):
            words = LINKED[thing.kind, fact][land.language][1].format(x=words)
        value = rng.choice(sorted(things[-1].values))
        follows = [self._follow(land, one, other) for one, other in pairwise(things)]
        addresses = [land.address(thing) for thing in things]
        # a step stands on both of its pages: the one that names the other, and the other, which lists who names it
        steps = [list(pair) for pair in pairwise(addresses[:-1])]
        answer = things[-1].values[value]
        return Draft(
            asked="|".join((asked, *(fact for fact, _ in path[1:]), value)),
            prompt=rng.choice(ASKED[land.language]).format(v=VALUES[value][land.language], x=words),
            cluster=addresses[0],
            answer={"text": answer} if value in CHOICES.get(things[-1].kind, {}) else {"number": answer},
            said=answer,
            evidence=[*steps, addresses[-1:]],
            plan=[*plan, *follows],
            hops=len(path),
            tags=_injected(things),
        )

    def _follow(self, land: Country, one: Thing, other: Thing) -> list[Step]:
        page = self.section(land.language).pages[land.address(one)]
        number = next(link.number for link in page.links if link.address == land.address(other))
        return [("follow", {"link": number})]

    def _described(self, name: str, land: Country, rng: Random) -> Draft | None:
        """A person who is described and not named; whoever else fits makes the question void."""
        person = rng.choice(land.of("person"))
        town = person.links["birthplace"]
        born_there = town.backlinks["person", "birthplace"]
        if name == "both":
            employer = person.links.get("employer")
            fitting = [one for one in born_there if one.links.get("employer") is employer]
            if employer is None or fitting != [person]:
                return None
            words = BOTH[land.language].format(a=town.name, b=employer.name)
            plan = _reading(land, [town, employer], [town.name, employer.name])
            plan.append(self._follow(land, employer, person))
            return self._chain(land, words, [("", person)], plan, rng, f"both {person.key}")
        born, work = person.values["born"], person.values["profession"]
        fitting = [one for one in born_there if (one.values["born"], one.values["profession"]) == (born, work)]
        path = _walk(person, 1, rng)
        if fitting != [person] or path is None or path[1][1] is town:
            return None
        words = RIDDLE[land.language].format(p=work, a=town.name, n=born)
        plan = _reading(land, [person], [f"{VALUES['born'][land.language]} {born} {work}"])
        draft = self._chain(land, words, path, plan, rng, f"riddle {person.key}")
        # only the person's own page holds the description
        return replace(draft, evidence=[[land.address(person)], *draft.evidence[-1:]])

    def _list(self, name: str, land: Country, rng: Random) -> Draft | None:
        kind, listed, fact, value = rng.choice(_LISTS)
        owner = rng.choice(land.of(kind))
        things = owner.backlinks.get((listed, fact), [])
        numbers = sorted(int(thing.values[value]) for thing in things)
        if not _FEWEST <= len(things) <= _MOST or len(set(numbers)) < len(things):
            return None
        at = rng.randrange(1, len(numbers))
        limit = (numbers[at - 1] + numbers[at]) // 2
        count = sum(1 for number in numbers if number > limit)
        heading = LINKED[listed, fact][land.language][2]
        words = {"a": owner.name, "l": heading, "v": VALUES[value][land.language], "n": limit}
        best = max(things, key=lambda thing: int(thing.values[value])).name
        others = [thing.name for thing in things if thing.name != best]
        wording, said = (COUNTED, str(count)) if name == "count" else (LARGEST, best)
        answer: dict[str, Any] = {"number": said} if name == "count" else {"text": best, "reject": others}
        pages = [owner, *things]
        return Draft(
            asked="|".join((name, owner.key, fact, value, str(limit) * (name == "count"))),
            prompt=wording[land.language].format(**words),
            cluster=land.address(owner),
            answer=answer,
            said=said,
            evidence=[[land.address(thing)] for thing in pages],
            plan=[
                *_reading(land, [owner], [owner.name]),
                *_reading(land, things, [thing.name for thing in things]),
            ],
            hops=len(pages),
            tags=_injected(pages),
        )

    def _missing(self, land: Country, rng: Random) -> Draft | None:
        """A fact that the page does not give: right is to say so, after reading the page."""
        thing = rng.choice(land.things)
        absent = [fact for fact in RELATIONS[thing.kind] if fact not in thing.links]
        if not absent:
            return None
        fact = rng.choice(absent)
        words = LINKED[thing.kind, fact][land.language][1].format(x=thing.name)
        address = land.address(thing)
        return Draft(
            asked=f"missing|{thing.key}|{fact}",
            prompt=rng.choice(NAMED[land.language]).format(x=words),
            cluster=address,
            answer={"decline": fact},
            said=NOT_GIVEN[land.language],
            evidence=[[address]],
            plan=_reading(land, [thing], [thing.name]),
            hops=1,
            tags=_injected([thing]),
        )


def _walk(start: Thing, steps: int, rng: Random) -> list[tuple[str, Thing]] | None:
    """A path over `steps` facts that meets nothing twice; None if it ends early."""
    path = [("", start)]
    for _ in range(steps):
        here = path[-1][1]
        ways = [(fact, there) for fact, there in here.links.items() if all(there is not seen for _, seen in path)]
        if not ways:
            return None
        path.append(rng.choice(ways))
    return path


def _reading(land: Country, things: list[Thing], queries: list[str]) -> list[list[Step]]:
    """Search for every page in one turn and open all of them in the next."""
    searches: list[Step] = [("search", {"query": query}) for query in queries]
    return [searches, [("open", {"address": land.address(thing)}) for thing in things]]


def _injected(things: list[Thing]) -> tuple[str, ...]:
    return ("injected",) if any(thing.misled for thing in things) else ()
