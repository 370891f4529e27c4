"""Makes tasks about a site, split by page."""

from __future__ import annotations

import random
from collections.abc import Sequence

from quintain.interface.tasks import Task
from quintain.worlds.desk.atlas import share
from quintain.worlds.drawing import Language, draw_tasks, known_languages, known_templates
from quintain.worlds.web.drafts import Draft, Questions, sound

_PATIENCE = 80
"""Draws without a new task after which a template and language count as used up."""


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
    rng = random.Random(f"web {split} {seed}")
    places = [(name, language) for language in known_languages("web", languages) for name in names]

    def one(place: tuple[str, Language], _: int) -> Task | None:
        return _draw(questions, *place, split, rng)

    what = f"{split} tasks of {', '.join(names)} on this site"
    return draw_tasks("web", what, count, places, one, patience=_PATIENCE)


def _names(questions: Questions, split: str, templates: Sequence[str]) -> list[str]:
    kinds = {
        "seen": [name for name, held_out in questions.templates.items() if not held_out],
        "held_out": [name for name, held_out in questions.templates.items() if held_out],
    }
    usual = kinds["seen"] + kinds["held_out"] * (split == "eval")
    return known_templates("web", split, templates, kinds=kinds, usual=usual, allowed=usual)


def _draw(questions: Questions, name: str, language: Language, split: str, rng: random.Random) -> Task | None:
    draft = questions.draft(name, language, rng)
    if draft is None or not sound(draft, questions.section(language)):
        return None
    task_id = f"web-{split}-{name}-{language}-{int(share(f'{language}|{name}|{draft.asked}') * 2**40):010x}"
    return _task(task_id, questions, name, language, draft)


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
