"""Makes the tasks of the world `code`."""

from __future__ import annotations

import random
from collections.abc import Sequence

from quintain.interface.canonical import digest
from quintain.interface.tasks import Task
from quintain.worlds.code.data import DATA
from quintain.worlds.code.drafts import Draft, Template
from quintain.worlds.code.programs import PROGRAMS
from quintain.worlds.code.repair import REPAIR
from quintain.worlds.drawing import Language, draw_tasks, known_languages, known_split, known_templates

FAMILIES = ("repair", "data", "program")
TEMPLATES: dict[str, Template] = {**REPAIR, **DATA, **PROGRAMS}

_PATIENCE = 80
"""Draws without a new task after which a template and language count as used up."""


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
    known_split("code", split)
    names = _names(split, templates)
    rng = random.Random(f"code {split} {seed}")
    places = [(TEMPLATES[name], language) for language in known_languages("code", languages) for name in names]

    def one(place: tuple[Template, Language], _: int) -> Task | None:
        return _draw(rng, split, *place)

    return draw_tasks("code", f"{split} tasks of {', '.join(names)}", n, places, one, patience=_PATIENCE)


def _names(split: str, templates: Sequence[str]) -> list[str]:
    allowed = {name: one for name, one in TEMPLATES.items() if split in one.splits}
    groups = {family: [name for name, one in allowed.items() if one.family == family] for family in FAMILIES}
    groups["seen"] = [name for name, one in allowed.items() if not one.held_out]
    groups["held_out"] = [name for name, one in allowed.items() if one.held_out]
    return known_templates("code", split, templates, kinds=groups, usual=FAMILIES, allowed=(*FAMILIES, *allowed))


def _draw(rng: random.Random, split: str, template: Template, language: Language) -> Task | None:
    draft = template.draw(rng, split, language, template)
    if draft is None:
        return None
    key = digest([template.name, language, draft.key]).rpartition(":")[2][:12]
    return _task(f"code-{split}-{template.name}-{language}-{key}", draft, template, language)


def _task(task_id: str, draft: Draft, template: Template, language: Language) -> Task:
    tags = [f"lang:{language}", f"family:{template.family}", f"level:{template.level}"]
    tags += ["held_out_template"] * template.held_out
    return Task(task_id, "code", draft.prompt, draft.setup, draft.answer, draft.cluster, template.name, tuple(tags))
