"""The built-in collection `atlas`: countries, airports and chemical elements, in English and Chinese.

The facts are those of the data packages `countryinfo` (Mledoze's countries), `airportsdata` and
`periodictable`; names of countries, currencies, languages and regions are those of Unicode CLDR through
`babel`. A value that is missing or doubtful there is left out of the document, never filled in. Chinese
documents give fewer facts: a Chinese character costs a small model about two tokens.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import airportsdata
import countryinfo
import periodictable
from babel import Locale

from quintain.worlds.desk.collection import Collection, Document
from quintain.worlds.desk.elements_zh import NAMES
from quintain.worlds.drawing import LANGUAGES, Language, Split

Kind = Literal["country", "airport", "element"]

AIRPORTS_PER_COUNTRY = 5
EVAL_SHARE = 0.4
"""Share of the entities that only evaluation tasks use."""

LABELS: dict[str, dict[Language, str]] = {
    "capital": {"en": "Capital", "zh": "首都"},
    "population": {"en": "Population", "zh": "人口"},
    "area": {"en": "Area in km2", "zh": "面积（km2）"},
    "subregion": {"en": "Region", "zh": "地区"},
    "currency": {"en": "Currency", "zh": "货币"},
    "language": {"en": "Language", "zh": "语言"},
    "calling_code": {"en": "Calling code", "zh": "区号"},
    "neighbours": {"en": "Number of neighbours", "zh": "邻国数"},
    "name": {"en": "Name", "zh": "名称"},
    "city": {"en": "City", "zh": "城市"},
    "country": {"en": "Country", "zh": "国家"},
    "elevation": {"en": "Elevation in ft", "zh": "海拔（英尺）"},
    "symbol": {"en": "Symbol", "zh": "符号"},
    "number": {"en": "Atomic number", "zh": "原子序数"},
    "mass": {"en": "Atomic mass", "zh": "原子量"},
    "density": {"en": "Density in g/cm3", "zh": "密度（g/cm3）"},
}
_DOUBTFUL = {("HK", "capital"), ("MO", "capital"), ("VA", "capital")}
"""Values of the data package that are not what a reader would expect: left out."""

_OPENING: dict[Kind, dict[Language, str]] = {
    "country": {"en": "Country or territory.", "zh": "国家或地区。"},
    "airport": {"en": "Airport.", "zh": "机场。"},
    "element": {"en": "Chemical element.", "zh": "化学元素。"},
}


def share(key: str) -> float:
    """A number in [0, 1) that depends on the text alone, the same in every process."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6]) / 2**48


def split_of(name: str) -> Split:
    """The side of the split a name falls on."""
    return "eval" if share("split:" + name) < EVAL_SHARE else "train"


@dataclass(frozen=True, slots=True)
class Entity:
    """A country, airport or element with its facts.

    Attributes:
        key: stable name, `country:DE`.
        kind: what it is.
        group: entities of one group are on the same side of the split (an airport with its country).
        titles: title of its document, by language.
        facts: values by language and attribute, as the documents spell them.
    """

    key: str
    kind: Kind
    group: str
    titles: dict[Language, str]
    facts: dict[Language, dict[str, str]]

    @property
    def split(self) -> Split:
        """The split whose tasks may use this entity."""
        return split_of(self.group)

    def document(self, language: Language) -> Document:
        """Its document in one language."""
        facts = self.facts[language]
        if language == "en":
            lines = [f"{LABELS[name]['en']}: {value.removesuffix('.')}." for name, value in facts.items()]
            return Document(self.titles["en"], " ".join([_OPENING[self.kind]["en"], *lines]))
        lines = [f"{LABELS[name]['zh']}：{value}。" for name, value in facts.items()]
        return Document(self.titles["zh"], "".join([_OPENING[self.kind]["zh"], *lines]))


@cache
def entities() -> tuple[Entity, ...]:
    """All entities, in the order of their keys."""
    countries = {entity.key.removeprefix("country:"): entity for entity in _countries()}
    found = [*countries.values(), *_airports(countries), *_elements()]
    return tuple(sorted(found, key=lambda entity: entity.key))


@cache
def given(kind: Kind, language: Language) -> frozenset[str]:
    """Attributes that documents of a kind give in a language."""
    return frozenset(name for entity in entities() if entity.kind == kind for name in entity.facts[language])


@cache
def atlas() -> Collection:
    """The documents of all entities, English and Chinese."""
    return Collection((entity.document(language) for entity in entities() for language in LANGUAGES), "atlas")


@cache
def real_airport_codes() -> frozenset[str]:
    """IATA codes of all airports, those outside the collection included."""
    return frozenset(airportsdata.load("IATA"))


@cache
def _locale(language: Language) -> Locale:
    return Locale.parse(language)


def _countries() -> Iterator[Entity]:
    by_code: dict[str, dict[str, Any]] = {}
    records: list[dict[str, Any]] = [dict(item.info()) for item in countryinfo.all_countries()]
    for record in records:
        code = (record.get("ISO") or {}).get("alpha2")
        usable = all(record.get(name) for name in ("population", "area", "capital", "subregion"))
        if code and usable and code in _locale("en").territories:
            by_code.setdefault(code, record)
    for code, record in by_code.items():
        titles: dict[Language, str] = {language: _territory(code, language) for language in LANGUAGES}
        facts = {language: _country_facts(record, language) for language in LANGUAGES}
        yield Entity(f"country:{code}", "country", f"country:{code}", titles, facts)


def _territory(code: str, language: Language) -> str:
    name: str = _locale(language).territories[code]
    return name.replace(" & ", " and ").replace("’", "'").removesuffix(" (Burma)")


def _country_facts(record: dict[str, Any], language: Language) -> dict[str, str]:
    facts: dict[str, str | None] = {
        "capital": _city(record["capital"], language) if isinstance(record["capital"], str) else None,
        "population": _integer(record["population"]),
        "area": _integer(record["area"]),
        "subregion": record["subregion"] if language == "en" else None,
        "currency": _only(record.get("currencies"), _locale(language).currencies),
        "language": _only(record.get("languages"), _locale(language).languages),
        "calling_code": _single(record.get("callingCodes")),
        "neighbours": str(len(record["borders"])) if record.get("borders") and language == "en" else None,
    }
    code = record["ISO"]["alpha2"]
    return {name: value for name, value in facts.items() if value and (code, name) not in _DOUBTFUL}


def _integer(value: Any) -> str | None:
    return str(int(value)) if float(value) == int(value) and value > 0 else None


def _single(values: Any) -> str | None:
    """The only value of a list of digits; None if there are more or none."""
    return str(values[0]) if isinstance(values, list) and len(values) == 1 and str(values[0]).isdigit() else None


def _only(codes: Any, names: Any) -> str | None:
    """The CLDR name of the only code in a list; None if there are more or none, or for a name with its years."""
    if not isinstance(codes, list) or len(codes) != 1:
        return None
    name: str | None = names.get(codes[0])
    return name if name and "(" not in name and "（" not in name else None


@cache
def _zone_cities() -> dict[str, str]:
    """Chinese names of the cities that name a time zone, by their English names."""
    found: dict[str, str] = {}
    english = _locale("en").time_zones
    for zone, names in _locale("zh").time_zones.items():
        if names.get("city"):
            name = english.get(zone, {}).get("city") or zone.rsplit("/", 1)[-1].replace("_", " ")
            found.setdefault(name, names["city"])
    return found


def _city(name: str, language: Language) -> str:
    """A city's name; Chinese where CLDR knows it, else as the data package spells it."""
    return name if language == "en" else _zone_cities().get(name, name)


def _airports(countries: dict[str, Entity]) -> Iterator[Entity]:
    by_country: dict[str, list[dict[str, Any]]] = defaultdict(list)
    records: dict[str, dict[str, Any]] = {code: dict(record) for code, record in airportsdata.load("IATA").items()}
    named = Counter(record["name"] for record in records.values())
    for code, record in records.items():
        plain = record["name"].isascii() and "/" not in record["name"] and named[record["name"]] == 1
        sizeable = record["name"].count("International") == 1 and record["icao"] and record["city"]
        if plain and sizeable and record["elevation"] and record["country"] in countries:
            by_country[record["country"]].append({**record, "code": code})
    for country, found in sorted(by_country.items()):
        for record in sorted(found, key=lambda one: share(one["code"]))[:AIRPORTS_PER_COUNTRY]:
            yield _airport(record, countries[country])


def _airport(record: dict[str, Any], country: Entity) -> Entity:
    code = record["code"]
    facts: dict[Language, dict[str, str]] = {
        language: {
            "name": record["name"],
            "city": _city(record["city"], language),
            "country": country.titles[language],
            "elevation": str(round(record["elevation"])),
        }
        for language in LANGUAGES
    }
    return Entity(f"airport:{code}", "airport", country.group, {"en": f"{code} airport", "zh": f"{code}机场"}, facts)


def _elements() -> Iterator[Entity]:
    for element in periodictable.elements:
        if not 1 <= element.number <= len(NAMES):
            continue
        values = {
            "symbol": element.symbol,
            "number": str(element.number),
            "mass": _decimal(element.mass),
            "density": _density(element),
        }
        known = {name: value for name, value in values.items() if value}
        titles: dict[Language, str] = {"en": element.name, "zh": NAMES[element.number - 1]}
        key = f"element:{element.symbol}"
        yield Entity(key, "element", key, titles, {"en": known, "zh": known})


def _decimal(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _density(element: Any) -> str | None:
    """Measured densities only: those the package calls calculated or estimated are left out."""
    if element.density is None or element.density_caveat in ("calculated", "estimated", "unavailable"):
        return None
    return _decimal(element.density)
