"""The word problems: each template draws numbers, computes the answer, and drafts how the tools lead there."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quintain.worlds.drawing import Language, Split
from quintain.worlds.maths.wordings import GOODS, ITEM, JOIN, PEOPLE

Step = tuple[str, dict[str, str]]
"""Tool and arguments; `{0}` in an expression stands for the value read from the first step's result."""

LEVELS = (1, 2, 3)
_MAIN: dict[Split, dict[int, tuple[int, int]]] = {
    "train": {1: (4, 12), 2: (20, 60), 3: (100, 500)},
    "eval": {1: (13, 19), 2: (61, 99), 3: (501, 999)},
}
"""Range of a problem's main number by level; the two splits share none."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A problem that is not worded yet.

    Attributes:
        words: what the wordings insert.
        plan: calls of the reference solution.
        answer: the answer, computed here and not by the tools.
        rounded: the answer is no exact decimal.
    """

    words: dict[str, Any]
    plan: list[Step]
    answer: Fraction
    rounded: bool = False


class Draw:
    """Draws the numbers, people and goods of one split, language and level."""

    def __init__(self, rng: random.Random, split: Split, language: Language, level: int) -> None:
        self.rng = rng
        self.language = language
        self.level = level
        self.main = rng.randint(*_MAIN[split][level])
        self._people = PEOPLE[split][language]
        self._goods = GOODS[split][language]

    def small(self, low: int = 2, high: int = 9) -> int:
        """A number that does not depend on split or level."""
        return self.rng.randint(low, high)

    def near(self) -> int:
        """Another number of about the size of the main one."""
        return self.main + self.rng.randint(1, max(3, self.main // 3))

    def people(self) -> dict[str, str]:
        """Two different names."""
        return dict(zip("ab", self.rng.sample(self._people, 2), strict=True))

    def goods(self, count: int) -> list[str]:
        """Different goods."""
        return self.rng.sample(self._goods, count)

    def list(self, parts: Sequence[object]) -> str:
        """Words of a list, as the language joins them."""
        comma, last = JOIN[self.language]
        return last.join((comma.join(map(str, parts[:-1])), str(parts[-1])))


def _calculate(expression: str) -> Step:
    return ("calculate", {"expression": expression})


def _solve(equations: str, unknown: str = "") -> Step:
    return ("algebra", {"operation": "solve", "expression": equations, "variable": unknown})


def _shopping(draw: Draw) -> Draft:
    goods = draw.goods(1 + draw.level)
    rows = [(draw.small(), good, draw.main if good == goods[0] else draw.near()) for good in goods]
    listed = draw.list([ITEM[draw.language].format(n=n, x=x, p=p) for n, x, p in rows])
    expression = " + ".join(f"{n} * {p}" for n, _, p in rows)
    total = sum(n * p for n, _, p in rows)
    return Draft(draw.people() | {"list": listed}, [_calculate(expression)], Fraction(total))


def _change(draw: Draw) -> Draft:
    n, p = draw.small(), draw.main
    paid = (n * p // 10 + draw.small(1, 5)) * 10
    words = draw.people() | {"n": n, "p": p, "x": draw.goods(1)[0]}
    return Draft(words | {"b": paid}, [_calculate(f"{paid} - {n} * {p}")], Fraction(paid - n * p))


def _discount(draw: Draw) -> Draft:
    n, p, d = draw.small(), draw.main, 5 * draw.small(1, 12)
    words = draw.people() | {"n": n, "p": p, "d": d, "x": draw.goods(1)[0]}
    return Draft(words, [_calculate(f"{n} * {p} * (100 - {d}) / 100")], Fraction(n * p * (100 - d), 100))


def _travel(draw: Draw) -> Draft:
    v, w, h, k = draw.main, draw.near(), draw.small(), draw.small()
    words = draw.people() | {"v": v, "w": w, "h": h, "k": k}
    return Draft(words, [_calculate(f"{v} * {h} + {w} * {k}")], Fraction(v * h + w * k))


def _average(draw: Draw) -> Draft:
    count = 2 + draw.level
    values = [draw.main, *(draw.near() for _ in range(count - 1))]
    values[-1] += -sum(values) % count
    words = draw.people() | {"n": count, "list": draw.list(values)}
    expression = f"({' + '.join(map(str, values))}) / {count}"
    return Draft(words, [_calculate(expression)], Fraction(sum(values), count))


def _stamps(draw: Draw) -> Draft:
    k, less = draw.small(), draw.main
    words = draw.people() | {"k": k, "s": (k + 1) * less}
    return Draft(words, [_solve(f"a = {k}*b; a + b = {(k + 1) * less}", "a, b")], Fraction(k * less))


def _heads_and_legs(draw: Draw) -> Draft:
    rabbits, chickens = draw.main, draw.near()
    heads, legs = rabbits + chickens, 4 * rabbits + 2 * chickens
    equations = f"r + c = {heads}; 4*r + 2*c = {legs}"
    return Draft({"h": heads, "l": legs}, [_solve(equations, "r, c")], Fraction(rabbits))


def _rectangle(draw: Draw) -> Draft:
    width, d = draw.main, draw.small()
    p = 2 * (2 * width + d)
    plan = [_solve(f"2*(w + w + {d}) = {p}"), _calculate(f"{{0}} * ({{0}} + {d})")]
    return Draft({"d": d, "p": p}, plan, Fraction(width * (width + d)))


def _interest(draw: Draw) -> Draft:
    p, r, n = 100 * draw.main, draw.small(1, 9), draw.small(2, 6)
    words = draw.people() | {"p": p, "r": r, "n": n}
    return Draft(words, [_calculate(f"{p} * (1 + {r} / 100) ** {n}")], p * Fraction(100 + r, 100) ** n, rounded=True)


def _consecutive(draw: Draw) -> Draft:
    n, first = draw.small(3, 9), draw.main
    s = sum(range(first, first + n))
    plan = [_solve(f"{n}*x + {n * (n - 1) // 2} = {s}"), _calculate(f"{{0}} + {n - 1}")]
    return Draft({"n": n, "s": s}, plan, Fraction(first + n - 1))


def _meeting(draw: Draw) -> Draft:
    v, w, hours = draw.main, draw.near(), draw.small()
    words = draw.people() | {"d": (v + w) * hours, "v": v, "w": w}
    return Draft(words, [_calculate(f"{(v + w) * hours} / ({v} + {w})")], Fraction(hours))


def _number_riddle(draw: Draw) -> Draft:
    x, k, b = draw.main, draw.small(), draw.small(11, 99)
    people = {"a": draw.people()["a"]}
    return Draft(people | {"k": k, "b": b, "c": k * x + b}, [_solve(f"{k}*x + {b} = {k * x + b}")], Fraction(x))


def _tank(draw: Draw) -> Draft:
    w, more, minutes = draw.small(), draw.small(), draw.main
    v, t = w + more, more * minutes
    return Draft({"v": v, "w": w, "t": t}, [_calculate(f"{t} / ({v} - {w})")], Fraction(minutes))


def _coins(draw: Draw) -> Draft:
    fives, twos = draw.main, draw.near()
    words = draw.people() | {"n": fives + twos, "s": 5 * fives + 2 * twos}
    equations = f"a + b = {fives + twos}; 5*a + 2*b = {5 * fives + 2 * twos}"
    return Draft(words, [_solve(equations, "a, b")], Fraction(fives))


def _field(draw: Draw) -> Draft:
    width, d = draw.main, draw.small()
    plan = [_solve(f"w*(w + {d}) = {width * (width + d)}"), _calculate(f"2 * (2 * {{0}} + {d})")]
    return Draft({"s": width * (width + d), "d": d}, plan, Fraction(2 * (2 * width + d)))


def _ratio(draw: Draw) -> Draft:
    parts = draw.rng.sample(range(2, 10), 3)
    s = sum(parts) * draw.main
    words = dict(zip("kmn", parts, strict=True)) | {"s": s}
    expression = f"{s} * {max(parts)} / ({' + '.join(map(str, parts))})"
    return Draft(words, [_calculate(expression)], Fraction(max(parts) * draw.main))


SEEN: dict[str, Callable[[Draw], Draft]] = {
    "shopping": _shopping,
    "change": _change,
    "discount": _discount,
    "travel": _travel,
    "average": _average,
    "stamps": _stamps,
    "heads_and_legs": _heads_and_legs,
    "rectangle": _rectangle,
    "interest": _interest,
    "consecutive": _consecutive,
    "meeting": _meeting,
    "number_riddle": _number_riddle,
}
HELD_OUT: dict[str, Callable[[Draw], Draft]] = {
    "tank": _tank,
    "coins": _coins,
    "field": _field,
    "ratio": _ratio,
}
"""Never used in training."""
