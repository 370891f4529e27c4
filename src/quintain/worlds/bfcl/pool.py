"""Chooses tasks of BFCL: an outside benchmark, so all of them are for evaluation and none for training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.worlds.bfcl.wheel import Entry, read


def choose(
    world: str,
    categories: Sequence[str],
    make: Callable[[Entry], Task],
    split: str,
    count: int,
    seed: int,
    languages: Sequence[str],
    templates: Sequence[str],
) -> list[Task]:
    """Draws `count` tasks of some categories, in BFCL's order.

    Args:
        world: name of the world, for messages.
        categories: those the world has, which are its templates.
        make: makes a task.
        split: `eval`.
        count: how many.
        seed: of the draw.
        languages: `en`.
        templates: categories; empty takes all.

    Raises:
        InputError: an argument is not allowed, or there are fewer tasks.
    """
    if split != "eval":
        raise InputError(f"{world} is a benchmark: its tasks are for evaluation, so split = {split!r} is refused")
    if list(languages) != ["en"]:
        raise InputError(f"{world} languages {list(languages)}: its tasks are in English, allowed is 'en'")
    unknown = [one for one in templates if one not in categories]
    if unknown:
        raise InputError(f"{world} template {unknown[0]!r}: allowed are its categories {', '.join(categories)}")
    wanted = [one for one in categories if one in (templates or categories)]
    tasks = [make(entry) for category in wanted for entry in read(category)]
    if count > len(tasks):
        raise InputError(f"{world}: {', '.join(wanted)} hold {len(tasks)} tasks; {count} were asked for")
    return [tasks[at] for at in sorted(Random(seed).sample(range(len(tasks)), count))]
