"""Real functions that repair tasks are made from: where each is found, and how to call it.

All are from Python's standard library, as installed (licence: PSF-2.0). A sandbox of a repair task hides these modules,
so they are ones that programs rarely need. `train` and `eval` share no module.
"""

from __future__ import annotations

import random
import re
import string
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LICENCE: Final = "PSF-2.0"


@dataclass(frozen=True, slots=True)
class Source:
    """One function.

    Attributes:
        module: of the standard library.
        function: its name there.
        calls: expressions that call it; `$word` stands for a drawn argument (`DRAWS`).
    """

    module: str
    function: str
    calls: tuple[str, ...]

    def expression(self, rng: random.Random) -> str:
        """A call with drawn arguments."""
        return re.sub(r"\$(\w+)", lambda match: repr(DRAWS[match[1]](rng)), rng.choice(self.calls))


def _some(rng: random.Random, make: Callable[[random.Random], Any], least: int, most: int) -> list[Any]:
    return [make(rng) for _ in range(rng.randint(least, most))]


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 7)))


def _text(rng: random.Random) -> str:
    return "".join(rng.choices("ab cd.ef-=_?&<>\"'\\ é\n\t%/", k=rng.randint(3, 24)))


def _unicode(rng: random.Random) -> str:
    return "".join(rng.choices("abcxyz-äöüßéñçжд中文", k=rng.randint(3, 12)))


def _host(rng: random.Random) -> str:
    names = (".example.com", "www.example.com", "example.com", "acme.org", "local", ".local", "a.b.c.example.com")
    return rng.choice((*names, "127.0.0.1", "x.acme.org", ".acme.org"))


def _date(rng: random.Random) -> str:
    month = rng.choice(("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"))
    day, year, zone = rng.randint(1, 28), rng.randint(1971, 2037), rng.choice(("GMT", "+0130", "-0800"))
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return rng.choice((f"Wed, {day:02} {month} {year} {clock} {zone}", f"{day:02}-{month}-{year} {clock} {zone}"))


def _iso_date(rng: random.Random) -> str:
    day = f"{rng.randint(1971, 2037)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return day + rng.choice(("", f" {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:07", "T05:06:09Z"))


def _number_line(rng: random.Random) -> list[float]:
    return _some(rng, lambda rng: rng.randint(1, 400) / 4, 4, 9)


def _graph(rng: random.Random) -> dict[str, list[str]]:
    names = "abcdefg"[: rng.randint(3, 7)]
    return {name: sorted(rng.sample(names[:at], rng.randint(0, min(2, at)))) for at, name in enumerate(names)}


def _options(rng: random.Random) -> list[str]:
    words = ("-a", "-b3", "-b", "7", "--size=4", "--size", "9", "--quiet", "file", "-ab5", "--", "--qui")
    return [rng.choice(words) for _ in range(rng.randint(1, 5))]


def _tz(rng: random.Random) -> str:
    minutes = rng.choice(("", ":30", "00", "45"))
    return rng.choice("+-") + f"{rng.randint(0, 23):02}" + minutes


DRAWS: Final[dict[str, Callable[[random.Random], Any]]] = {
    "bit": lambda rng: rng.randint(0, 1),
    "unit": lambda rng: rng.randint(0, 100) / 100,
    "small": lambda rng: rng.randint(1, 12),
    "int": lambda rng: rng.randint(-60, 60),
    "count": lambda rng: rng.randint(0, 200),
    "big": lambda rng: rng.randint(1, 10 ** rng.randint(2, 9)),
    "byte": lambda rng: rng.randint(0, 255),
    "bytes": lambda rng: bytes(rng.choices(range(256), k=rng.randint(0, 14))),
    "line": lambda rng: bytes(rng.choices(b"abc =.?_\xe9\xff", k=rng.randint(0, 14))),
    "word": _word,
    "text": _text,
    "texts": lambda rng: _some(rng, _text, 1, 4),
    "unicode": _unicode,
    "year": lambda rng: rng.choice((rng.randint(1583, 2400), 1900, 2000, 2024, 2100)),
    "ints": lambda rng: _some(rng, lambda rng: rng.randint(0, 9), 2, 9),
    "numbers": _number_line,
    "pairs": lambda rng: [(_word(rng), rng.choice((_word(rng), None, "a b", 'q"t'))) for _ in range(rng.randint(1, 3))],
    "host": _host,
    "date": _date,
    "iso": _iso_date,
    "tz": _tz,
    "graph": _graph,
    "options": _options,
    "digits": lambda rng: str(rng.randint(0, 10 ** rng.randint(1, 11))),
    "octal": lambda rng: oct(rng.randint(0, 10**6))[2:].encode() + b"\0",
    "flags": lambda rng: f"* FLAGS ({' '.join(_some(rng, _word, 1, 4))})".encode(),
    "lines": lambda rng: "\n".join(_some(rng, _word, 1, 4)) + rng.choice(("", "\n", "\r\n")) + ".x\n",
    "listed": lambda rng: ", ".join(f'{_word(rng)}="{_word(rng)}, {_word(rng)}"' for _ in range(rng.randint(1, 3))),
    "tuple": lambda rng: (rng.choice(("/usr/lib/a.py", "~", "b.py")), rng.randint(0, 9), rng.choice(("f", "<g>"))),
    "table": lambda rng: {_word(rng): _word(rng) for _ in range(rng.randint(1, 4))},
}
"""How each kind of argument is drawn; all have a literal form."""


def _read() -> dict[str, tuple[Source, ...]]:
    sides = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))
    return {
        split: tuple(
            Source(module, function, tuple(calls))
            for module, functions in modules.items()
            for function, calls in functions.items()
        )
        for split, modules in sides.items()
    }


SOURCES: Final = _read()

HIDDEN: Final = tuple(sorted({source.module for side in SOURCES.values() for source in side}))
"""Modules that no program of a repair task finds."""
