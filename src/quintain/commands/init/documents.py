"""Tasks about a folder of documents: questions whose answers stand in them, each with a plan that was tried.

Where a document states facts in plain form (`Label: value`, `The X of E is V`), the offline teacher of synthesis asks
for them, across documents too. Other sentences have a gap to fill (`gaps`).
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from quintain.commands.init.gaps import Gap, gaps
from quintain.commands.init.project import MEASURED
from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.interface.words import fold
from quintain.synthesis.documents import Document as Source
from quintain.synthesis.documents import without_markup
from quintain.synthesis.matching import numbers
from quintain.synthesis.memory import Excerpt, Memory
from quintain.synthesis.offline.questions import write_questions
from quintain.synthesis.quantities import quantity
from quintain.synthesis.questions import MadeQuestion
from quintain.synthesis.statements import Statement, statements
from quintain.worlds.answers import wrong
from quintain.worlds.desk.collection import Collection, Document

STYLES = ("factual", "multi_hop", "numerical", "comparison")
ROUNDS = 4
"""How often every document is asked about: each round draws other facts."""
GAPS = 3
"""Most gaps of one document."""
MOST = 400
"""Most tasks to learn from."""
PAGES = 3
"""What a task asks for stands on one of a document's first pages."""

_FORMS = ("lookup", "hop", "total", "difference", "compare")
"""Forms of questions that need the documents; in the others the question states what is needed."""
_ASKED = {
    "en": 'In the document "{title}", what stands at the gap? {sentence}',
    "zh": "文档“{title}”中，空格处是什么？{sentence}",
}

Plan = list[list[list[Any]]]


def document_tasks(world: str, collection: Collection, seed: int) -> tuple[list[Task], list[Task]]:
    """At most `MOST` tasks to learn from, and tasks about documents that are held out; none where one side has none.

    Args:
        world: name of the world, a desk on this collection.
        collection: the documents.
        seed: of the choice.

    Raises:
        InputError: no two tasks can be made.
    """
    rng = random.Random(seed)
    documents = rng.sample(collection.documents, len(collection))
    held_out = documents[: min(round(len(documents) / 3), MEASURED)]
    maker = _Maker(world, collection, rng)
    learnt, measured = (maker.tasks(part, seed) for part in (documents[len(held_out) :], held_out))
    if not (learnt and measured):
        learnt, measured = maker.tasks(documents, seed), []
    if len(learnt) + len(measured) < 2:
        raise InputError("the documents hold too little text to ask about; write your tasks by hand")
    return learnt[:MOST], measured


class _Maker:
    def __init__(self, world: str, collection: Collection, rng: random.Random) -> None:
        self._world = world
        self._collection = collection
        self._rng = rng
        found = gaps([_told(one) for one in collection.documents])
        self._found = {one.title: own for one, own in zip(collection.documents, found, strict=True)}

    def tasks(self, documents: Sequence[Document], seed: int) -> list[Task]:
        """Tasks about these documents and no others, in random order."""
        tasks = list({task.id: task for task in (*self._questions(documents, seed), *self._gaps(documents))}.values())
        self._rng.shuffle(tasks)
        return tasks

    def _questions(self, documents: Sequence[Document], seed: int) -> Iterator[Task]:
        """The offline teacher's questions that can be answered by looking."""
        sources = (_source(one) for one in documents)
        with tempfile.TemporaryDirectory() as folder, closing(Memory(Path(folder) / "memory.sqlite")) as memory:
            memory.add(sources, Counter())
            for language in ("en", "zh"):
                for number in range(ROUNDS):
                    for excerpt in memory.excerpts(language, seed + number):
                        yield from self._asked(excerpt)

    def _gaps(self, documents: Sequence[Document]) -> Iterator[Task]:
        """Sentences with a name, a quantity or a date left out."""
        for document in documents:
            tasks = [self._gap(one) for one in self._found[document.title]]
            found = [one for one in tasks if one is not None]
            yield from self._rng.sample(found, min(GAPS, len(found)))

    def _asked(self, excerpt: Excerpt) -> Iterator[Task]:
        for made in write_questions(excerpt, STYLES, self._rng).questions:
            if made.frame["form"] in _FORMS:
                used = [excerpt.all[number - 1] for number in made.statements]
                task = self._task(made.question, _answer(made, used), used, made.frame["form"])
                if task is not None:
                    yield task

    def _gap(self, gap: Gap) -> Task | None:
        said = gap.said
        asked = _ASKED[said.language].format(title=said.entity, sentence=gap.sentence)
        return self._task(asked, _gold(gap.value), [replace(said, value=gap.value)], "gap")

    def _task(self, asked: str, answer: dict[str, Any], used: Sequence[Statement], form: str) -> Task | None:
        """The task, if its plan finds every value and its answer is right by the desk's rule."""
        titles = list(dict.fromkeys(one.entity for one in used))
        said = str(answer.get("text", answer.get("number")))
        plan = self._plan(used, form)
        if plan is None or wrong(answer, said, asked):
            return None
        language = used[0].language
        opened = [step[1] for (step,) in plan if step[0] == "open"]
        documents = [one if isinstance(one, str) else f"{one['title']} (page {one['page']})" for one in opened]
        setup = {"documents": documents, "lookups": [], "plan": plan, "said": said, "closing": "answer"}
        name = f"{form}-{digest([asked])[-10:]}"
        tags = (f"lang:{language}", f"hops:{len(titles)}")
        return Task(name, self._world, asked, setup, answer, titles[0], form, tags)

    def _plan(self, used: Sequence[Statement], form: str) -> Plan | None:
        """Search and open every document, page by page; then calculate, where the form asks for it."""
        plan: Plan = []
        for one in used:
            document = self._collection.find(one.entity)
            if document is None or one.entity not in [hit.title for hit in self._collection.search(one.entity)]:
                return None
            page = next((at for at, text in enumerate(document.pages()[:PAGES]) if _stands(one.value, text)), None)
            if page is None:
                return None
            plan.append([["search", one.entity, "search"]])
            plan.append([["open", one.entity, "open"]])
            plan += [[["open", {"title": one.entity, "page": at + 1}, "open"]] for at in range(1, page + 1)]
        sign = {"total": "+", "difference": "-", "compare": ">"}.get(form)
        if sign is not None:
            left, right = (str(numbers(one.value)[0]) for one in used)
            plan.append([["calculate", f"{left} {sign} {right}", "calculate"]])
        return plan


def _answer(made: MadeQuestion, used: Sequence[Statement]) -> dict[str, Any]:
    (value,) = made.answer
    if made.frame["form"] == "compare":
        return {"text": value, "reject": [one.entity for one in used if one.entity != value]}
    return _gold(value)


def _gold(value: str) -> dict[str, Any]:
    """How an answer is judged; the unit of a number need not be said, but no other one may be."""
    found = quantity(value)
    if found is None:
        return {"text": value}
    number, unit = f"{found[0]:f}", found[1]
    return {"text": value, "aliases": [number]} if unit else {"number": number}


def _told(document: Document) -> list[Statement]:
    """The sentences of a document that no question asks for as they are, headings aside."""
    return [one for one in statements(_source(document)) if not one.attribute]


def _source(document: Document) -> Source:
    """The document without headings, which state nothing."""
    text = re.sub(r"(?m)^#{1,6} .*$", "", document.text)
    return Source(document.title, without_markup(text), document.title)


def _stands(value: str, page: str) -> bool:
    return " ".join(fold(value).split()) in " ".join(fold(page).split())
