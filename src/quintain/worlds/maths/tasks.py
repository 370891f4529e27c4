"""Makes tasks: word problems of our own, and questions of reasoning-gym."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.worlds.maths.problems import HELD_OUT, LEVELS, SEEN, Draft, Draw
from quintain.worlds.maths.procedural import GENERATORS, PREFIX, draw
from quintain.worlds.maths.wordings import LANGUAGES, QUESTIONS, Language, Split

_PATIENCE = 200
"""Draws in a row without a new task after which a template and language count as used up."""

_PROCEDURAL = {PREFIX + name: one.held_out for name, one in GENERATORS.items()}


def generate(
    split: str, n: int, seed: int, languages: Sequence[str] = ("en",), templates: Sequence[str] = ()
) -> list[Task]:
    """Makes `n` different tasks: templates, languages and levels in turn.

    `train` and `eval` share no people, no goods and no main number; held-out templates carry the tag
    `held_out_template` and are part of `eval` only. The same arguments give the same tasks in every process.

    Args:
        split: `train` or `eval`.
        n: how many.
        seed: of the draws.
        languages: `en`, `zh` or both; reasoning-gym asks in English only.
        templates: names of templates, or `seen`, `held_out` and `reasoning_gym` for the three kinds; all word problems
            that the split may use by default.

    Raises:
        InputError: an argument is unknown, reasoning-gym is needed and not installed, or there are fewer than `n`
            different tasks.
    """
    side, names = _side(split), _names(split, templates)
    unknown = [language for language in languages if language not in LANGUAGES]
    if unknown or not languages:
        raise InputError(f"maths languages {list(languages)}: allowed are {', '.join(LANGUAGES)}")
    chosen = [language for language in LANGUAGES if language in languages]
    turn = [(name, language) for language in chosen for name in names if language == "en" or name not in _PROCEDURAL]
    rng, found, level = random.Random(f"maths {split} {seed}"), dict[str, Task](), 0
    while len(found) < n and turn:
        level = level % len(LEVELS) + 1
        for name, language in list(turn):
            if len(found) < n and not _add(found, name, language, side, level, rng):
                turn.remove((name, language))
    if len(found) < n:
        raise InputError(f"maths: only {len(found)} different {split} tasks of {', '.join(names)}; {n} were asked for")
    return list(found.values())


def _side(split: str) -> Split:
    if split not in ("train", "eval"):
        raise InputError(f"maths split {split!r}: allowed are 'train' and 'eval'")
    return "train" if split == "train" else "eval"


def _names(split: str, templates: Sequence[str]) -> list[str]:
    evaluated = split == "eval"
    procedural = [name for name, held_out in _PROCEDURAL.items() if evaluated or not held_out]
    kinds = {"seen": list(SEEN), "held_out": list(HELD_OUT), "reasoning_gym": procedural}
    usual = kinds["seen"] + kinds["held_out"] * evaluated
    allowed = usual + procedural
    names = [name for wanted in templates or usual for name in kinds.get(wanted, [wanted])]
    wrong = [name for name in names if name not in allowed]
    if wrong:
        raise InputError(f"maths template {wrong[0]!r}: allowed for {split!r} are {', '.join(allowed)}")
    return names


def _add(found: dict[str, Task], name: str, language: Language, split: Split, level: int, rng: random.Random) -> bool:
    """Adds one new task; False if none turns up."""
    for _ in range(_PATIENCE):
        make = _procedural if name in _PROCEDURAL else _word_problem
        task = make(name, language, split, level, rng)
        if task.id not in found:
            found[task.id] = task
            return True
    return False


def _word_problem(name: str, language: Language, split: Split, level: int, rng: random.Random) -> Task:
    drawn = Draw(rng, split, language, level)
    draft = (SEEN | HELD_OUT)[name](drawn)
    wordings = QUESTIONS[name][language]
    wording = wordings[-1] if split == "eval" else rng.choice(wordings[:-1])
    gold = {"number": _decimal(draft)} | ({"rounded": True} if draft.rounded else {})
    return _task(name, language, split, level, wording.format(**draft.words), draft.plan, gold, f"{name}:{drawn.main}")


def _decimal(draft: Draft) -> str:
    value = Decimal(draft.answer.numerator) / draft.answer.denominator
    return f"{value:.2f}" if draft.rounded else f"{value:f}"


def _procedural(name: str, language: Language, split: Split, level: int, rng: random.Random) -> Task:
    generator = GENERATORS[name.removeprefix(PREFIX)]
    entry = draw(name.removeprefix(PREFIX), split, level, rng)
    return _task(name, language, split, level, entry["question"], [generator.call(entry)], generator.gold(entry), "")


def _task(
    name: str,
    language: Language,
    split: Split,
    level: int,
    question: str,
    plan: Sequence[Any],
    gold: dict[str, Any],
    cluster: str,
) -> Task:
    calls = [list(step) for step in plan]
    # One wording of a problem is enough: the same calls to the same end are no new task.
    task_id = f"maths-{split}-{name}-{language}-{digest({'plan': calls, 'gold': gold}).rpartition(':')[2][:10]}"
    held_out = name in HELD_OUT or _PROCEDURAL.get(name, False)
    tags = (f"lang:{language}", f"level:{level}", f"hops:{len(calls)}", *["held_out_template"] * held_out)
    return Task(task_id, "maths", question, {"plan": calls}, gold, cluster or task_id, name, tags)
