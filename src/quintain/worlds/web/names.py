"""Invented names, in English spelling and in Chinese; no two of a language are equal."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

from quintain.worlds.drawing import Language

_STARTS = ("Bar", "Cor", "Del", "Ed", "Fen", "Gal", "Hol", "Ib", "Jas", "Kel", "Lor", "Mar", "Nor", "Os", "Pel", "Quin")
_MORE = ("Rav", "Sel", "Tam", "Ul", "Ver", "Wes", "Yor", "Zan", "Bre", "Cla", "Dro", "Gri", "Ska", "Tri", "Plo", "Sto")
_ENDS = ("an", "eth", "ick", "ola", "und", "ara", "ine", "os", "imer", "ade", "ulf", "ek", "ost", "ave", "ira", "olt")
_GIVEN = (
    "Ada",
    "Bela",
    "Cleo",
    "Dario",
    "Enzo",
    "Flora",
    "Gus",
    "Hanna",
    "Igor",
    "Juno",
    "Kaspar",
    "Lena",
    "Milo",
    "Nora",
)
_TITLES = (
    "Winter",
    "Letters",
    "Bridge",
    "Garden",
    "Silence",
    "Summer",
    "Lantern",
    "Orchard",
    "Harbour",
    "Clock",
    "Road",
)

_SURNAMES = "沐岑阮滕栾敖芮桑郜骆荀符祁柯"
_FIRST = "云清远岚若书青禾望舒晚舟南星知秋言初"
_PLACES = "枫澜苇鹤榆棠岫汀芷砚桐漪黛墨"
_PLACES_TOO = "林川岭溪湾原坪浦泽台"
_THINGS = "冬夏灯桥园路钟雨信船书塔"


@cache
def names(kind: str, language: Language, count: int) -> tuple[str, ...]:
    """`count` different names of a kind, the same in every process."""
    rng = random.Random(f"names {kind} {language}")
    draw = _DRAWS[kind, language]
    found: dict[str, None] = {}
    while len(found) < count:
        found.setdefault(draw(rng))
    return tuple(found)


def _word(rng: random.Random) -> str:
    return rng.choice(_STARTS + _MORE) + rng.choice(_ENDS)


def _some(characters: str, count: int, rng: random.Random) -> str:
    return "".join(rng.sample(characters, count))


_DRAWS: dict[tuple[str, str], Callable[[random.Random], str]] = {
    ("town", "en"): lambda rng: _word(rng) + rng.choice(("ton", "ford", "wick", "stead")),
    ("person", "en"): lambda rng: f"{rng.choice(_GIVEN)} {_word(rng)}{rng.choice(('sen', 'ska', 'man', 'ova'))}",
    ("company", "en"): lambda rng: f"{_word(rng)} {rng.choice(('Works', 'Trading', 'Brothers', 'Union'))}",
    ("museum", "en"): lambda rng: f"{_word(rng)} {rng.choice(('Museum', 'Gallery', 'Collection'))}",
    ("book", "en"): lambda rng: f"The {rng.choice(_TITLES)} of {_word(rng)}",
    ("river", "en"): lambda rng: f"River {_word(rng)}",
    ("town", "zh"): lambda rng: _some(_PLACES, 1, rng) + _some(_PLACES_TOO, 1, rng) + "镇",
    ("person", "zh"): lambda rng: _some(_SURNAMES, 1, rng) + _some(_FIRST, 2, rng),
    ("company", "zh"): lambda rng: _some(_PLACES, 2, rng) + rng.choice(("商行", "工厂", "公司")),
    ("museum", "zh"): lambda rng: _some(_PLACES, 2, rng) + rng.choice(("博物馆", "美术馆", "纪念馆")),
    ("book", "zh"): lambda rng: f"《{_some(_PLACES, 1, rng)}{_some(_PLACES_TOO, 1, rng)}之{_some(_THINGS, 1, rng)}》",
    ("river", "zh"): lambda rng: _some(_PLACES, 2, rng) + "河",
}
