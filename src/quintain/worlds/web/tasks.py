"""Makes tasks about a site, split by page."""

from __future__ import annotations

import random
from collections.abc import Sequence

from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.worlds.desk.atlas import LANGUAGES, Language, share
from quintain.worlds.web.drafts import Draft, Questions, sound

_PATIENCE = 80
"""Draws in a row without a new task after which a template and language count as used up."""


def generate(
    questions: Questions, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str]
) -> list[Task]:
    """Makes `count` different tasks, templates and languages in turn.

    Held-out templates carry the tag `held_out_template` and are part of `eval` only. The same arguments give the same
    tasks in every process.

    Args:
        questions: about one side of a site.
        split: which side.
        count: how many.
        seed: of the draws.
        languages: `en`, `zh` or both.
        templates: names, or `seen` and `held_out`; all that the split may use by default.

    Raises:
        InputError: an argument is unknown, or there are fewer than `count` different tasks.
    """
    names = _names(questions, split, templates)
    unknown = [language for language in languages if language not in LANGUAGES]
    if unknown or not languages:
        raise InputError(f"web languages {list(languages)}: allowed are {', '.join(LANGUAGES)}")
    rng = random.Random(f"web {split} {seed}")
    turn = [(name, language) for language in LANGUAGES if language in languages for name in names]
    found: dict[str, Task] = {}
    while len(found) < count and turn:
        for pair in list(turn):
            if len(found) < count and not _add(found, questions, pair[0], pair[1], split, rng):
                turn.remove(pair)
    if len(found) < count:
        raise InputError(
            f"web: only {len(found)} different {split} tasks of {', '.join(names)} on this site; {count} were asked for"
        )
    return list(found.values())


def _names(questions: Questions, split: str, templates: Sequence[str]) -> list[str]:
    kinds = {
        "seen": [name for name, held_out in questions.templates.items() if not held_out],
        "held_out": [name for name, held_out in questions.templates.items() if held_out],
    }
    usual = kinds["seen"] + kinds["held_out"] * (split == "eval")
    names = [name for wanted in templates or usual for name in kinds.get(wanted, [wanted])]
    wrong = [name for name in names if name not in usual]
    if wrong:
        raise InputError(f"web template {wrong[0]!r}: allowed for {split!r} are {', '.join(usual)}")
    return names


def _add(
    found: dict[str, Task], questions: Questions, name: str, language: Language, split: str, rng: random.Random
) -> bool:
    """Adds one new task; False if none turns up."""
    for _ in range(_PATIENCE):
        draft = questions.draft(name, language, rng)
        if draft is None:
            continue
        task_id = f"web-{split}-{name}-{language}-{int(share(f'{language}|{name}|{draft.asked}') * 2**40):010x}"
        if task_id not in found and sound(draft, questions.section(language)):
            found[task_id] = _task(task_id, questions, name, language, draft)
            return True
    return False


def _task(task_id: str, questions: Questions, name: str, language: Language, draft: Draft) -> Task:
    setup = {
        "root": questions.root(language),
        "evidence": draft.evidence,
        "plan": [[list(step) for step in turn] for turn in draft.plan],
        "said": draft.said,
    }
    held_out = ["held_out_template"] * questions.templates[name]
    tags = (f"lang:{language}", f"hops:{draft.hops}", *draft.tags, *held_out)
    return Task(task_id, "web", draft.prompt, setup, draft.answer, draft.cluster, name, tags)
