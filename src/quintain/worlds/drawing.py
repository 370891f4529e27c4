"""What the task generators of the worlds share: arguments, and drawing until enough tasks are different."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from quintain.interface.errors import InputError
from quintain.interface.tasks import Task

Language = Literal["en", "zh"]
Split = Literal["train", "eval"]

LANGUAGES: tuple[Language, ...] = ("en", "zh")

P = TypeVar("P")


def known_split(world: str, split: str) -> Split:
    """The side of the split.

    Raises:
        InputError: there is no such side.
    """
    if split not in ("train", "eval"):
        raise InputError(f"{world} split {split!r}: allowed are 'train' and 'eval'")
    return "train" if split == "train" else "eval"


def known_languages(world: str, wanted: Sequence[str]) -> list[Language]:
    """The languages, always in the same order.

    Raises:
        InputError: there is no such language, or none is wanted.
    """
    if not wanted or any(language not in LANGUAGES for language in wanted):
        raise InputError(f"{world} languages {list(wanted)}: allowed are {', '.join(LANGUAGES)}")
    return [language for language in LANGUAGES if language in wanted]


def known_templates(
    world: str,
    split: str,
    wanted: Sequence[str],
    *,
    kinds: Mapping[str, Sequence[str]],
    usual: Sequence[str],
    allowed: Sequence[str],
) -> list[str]:
    """Names of templates, kinds of them spelled out.

    Args:
        world: name of the world.
        split: side that is drawn for.
        wanted: names of templates or of kinds; empty takes the usual ones.
        kinds: templates of each kind.
        usual: what is taken by default.
        allowed: what the split may use.

    Raises:
        InputError: a template is unknown, or not for this split.
    """
    names = [name for one in wanted or usual for name in kinds.get(one, [one])]
    wrong = [name for name in names if name not in allowed]
    if wrong:
        raise InputError(f"{world} template {wrong[0]!r}: allowed for {split!r} are {', '.join(allowed)}")
    return names


def draw_tasks(
    world: str, what: str, n: int, places: Iterable[P], draw: Callable[[P, int], Task | None], *, patience: int
) -> list[Task]:
    """Draws `n` different tasks, the places in turn.

    Args:
        world: name of the world.
        what: is drawn, as an error says it.
        n: how many.
        places: what is visited in turn: a template in a language, say.
        draw: makes a task of a place, None where a draw gives no good one; its second argument counts rounds from 0,
            for what changes from round to round.
        patience: draws in a row without a new task after which a place counts as used up.

    Raises:
        InputError: there are fewer than `n` different tasks.
    """
    found: dict[str, Task] = {}
    turn, lap = list(places), 0
    while len(found) < n and turn:
        for place in list(turn):
            if len(found) == n:
                break
            drawn = (draw(place, lap) for _ in range(patience))
            task = next((one for one in drawn if one is not None and one.id not in found), None)
            if task is None:
                turn.remove(place)
            else:
                found[task.id] = task
        lap += 1
    if len(found) < n:
        raise InputError(f"{world}: only {len(found)} different {what}; {n} were asked for")
    return list(found.values())
