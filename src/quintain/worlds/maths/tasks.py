"""Makes tasks: word problems of our own, and questions of reasoning-gym."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from quintain.interface.canonical import digest
from quintain.interface.tasks import Task
from quintain.worlds.drawing import Language, Split, draw_tasks, known_languages, known_split, known_templates
from quintain.worlds.maths.problems import HELD_OUT, LEVELS, SEEN, Draft, Draw
from quintain.worlds.maths.procedural import GENERATORS, PREFIX, draw
from quintain.worlds.maths.wordings import QUESTIONS

_PATIENCE = 200
"""Draws without a new task after which a template and language count as used up."""

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
    side = known_split("maths", split)
    names = _names(split, templates)
    rng = random.Random(f"maths {split} {seed}")
    places = [
        (name, language)
        for language in known_languages("maths", languages)
        for name in names
        if language == "en" or name not in _PROCEDURAL
    ]

    def one(place: tuple[str, Language], lap: int) -> Task:
        make = _procedural if place[0] in _PROCEDURAL else _word_problem
        return make(*place, side, lap % len(LEVELS) + 1, rng)

    return draw_tasks("maths", f"{split} tasks of {', '.join(names)}", n, places, one, patience=_PATIENCE)


def _names(split: str, templates: Sequence[str]) -> list[str]:
    evaluated = split == "eval"
    procedural = [name for name, held_out in _PROCEDURAL.items() if evaluated or not held_out]
    kinds = {"seen": list(SEEN), "held_out": list(HELD_OUT), "reasoning_gym": procedural}
    usual = kinds["seen"] + kinds["held_out"] * evaluated
    return known_templates("maths", split, templates, kinds=kinds, usual=usual, allowed=usual + procedural)


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
