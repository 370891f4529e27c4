"""What programs are to be written: text in two languages, drawn parameters, a reference, and cases.

A case is an expression; what the reference gives for it is right. Properties (what is encoded decodes to itself, a
result does not change when it is made again) are cases like any other.
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

from quintain.worlds.drawing import Language

_CHOICE = re.compile(r"\{(\w+)\?([^:}]*):([^}]*)\}")  # {name?if true:if false}

Parameters = dict[str, Any]
Maker = Callable[[random.Random, Parameters], str]


@dataclass(frozen=True, slots=True)
class Specification:
    """One kind of program.

    Attributes:
        split: `train` or `eval`.
        level: difficulty.
        functions: names that the file must define.
        en: the specification, with parameters in braces; `{name?one:other}` says one thing or the other.
        zh: the same in Chinese.
        reference: Python source, where `$name` stands for a parameter.
        parameters: draws the parameters.
        cases: make expressions; the first kind makes the visible examples.
    """

    split: str
    level: int
    functions: list[str]
    en: str
    zh: str
    reference: str
    parameters: Callable[[random.Random], Parameters]
    cases: tuple[Maker, ...]

    def source(self, parameters: Parameters) -> str:
        """The reference for given parameters."""
        return string.Template(self.reference).substitute({name: repr(one) for name, one in parameters.items()})

    def text(self, language: Language, parameters: Parameters) -> str:
        """The specification for given parameters."""
        said: str = getattr(self, language)
        return _CHOICE.sub(lambda match: match[2] if parameters[match[1]] else match[3], said).format(**parameters)


def _ints(rng: random.Random, low: int, high: int, most: int = 9) -> list[int]:
    return [rng.randint(low, high) for _ in range(rng.randint(0, most))]


def _letters(rng: random.Random, letters: str, most: int = 12) -> str:
    return "".join(rng.choices(letters, k=rng.randint(0, most)))


def _alphabet(rng: random.Random, count: int) -> str:
    return "".join(rng.sample(string.ascii_lowercase, count))


def _coin(rng: random.Random) -> bool:
    return rng.random() < 0.5


def _runs(rng: random.Random, letters: str) -> str:
    return "".join(letter * rng.randint(1, 9) for letter in _letters(rng, letters, 6))


def _intervals(rng: random.Random) -> list[tuple[int, int]]:
    starts = _ints(rng, 0, 40, 7)
    return [(start, start + rng.randint(0, 8)) for start in starts]


def _rows(rng: random.Random) -> list[list[int]]:
    width = rng.randint(1, 4)
    return [[rng.randint(0, 9) for _ in range(width)] for _ in range(rng.randint(1, 4))]


def _steps(rng: random.Random, keys: str) -> list[tuple[str, str]]:
    return [(rng.choice(("put", "get")), rng.choice(keys)) for _ in range(rng.randint(1, 12))]


def _bracketed(rng: random.Random, pairs: list[str]) -> str:
    opened, closed = tuple(rng.choice(pairs))
    return opened * rng.randint(1, 6) + "x" + closed * rng.randint(1, 6)


def _fields(rng: random.Random, p: Parameters) -> str:
    fields = [_letters(rng, "aB ", 3) + "k" + p["equals"] + _letters(rng, "xy", 3) for _ in range(rng.randint(1, 3))]
    return str(p["between"]).join(fields)


def _versions(rng: random.Random, prefixes: tuple[str, ...]) -> list[str]:
    numbers = [".".join(map(str, [rng.randint(0, 12), *_ints(rng, 0, 12, 3)])) for _ in range(rng.randint(0, 6))]
    return [rng.choice(prefixes) + one for one in numbers]


def _sum(rng: random.Random, p: Parameters) -> str:
    words = [str(rng.randint(0, 30)), str(rng.randint(-9, 30)), rng.choice((p["plus"], p["minus"])), p["twice"]]
    return " ".join(words)


def _postfix(rng: random.Random, p: Parameters) -> str:
    numbers = (str(rng.randint(0, 9)), str(rng.randint(0, 60)), str(rng.randint(-20, 0)))
    return " ".join(rng.choices((*numbers, p["plus"], p["minus"], p["twice"]), k=rng.randint(1, 7)))


def _sentence(rng: random.Random) -> str:
    words = ("Tea", "tea,", "rice!", "the", "a", "of", "Oil", "oil.", "is", "salt", "to", "", "In", "rye", "barley")
    return " ".join(rng.choices(words, k=rng.randint(0, 14)))


def _named(rng: random.Random, names: tuple[str, ...], symbols: str) -> dict[str, str]:
    return dict(zip(names, rng.sample(symbols, len(names)), strict=True))


_SIGNS: Final = "abcdefgh#@&~"
_STOP: Final = ("a", "of", "the", "in", "to", "is")

_PARAMETERS: Final[dict[str, Callable[[random.Random], Parameters]]] = {
    "program_runs": lambda rng: {"mark": rng.choice("#@^~*|"), "least": rng.randint(2, 9), "upper": _coin(rng)},
    "program_shift": lambda rng: {
        "alphabet": _alphabet(rng, rng.randint(6, 20)),
        "shift": rng.randint(1, 5),
        "step": rng.randint(0, 3),
    },
    "program_base": lambda rng: {"digits": _alphabet(rng, rng.randint(3, 9)), "width": rng.randint(1, 5)},
    "program_intervals": lambda rng: {"gap": rng.randint(0, 12), "least": rng.randint(0, 15)},
    "program_windows": lambda rng: {
        "size": rng.randint(2, 5),
        "step": rng.randint(1, 3),
        "kind": rng.choice(("min", "max", "sum")),
        "cap": rng.randint(6, 30),
    },
    "program_brackets": lambda rng: {
        "pairs": rng.sample(("()", "[]", "{}", "<>", "«»"), rng.randint(2, 4)),
        "deepest": rng.randint(2, 5),
    },
    "program_records": lambda rng: {
        "between": rng.choice(";|&,"),
        "equals": rng.choice(":=>"),
        "escape": rng.choice("\\!%^"),
        "lower": _coin(rng),
    },
    "program_check": lambda rng: {
        "weights": [rng.randint(1, 9) for _ in range(rng.randint(2, 5))],
        "modulus": rng.choice((7, 9, 10, 11)),
        "offset": rng.randint(0, 6),
    },
    "program_numerals": lambda rng: {
        **_named(rng, ("one", "five", "ten", "fifty"), string.ascii_lowercase),
        "short": _coin(rng),
    },
    "program_spiral": lambda rng: {
        "corner": rng.choice(("left", "right")),
        "take": rng.randint(1, 3),
        "reverse": _coin(rng),
        "add": rng.randint(0, 40),
    },
    "program_postfix": lambda rng: {**_named(rng, ("plus", "minus", "twice"), _SIGNS), "limit": rng.randint(20, 90)},
    "program_cache": lambda rng: {
        "size": rng.randint(1, 4),
        "refresh": _coin(rng),
        "keys": _alphabet(rng, rng.randint(4, 6)),
    },
    "program_versions": lambda rng: {
        "parts": rng.randint(1, 4),
        "prefix": rng.choice(("", "v", "r", "rel-")),
        "least": rng.randint(0, 9),
        "count": rng.randint(1, 4),
    },
    "program_cells": lambda rng: {
        "rule": rng.randint(1, 254),
        "edge": rng.randint(0, 1),
        **_named(rng, ("on", "off"), "#*@O+"),
    },
    "program_top": lambda rng: {
        "count": rng.randint(1, 5),
        "least": rng.randint(1, 4),
        "stop": sorted(rng.sample(_STOP, rng.randint(1, 4))),
        "longest_first": _coin(rng),
    },
}

_CASES: Final[dict[str, tuple[Maker, ...]]] = {
    "program_runs": (
        lambda rng, p: f"encode({_runs(rng, 'abc')!r})",
        lambda rng, p: f"decode(encode({_runs(rng, 'xyz')!r}))",
    ),
    "program_shift": (
        lambda rng, p: f"encode({_letters(rng, p['alphabet'] + ' -', 10)!r})",
        lambda rng, p: f"decode({_letters(rng, p['alphabet'] + '.', 10)!r})",
        lambda rng, p: f"decode(encode({_letters(rng, string.ascii_lowercase, 14)!r}))",
    ),
    "program_base": (
        lambda rng, p: f"to_text({rng.randint(-300, 3000)})",
        lambda rng, p: f"to_number({_letters(rng, p['digits'], 6)!r})",
        lambda rng, p: f"to_number(to_text({rng.randint(-(10**9), 10**9)}))",
    ),
    "program_intervals": (
        lambda rng, p: f"merge({_intervals(rng)})",
        lambda rng, p: f"merge(merge({_intervals(rng)}))",
    ),
    "program_windows": (lambda rng, p: f"windows({_ints(rng, -9, 20, 12)})",),
    "program_brackets": (
        lambda rng, p: f"first_fault({_letters(rng, ''.join(p['pairs']) + 'a', 8)!r})",
        lambda rng, p: f"first_fault({'x'.join(rng.choices(p['pairs'], k=rng.randint(1, 5)))!r})",
        lambda rng, p: f"first_fault({_bracketed(rng, p['pairs'])!r})",
    ),
    "program_records": (
        lambda rng, p: f"parse({_fields(rng, p)!r})",
        lambda rng, p: f"parse({_letters(rng, 'aB ' + 2 * (p['between'] + p['equals']) + p['escape'] + 'z') + 'b'!r})",
    ),
    "program_check": (
        lambda rng, p: f"check_digit({_letters(rng, string.digits, 9)!r})",
        lambda rng, p: f"valid({_letters(rng, string.digits, 8)!r})",
        lambda rng, p: f"valid((lambda text: text + check_digit(text))({_letters(rng, string.digits, 8)!r}))",
    ),
    "program_numerals": (
        lambda rng, p: f"to_text({rng.randint(-1, 91)})",
        lambda rng, p: f"to_number({_letters(rng, p['one'], 3)!r})",
        lambda rng, p: f"to_number(to_text({rng.randint(1, 89)}))",
    ),
    "program_spiral": (lambda rng, p: f"spiral({_rows(rng)})",),
    "program_postfix": (
        lambda rng, p: f"evaluate({_sum(rng, p)!r})",
        lambda rng, p: f"evaluate({_postfix(rng, p)!r})",
    ),
    "program_cache": (lambda rng, p: f"replay({_steps(rng, p['keys'])})",),
    "program_versions": (
        lambda rng, p: f"newest({_versions(rng, (p['prefix'],))})",
        lambda rng, p: f"newest({_versions(rng, (p['prefix'], 'x' if p['prefix'] else ''))})",
    ),
    "program_cells": (
        lambda rng, p: f"after({_letters(rng, p['on'] + p['off'], 12)!r}, {rng.randint(0, 4)})",
        lambda rng, p: f"after(after({_letters(rng, p['on'] + p['off'], 9)!r}, 2), {rng.randint(0, 3)})",
    ),
    "program_top": (lambda rng, p: f"top({_sentence(rng)!r})",),
}


def _read() -> dict[str, Specification]:
    texts = tomllib.loads(Path(__file__).with_name("specifications.toml").read_text(encoding="utf-8"))
    return {name: Specification(**one, parameters=_PARAMETERS[name], cases=_CASES[name]) for name, one in texts.items()}


SPECIFICATIONS: Final = _read()
