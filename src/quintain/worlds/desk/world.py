"""The world `desk`: find facts in a collection of documents and calculate with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InputError
from quintain.interface.messages import DECLINE_PREFIXES, Action, Call
from quintain.interface.tasks import Task
from quintain.interface.tools import tool
from quintain.interface.words import fold, language_of
from quintain.worlds.answers import wrong
from quintain.worlds.desk.atlas import atlas, entities, share
from quintain.worlds.desk.calculator import calculate
from quintain.worlds.desk.collection import Collection
from quintain.worlds.desk.phrases import THOUGHTS
from quintain.worlds.desk.readers import read_collection
from quintain.worlds.desk.tasks import generate
from quintain.worlds.drawing import LANGUAGES, Language

_ARGUMENT = {"search": "query", "open": "title", "calculate": "expression"}


class Desk(World):
    """Information retrieval and arithmetic over a collection of documents.

    A right answer succeeds only if the documents it rests on (`setup["documents"]`) were opened in the
    episode, and a declined one only if the look-up that fails (`setup["lookups"]`, `setup["documents"]`)
    was really made: an answer from memory or a blind refusal is no success.

    Args:
        collection: `atlas` (built in) or the path of a folder or file of documents.

    Raises:
        InputError: the collection does not exist or holds no readable document.
    """

    name: ClassVar[str] = "desk"
    instructions: ClassVar[str] = (
        "Answer from the documents, using the tools; reply with the short answer only. "
        "If they do not hold it, reply `Cannot answer: <reason>`."
    )

    def __init__(self, collection: str = "atlas") -> None:
        self.collection = collection
        self.opened: list[str] = []
        self.asked: list[str] = []
        self.calculations: list[str] = []
        self.resources(collection=collection)

    @classmethod
    def shared(cls, **options: Any) -> Collection:
        """The collection with its index."""
        name = str(options.get("collection", "atlas"))
        return atlas() if name == "atlas" else read_collection(Path(name))

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Tasks over the built-in collection (`tasks.generate`).

        Raises:
            InputError: the recipe names a collection of its own: its tasks come from a file.
        """
        name = options.get("collection", "atlas")
        if name != "atlas":
            raise InputError(f"desk makes tasks for the collection 'atlas' only, not {name!r}; give its pools a `file`")
        return generate(split, count, seed, languages, templates, collection=cls.resources(collection=name))

    @classmethod
    def corpus(cls, split: str, languages: Sequence[str], **options: Any) -> Iterator[tuple[str, str]]:
        """Documents of one side of the built-in collection's split; all documents of another collection are `train`.

        A collection of one's own has no split: its tasks come from a file and ask about documents everybody may read.
        """
        name = options.get("collection", "atlas")
        if name == "atlas":
            chosen = [entity for entity in entities() if entity.split == split]
            found = [entity.document(language) for entity in chosen for language in LANGUAGES if language in languages]
        else:
            documents = cls.resources(collection=name).documents if split == "train" else ()
            found = [one for one in documents if language_of(one.title + one.text) in languages]
        for document in found:
            yield document.title, document.text

    @property
    def documents(self) -> Collection:
        """The collection this instance reads."""
        found: Collection = self.resources(collection=self.collection)
        return found

    def data_digest(self) -> str:
        """Digest of all documents."""
        return digest({"world": self.name, "documents": self.documents.digest})

    def reset(self, task: Task) -> None:
        """Forgets what was opened, asked and calculated."""
        self.opened, self.asked, self.calculations = [], [], []

    @tool
    def search(self, query: str) -> str:
        """Finds document titles.

        Args:
            query: name or keywords.
        """
        self.asked.append(query)
        hits = self.documents.search(query)
        return "\n".join(": ".join(filter(None, (hit.title, hit.snippet()))) for hit in hits) or "No document found."

    @tool
    def open(self, title: str, page: int = 1) -> str:
        """Reads a document.

        Args:
            title: its title.
            page: which page of a long one.
        """
        self.asked.append(title)
        document = self.documents.find(title)
        if document is None:
            raise ValueError(f"no document titled {title!r}; search gives titles")
        pages = document.pages()
        if not 1 <= page <= len(pages):
            raise ValueError(f"{document.title!r} has pages 1 to {len(pages)}, not {page}")
        self.opened += [document.title] if page == 1 else [document.title, f"{document.title} (page {page})"]
        more = f" (page {page} of {len(pages)})" if len(pages) > 1 else ""
        return pages[page - 1] + more

    @tool(read_only=True)  # no verdict rests on it: sums may be done in the head
    def calculate(self, expression: str) -> str:
        """Does arithmetic.

        Args:
            expression: such as (3 + 4) * 2.
        """
        result = calculate(expression)
        self.calculations.append(result)
        return result

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges the last answer and whether it rests on look-ups of this episode."""
        reason = self._fault(task, episode.answer)
        return Verdict(success=not reason, reasons=(reason,) if reason else ())

    def _fault(self, task: Task, answer: str | None) -> str:
        if answer is None or not answer.strip():
            return "no answer"
        declines = answer.lstrip().startswith(DECLINE_PREFIXES)
        if _declinable(task) != declines:
            return "declined, but the collection holds the answer" if declines else "answered, but there is no answer"
        left = [name for name, done in self.milestones(task).items() if not done and name != "calculated"]
        if left:
            return f"not {left[0]} in this episode"
        return "" if declines else wrong(task.answer, answer, task.prompt)

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """Needed documents opened, names looked up, and the calculation done where there is one."""
        done = {f"opened {title}": title in self.opened for title in task.setup.get("documents", ())}
        for name in task.setup.get("lookups", ()):
            done[f"looked up {name}"] = any(fold(name) in fold(asked) for asked in self.asked)
        expected = [
            calculate(step[1]) for turn in task.setup.get("plan", ()) for step in turn if step[0] == "calculate"
        ]
        if expected:
            done["calculated"] = expected[-1] in self.calculations
        return done

    def solution(self, task: Task) -> Solution:
        """The plan the generator checked, with a short thought before each turn.

        A step is a tool, its argument (or its arguments by name) and the kind of thought that goes before it.

        Raises:
            NotImplementedError: the task was not made by the generator.
        """
        if "plan" not in task.setup:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        for number, steps in enumerate(task.setup["plan"]):
            calls = tuple(
                Call(
                    f"c{number}_{index}", name, argument if isinstance(argument, dict) else {_ARGUMENT[name]: argument}
                )
                for index, (name, argument, _) in enumerate(steps)
            )
            yield Action(thought=_thought(task, steps[0][2], number, steps[0][1]), calls=calls)
        yield Action(thought=_thought(task, task.setup["closing"], -1), answer=task.setup["said"])


def _declinable(task: Task) -> bool:
    return isinstance(task.answer, dict) and "decline" in task.answer


def _thought(task: Task, kind: str, number: int, name: str = "") -> str:
    """One of the phrases of a kind, the same for all tasks of a template: what varies at random can't be learnt."""
    language: Language = "zh" if "lang:zh" in task.tags else "en"
    phrases = THOUGHTS[kind][language]
    return phrases[int(share(f"{task.template} {kind} {number}") * len(phrases))].format(x=name)
