"""Makes tasks over the built-in collection, split by entity."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from quintain.interface.tasks import Task
from quintain.interface.words import words
from quintain.worlds.desk.atlas import atlas, share
from quintain.worlds.desk.calculator import calculate
from quintain.worlds.desk.collection import Collection
from quintain.worlds.desk.phrases import NO_DOCUMENT, NO_VALUE, QUESTIONS
from quintain.worlds.desk.templates import TEMPLATES, Draft, Draw
from quintain.worlds.drawing import Language, draw_tasks, known_languages, known_split, known_templates

_PATIENCE = 60
"""Draws without a new task after which a template and language count as used up."""


def generate(
    split: str,
    n: int,
    seed: int,
    languages: Sequence[str] = ("en",),
    templates: Sequence[str] = (),
    collection: Collection | None = None,
) -> list[Task]:
    """Makes `n` different tasks, templates and languages in turn.

    Tasks of `train` and `eval` share no entity, hence no fact. Held-out templates carry the tag
    `held_out_template` and are part of `eval` only. The same arguments give the same tasks in every process.

    Args:
        split: `train` or `eval`.
        n: how many.
        seed: of the draws.
        languages: `en`, `zh` or both.
        templates: names of templates, or `seen`, `held_out` and `long` for the three kinds; all short ones that the
            split may use by default.
        collection: the index of the built-in collection, if it is at hand.

    Raises:
        InputError: an argument is unknown, or there are fewer than `n` different tasks.
    """
    side = known_split("desk", split)
    names = _names(split, templates)
    draw, index = Draw(random.Random(f"desk {split} {seed}"), side), collection or atlas()
    places = [(name, language) for language in known_languages("desk", languages) for name in names]

    def one(place: tuple[str, Language], _: int) -> Task | None:
        return _draw(*place, draw, index)

    return draw_tasks("desk", f"{split} tasks of {', '.join(names)}", n, places, one, patience=_PATIENCE)


def _names(split: str, templates: Sequence[str]) -> list[str]:
    short = {name: template for name, template in TEMPLATES.items() if not template.long}
    kinds = {
        "seen": [name for name, template in short.items() if not template.held_out],
        "held_out": [name for name, template in short.items() if template.held_out],
        "long": [name for name, template in TEMPLATES.items() if template.long],
    }
    usual = kinds["seen"] + kinds["held_out"] * (split == "eval")
    return known_templates("desk", split, templates, kinds=kinds, usual=usual, allowed=usual + kinds["long"])


def _draw(name: str, language: Language, draw: Draw, index: Collection) -> Task | None:
    draft = TEMPLATES[name].draft(draw, language)
    question = draw.rng.choice(QUESTIONS[name][language]).format(**{"q": "是什么"} | draft.words)
    # One wording of a question is enough: the same facts asked again are no new task.
    asked = "|".join((language, name, *sorted(draft.words.values())))
    task_id = f"desk-{draw.split}-{name}-{language}-{int(share(asked) * 2**40):010x}"
    good = not _given_away(draft, question) and _recoverable(draft, index)
    return _task(task_id, name, language, question, draft) if good else None


def _given_away(draft: Draft, question: str) -> bool:
    """True if the question holds the answer (the capital of Luxembourg); a comparison has to."""
    text = draft.answer.get("text")
    return text is not None and "reject" not in draft.answer and set(words(text)) <= set(words(question))


def _recoverable(draft: Draft, index: Collection) -> bool:
    """True if the plan really gives the answer: titles found, values on the first page, result as expected."""
    steps = [step for turn in draft.plan for step in turn]
    searches = [argument for tool, argument, _ in steps if tool == "search"]
    hits = [[document.title for document in index.search(query)] for query in searches]
    if "decline" in draft.answer and not draft.documents:
        return all(index.find(query) is None for query in searches)
    if not all(title in titles for title, titles in zip(draft.documents, hits, strict=False)):
        return False
    named = draft.words.get("a") not in draft.documents and searches != draft.documents[:1]
    if named and hits[0][0] != draft.documents[0]:
        return False
    pages = [document.pages() for title in draft.documents if (document := index.find(title))]
    text = " ".join(page[0] for page in pages)
    results = [calculate(argument) for tool, argument, _ in steps if tool == "calculate"]
    computed = "number" not in draft.answer or not results or results[-1] == draft.answer["number"]
    return len(pages) == len(draft.documents) and computed and all(value in text for _, _, value in draft.facts)


def _task(task_id: str, name: str, language: Language, question: str, draft: Draft) -> Task:
    declined = {"no_document": NO_DOCUMENT, "no_value": NO_VALUE}.get(draft.said)
    setup: dict[str, Any] = {
        "documents": draft.documents,
        "lookups": [draft.answer["decline"]] if draft.said == "no_document" else [],
        "result": next((calculate(turn[0][1]) for turn in reversed(draft.plan) if turn[0][0] == "calculate"), ""),
        "plan": [[list(step) for step in turn] for turn in draft.plan],
        "said": declined[language].format(**draft.words) if declined else draft.said,
        "closing": draft.closing,
        "facts": [list(fact) for fact in draft.facts],
    }
    template = TEMPLATES[name]
    tags = [f"lang:{language}", f"hops:{len(draft.documents)}"] + ["held_out_template"] * template.held_out
    return Task(task_id, "desk", question, setup, draft.answer, draft.cluster, name, tuple(tags))
