"""Makes the tasks of the world `code`."""

from __future__ import annotations

import random
from collections.abc import Sequence

from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.worlds.code.data import DATA
from quintain.worlds.code.drafts import LANGUAGES, Draft, Language, Template
from quintain.worlds.code.programs import PROGRAMS
from quintain.worlds.code.repair import REPAIR

FAMILIES = ("repair", "data", "program")
TEMPLATES: dict[str, Template] = {**REPAIR, **DATA, **PROGRAMS}

_PATIENCE = 80
"""Draws in a row without a new task after which a template and language count as used up."""


def generate(
    split: str, n: int, seed: int, languages: Sequence[str] = ("en",), templates: Sequence[str] = ()
) -> list[Task]:
    """Makes `n` different tasks, templates and languages in turn.

    `train` and `eval` share no source module (repair), no table (data) and no template (data, program). The same
    arguments give the same tasks in every process of one Python version: repair tasks are cut from its library.

    Args:
        split: `train` or `eval`.
        n: how many.
        seed: of the draws.
        languages: `en`, `zh` or both.
        templates: names of templates or families, and `seen` and `held_out` for those that training may use and may
            not; all that the split may use by default.

    Raises:
        InputError: an argument is unknown, or there are fewer than `n` different tasks.
    """
    names = _names(split, templates)
    unknown = [language for language in languages if language not in LANGUAGES]
    if unknown or not languages:
        raise InputError(f"code languages {list(languages)}: allowed are {', '.join(LANGUAGES)}")
    rng = random.Random(f"code {split} {seed}")
    turn = [(TEMPLATES[name], language) for language in LANGUAGES if language in languages for name in names]
    found: dict[str, Task] = {}
    while len(found) < n and turn:
        for template, language in list(turn):
            if len(found) < n and not _add(found, rng, split, template, language):
                turn.remove((template, language))
    if len(found) < n:
        raise InputError(f"code: only {len(found)} different {split} tasks of {', '.join(names)}; {n} were asked for")
    return list(found.values())


def _names(split: str, templates: Sequence[str]) -> list[str]:
    if split not in ("train", "eval"):
        raise InputError(f"code split {split!r}: allowed are 'train' and 'eval'")
    allowed = {name: one for name, one in TEMPLATES.items() if split in one.splits}
    groups = {family: [name for name, one in allowed.items() if one.family == family] for family in FAMILIES}
    groups["seen"] = [name for name, one in allowed.items() if not one.held_out]
    groups["held_out"] = [name for name, one in allowed.items() if one.held_out]
    names = [name for wanted in templates or FAMILIES for name in groups.get(wanted, [wanted])]
    wrong = [name for name in names if name not in allowed]
    if wrong:
        raise InputError(f"code template {wrong[0]!r}: allowed for {split!r} are {', '.join((*FAMILIES, *allowed))}")
    return names


def _add(found: dict[str, Task], rng: random.Random, split: str, template: Template, language: Language) -> bool:
    """Adds one new task; False if none turns up."""
    for _ in range(_PATIENCE):
        draft = template.draw(rng, split, language, template)
        if draft is None:
            continue
        key = digest([template.name, language, draft.key]).rpartition(":")[2][:12]
        task_id = f"code-{split}-{template.name}-{language}-{key}"
        if task_id not in found:
            found[task_id] = _task(task_id, draft, template, language)
            return True
    return False


def _task(task_id: str, draft: Draft, template: Template, language: Language) -> Task:
    tags = [f"lang:{language}", f"family:{template.family}", f"level:{template.level}"]
    tags += ["held_out_template"] * template.held_out
    return Task(task_id, "code", draft.prompt, draft.setup, draft.answer, draft.cluster, template.name, tuple(tags))
