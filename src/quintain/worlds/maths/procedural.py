"""Templates whose questions come from reasoning-gym: only those that the two tools can solve.

Numbers of `train` and `eval` come from ranges that do not meet. `polynomial_multiplication` would fit too, but its
questions depend on PYTHONHASHSEED; `intermediate_integration` takes seconds to draw one. Their place is
the outside benchmark.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quintain.interface.errors import InputError
from quintain.worlds.drawing import Split

Entry = dict[str, Any]
Call = tuple[str, dict[str, str]]

PREFIX = "rg_"


@dataclass(frozen=True, slots=True)
class Generator:
    """One data set of reasoning-gym.

    Attributes:
        settings: of its configuration, by split and level.
        call: the tool call that solves an entry.
        gold: the answer as `judging` reads it.
        held_out: never used in training.
    """

    settings: Callable[[Split, int], dict[str, Any]]
    call: Callable[[Entry], Call]
    gold: Callable[[Entry], dict[str, str]]
    held_out: bool = False


def _algebra(operation: str, expression: str) -> Call:
    return ("algebra", {"operation": operation, "expression": expression})


def _of_numbers(function: str) -> Callable[[Entry], Call]:
    return lambda entry: _algebra("simplify", f"{function}({', '.join(map(str, entry['metadata']['numbers']))})")


def _calculated(entry: Entry) -> Call:
    return ("calculate", {"expression": entry["metadata"]["expression"].strip()})


def _number(entry: Entry) -> dict[str, str]:
    return {"number": str(entry["answer"])}


def _values(train: tuple[int, int, int], last: int) -> Callable[[Split, int], dict[str, Any]]:
    """Ranges by level: training's end at `train`, evaluation's lie above all of them, up to `last`."""

    def settings(split: Split, level: int) -> dict[str, Any]:
        if split == "train":
            return {"min_value": 2, "max_value": train[level - 1]}
        step = (last - train[-1]) // 3
        return {"min_value": train[-1] + 1 + step * (level - 1), "max_value": train[-1] + step * level}

    return settings


def _digits(split: Split, level: int) -> dict[str, Any]:
    count = level if split == "train" else 3 + level
    return {"min_digits": count, "max_digits": count, "min_terms": 2 if split == "train" else 3, "max_terms": 4}


def _factor_digits(split: Split, level: int) -> dict[str, Any]:
    count = level if split == "train" else 3 + level
    return {"min_digits": count, "max_digits": count, "min_terms": 2, "max_terms": 3}


def _degrees(split: Split, level: int) -> dict[str, Any]:
    lowest = 1 if split == "train" else 6
    return {"min_degree": lowest, "max_degree": lowest + level + 1, "max_terms": 1 + level, "symbols": ("x",)}


GENERATORS: dict[str, Generator] = {
    "gcd": Generator(_values((50, 150, 400), 1000), _of_numbers("gcd"), _number),
    "lcm": Generator(_values((20, 40, 60), 150), _of_numbers("lcm"), _number),
    "chain_sum": Generator(_digits, _calculated, _number),
    "products": Generator(_factor_digits, _calculated, _number),
    "simple_equations": Generator(
        _values((10, 25, 40), 100), lambda entry: _algebra("solve", entry["metadata"]["equation"]), _number
    ),
    "simple_integration": Generator(
        _degrees,
        lambda entry: _algebra("integrate", entry["metadata"]["integrand"]),
        lambda entry: {"integrand": entry["metadata"]["integrand"], "variable": entry["metadata"]["variable"]},
    ),
    "fraction_simplification": Generator(
        lambda split, level: {"styles": ("plain",), "max_value": 100 * level, "max_factor": 10 * level},
        lambda entry: _algebra("simplify", f"{entry['metadata']['numerator']} / {entry['metadata']['denominator']}"),
        lambda entry: {"exact": str(entry["answer"])},
        held_out=True,
    ),
}


def draw(name: str, split: Split, level: int, rng: random.Random) -> Entry:
    """One entry of a generator: `question`, `answer`, `metadata`.

    Raises:
        InputError: reasoning-gym is not installed.
    """
    try:
        from reasoning_gym.factory import create_dataset
    except ModuleNotFoundError as error:
        raise InputError(
            f"templates {PREFIX}* need reasoning-gym: pip install 'quintain[reasoning-gym]' ({error})"
        ) from None
    settings = GENERATORS[name].settings(split, level)
    entry: Entry = create_dataset(name, size=1, seed=rng.randrange(2**31), **settings)[0]
    return entry
