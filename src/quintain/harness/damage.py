"""Damage to a tool's result: JSON values, and texts with `name: value` fields as documents have them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

from quintain.interface.faults import DamageKind

_FIELD = re.compile(
    r"""(?: ^ | (?<=[.;]\ ) | (?<=[\n。；]) )   # a sentence or a line begins
    ([^\W\d] [^:：.;\n。；]{0,40}) [:：]\ ?      # name and colon
    [^\n。；]*? (?= [.;]\  | [.]?$ | [\n。；] )  # value""",
    re.VERBOSE,
)
"""A field of a text, as documents have them: `Population: 55000.`"""

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")

_NEEDS_FIELDS = ("renamed_field", "missing_field")


def damaged(kind: DamageKind, value: Any, rng: Random, held_out: bool) -> tuple[DamageKind, Any, str]:
    """Damages a result.

    A kind that needs fields strikes a result without any as `wrong_type`: it is not shaped as promised either.

    Args:
        kind: what to do to it.
        value: the validated JSON result; never changed in place.
        rng: of what is drawn.
        held_out: use the forms that training never shows.

    Returns:
        the kind of damage done, the new JSON value, and the text the agent reads.
    """
    if kind in _NEEDS_FIELDS and not _has_fields(value):
        kind = "wrong_type"
    if kind == "truncated":
        text = _text(value)
        cut = text[: int(len(text) * rng.uniform(0.3, 0.8))]
        return kind, cut, cut
    made = _DAMAGES[kind](value, rng, held_out)
    return kind, made, _text(made)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _has_fields(value: Any) -> bool:
    if isinstance(value, str):
        return len(_FIELD.findall(value)) > 1  # a single colon makes no record
    return isinstance(value, dict) and bool(value)


def _renamed(value: Any, rng: Random, held_out: bool) -> Any:
    def rename(name: str) -> str:
        return f"x_{name.lower().replace(' ', '_')}" if held_out else f"{name}_v2"

    if isinstance(value, str):
        found = rng.choice(list(_FIELD.finditer(value)))
        return value[: found.start(1)] + rename(found[1]) + value[found.end(1) :]
    chosen = rng.choice(list(value))
    return {rename(name) if name == chosen else name: item for name, item in value.items()}


def _missing(value: Any, rng: Random, held_out: bool) -> Any:
    if isinstance(value, str):
        found = rng.choice(list(_FIELD.finditer(value)))
        return (value[: found.start()] + value[found.end() :].lstrip(".;。； \n")).rstrip()
    chosen = rng.choice(list(value))
    return {name: item for name, item in value.items() if name != chosen}


def _wrong_type(value: Any, rng: Random, held_out: bool) -> Any:
    if isinstance(value, dict) and value:
        chosen = rng.choice(list(value))
        return {name: _other_type(item, held_out) if name == chosen else item for name, item in value.items()}
    return _other_type(value, held_out)


def _other_type(value: Any, held_out: bool) -> Any:
    if isinstance(value, str):
        return {"length": len(value)} if held_out else len(value)
    if isinstance(value, list | dict):
        return None if held_out else len(value)
    return [None] if held_out else "n/a"


def _empty(value: Any, rng: Random, held_out: bool) -> Any:
    if held_out:
        return "(no content)"
    return type(value)() if isinstance(value, str | list | dict) else None


def _stale(value: Any, rng: Random, held_out: bool) -> Any:
    year = rng.randrange(1996, 2004) if held_out else rng.randrange(2006, 2016)
    share = rng.uniform(0.6, 0.9)
    old = _older(value, share)
    if isinstance(old, str):
        return f"{old} (archived in {year}, may be outdated)" if held_out else f"[Cached copy of {year}] {old}"
    notice = "archived" if held_out else "cached"
    return {**(old if isinstance(old, dict) else {"result": old}), notice: year}


def _older(value: Any, share: float) -> Any:
    """The value with every number smaller, as most figures once were."""
    if isinstance(value, str):
        return _NUMBER.sub(lambda found: _shrunk(found[0], share), value)
    if isinstance(value, dict):
        return {name: _older(item, share) for name, item in value.items()}
    if isinstance(value, list):
        return [_older(item, share) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):  # exact: one of 400 digits has no float
        return value * round(1000 * share) // 1000
    return value * share


def _shrunk(number: str, share: float) -> str:
    places = len(number.partition(".")[2])
    return f"{float(number) * share:.{places}f}"


_DAMAGES: dict[DamageKind, Callable[[Any, Random, bool], Any]] = {
    "renamed_field": _renamed,
    "missing_field": _missing,
    "wrong_type": _wrong_type,
    "empty_result": _empty,
    "stale": _stale,
}
