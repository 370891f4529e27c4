"""The fas stage: documents and past episodes to an entity memory, and its excerpts to samples."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from quintain.endpoint.cache import ReplyCache
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.reading import JOURNAL, read_episodes
from quintain.interface.sample import Sample, SampleWriter
from quintain.interface.tools import Toolset
from quintain.interface.words import fold
from quintain.pipeline.run import write_json
from quintain.pipeline.workshop import Workshop
from quintain.progress import progress
from quintain.recipe import FASStage
from quintain.recipe.user_code import somebodys_code
from quintain.recipe.worlds import RecipeWorld
from quintain.synthesis.config import TeacherConfig
from quintain.synthesis.documents import Document, read_documents
from quintain.synthesis.fas import FirstOrder, Made, Spent, draw
from quintain.synthesis.judging import Plan
from quintain.synthesis.memory import Excerpt, Memory, build
from quintain.synthesis.offline.teacher import DECOYS, OfflineTeacher
from quintain.synthesis.probe import bag_of_words, commonest_opening
from quintain.synthesis.results import result_documents
from quintain.synthesis.teacher import NO_ANSWER, Prompts, Teacher
from quintain.worlds.drawing import LANGUAGES

MEMORY = "memory.sqlite"
CACHE = "replies.sqlite"
"""In the run's folder: a stage that runs again with other settings has its folder set aside, and pays nothing twice."""
SAMPLES = "samples.jsonl"
REJECTED = "rejected.jsonl"

SHARE = 4096
"""Excerpts that are sent to a cluster at once; a stage of fewer is made sooner than its processes begin."""
PROBED = 4000
"""Plans kept in memory for the probes."""


def fas(workshop: Workshop, stage: FASStage, folder: Path) -> dict[str, Any]:
    """Builds the memory and writes `samples.jsonl` and `rejected.jsonl`; an interrupted run asks nothing twice."""
    counts: Counter[str] = Counter()
    held = build(folder / MEMORY, documents(workshop, stage, counts), counts, held_out(workshop))
    tally = asyncio.run(_write(workshop, stage, folder))
    probes = tally.probes()
    result = {
        "documents": dict(counts),
        "memory": held,
        "counts": dict(sorted(tally.counts.items())),
        "samples": dict(tally.kept),
        "spent": asdict(tally.spent),
        **probes,
    }
    write_json(folder / "synthesis.json", result)
    return result | {"line": _line(tally) + _probes_line(probes)}


def documents(workshop: Workshop, stage: FASStage, counts: Counter[str]) -> Iterator[Document]:
    """What the memory is built from: the world's own documents, files, and tool results of earlier stages.

    Raises:
        InputError: the world has no tool of a name in `tools`.
    """
    names = [tool.name for tool in fas_world(workshop, stage).toolset()]
    for unknown in (one for one in stage.tools if one not in names):
        raise InputError(f"stage {stage.name!r}: tools: no tool {unknown!r}; the world has {', '.join(names)}")
    return chain(
        _world_documents(fas_world(workshop, stage)) if stage.world_documents else (),
        read_documents([workshop.home / path for path in stage.documents], counts),
        *(result_documents(_episodes(workshop, name), stage.tools, counts) for name in stage.data),
    )


def _episodes(workshop: Workshop, name: str) -> Iterator[Episode]:
    return (one.episode() for one in read_episodes(workshop.folder / name / JOURNAL))


def fas_world(workshop: Workshop, stage: FASStage) -> RecipeWorld:
    """The world whose tools the plans call."""
    return workshop.one_world(f"stage {stage.name!r}", stage.world)


def _world_documents(world: RecipeWorld) -> Iterator[Document]:
    with somebodys_code(f"corpus() of world {world.section.world!r}"):
        for title, text in world.world_class.corpus("train", LANGUAGES, **world.section.options):
            yield Document(title, text, world.name)


def held_out(workshop: Workshop) -> frozenset[str]:
    """Names of what only evaluation may ask about: nothing of it enters a memory, wherever it comes from."""
    return frozenset(title for world in workshop.worlds.values() for title in _titles(world))


def _titles(world: RecipeWorld) -> list[str]:
    with somebodys_code(f"corpus() of world {world.section.world!r}"):
        found = world.world_class.corpus("eval", LANGUAGES, **world.section.options)
        return [fold(title) for title, _ in found]


@asynccontextmanager
async def teacher_of(config: TeacherConfig, home: Path, cache: Path, seed: int) -> AsyncIterator[Teacher]:
    """The teacher a recipe names, for the length of an event loop.

    Args:
        config: of the teacher.
        home: the recipe's folder.
        cache: file of the replies.
        seed: of the offline teacher's draws.
    """
    if config.endpoint is None:
        yield OfflineTeacher(config.errors, seed)
        return
    from quintain.synthesis.endpoint import EndpointTeacher

    prompts = Prompts(home / config.prompts if config.prompts else None)
    with closing(ReplyCache(cache)) as replies:
        teacher = EndpointTeacher(config, replies, prompts)
        try:
            yield teacher
        finally:
            await teacher.close()


@asynccontextmanager
async def first_order(workshop: Workshop, stage: FASStage) -> AsyncIterator[FirstOrder]:
    """The maker of samples with the stage's teacher and judge; replies are kept in the run's folder."""
    cache, seed = workshop.folder / CACHE, stage.make.seed
    async with (
        teacher_of(stage.teacher, workshop.home, cache, seed) as teacher,
        teacher_of(stage.judge or stage.teacher, workshop.home, cache, seed) as judge,
    ):
        yield FirstOrder(teacher, judge, fas_world(workshop, stage).toolset(), stage.make)


async def _write(workshop: Workshop, stage: FASStage, folder: Path) -> Tally:
    tally = Tally()
    with (
        closing(Memory(folder / MEMORY)) as memory,
        SampleWriter(folder / SAMPLES) as kept,
        SampleWriter(folder / REJECTED) as rejected,
        progress(stage.name, total=stage.make.memories, unit="memories") as advance,
    ):
        async for made in _made(workshop, stage, draw(memory, stage.make, tally.counts)):
            for sample in tally.add(made, memory):
                kept.add(sample)
            for sample in made.rejected:
                rejected.add(sample)
            advance(1, f"{kept.count} samples")
    return tally


async def _made(workshop: Workshop, stage: FASStage, excerpts: Iterator[Excerpt]) -> AsyncIterator[Made]:
    """What came of each excerpt, in order, made here or on the recipe's cluster.

    A teacher behind an endpoint is asked from here in any case: it is waited for, and its replies are kept in one file.
    """
    section, work = workshop.recipe.cluster, OfflineWork(workshop, stage)
    if section is None or work.waits or stage.make.memories < SHARE:
        async with first_order(workshop, stage) as maker:
            async for made in maker.run(excerpts, stage.teacher.concurrency):
                yield made
        return
    from quintain.pipeline.fleets import on_cluster

    rows = with_earlier_names(excerpts)
    while share := list(islice(rows, SHARE)):
        for made in on_cluster(section, work, partial(iter, share)):
            yield made


def with_earlier_names(excerpts: Iterator[Excerpt]) -> Iterator[tuple[Excerpt, tuple[str, ...]]]:
    """Excerpts with the entities of their language before them, which wrong plans are about."""
    names: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=DECOYS))
    for one in excerpts:
        yield one, tuple(names[one.language])
        names[one.language].append(one.entity)


@dataclass
class OfflineWork:
    """Makes what comes of an excerpt, in whichever process: nothing is kept from one to the next."""

    workshop: Workshop
    stage: FASStage

    @property
    def waits(self) -> bool:
        """Whether teacher or judge is behind an endpoint."""
        return any(one.endpoint for one in self._configs)

    @property
    def _configs(self) -> tuple[TeacherConfig, TeacherConfig]:
        return self.stage.teacher, self.stage.judge or self.stage.teacher

    @cached_property
    def _toolset(self) -> Toolset:
        return fas_world(self.workshop, self.stage).toolset()

    def __call__(self, row: tuple[Excerpt, tuple[str, ...]]) -> Made:
        """What comes of an excerpt, given the names before it."""
        excerpt, earlier = row
        teacher, judge = (OfflineTeacher(one.errors, self.stage.make.seed) for one in self._configs)
        teacher.remember(excerpt.language, earlier)
        return asyncio.run(FirstOrder(teacher, judge, self._toolset, self.stage.make).make(excerpt))


@dataclass(slots=True)
class Tally:
    """What a run made, in numbers that do not grow with it.

    Attributes:
        counts: what happened, by reason.
        kept: samples by source and language.
        spent: requests, tokens and price.
        plans: the first plans, for the probes.
        thoughts: the first samples' thoughts by language, for the share of the commonest opening.
    """

    counts: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    plans: list[Plan] = field(default_factory=list)
    thoughts: dict[str, list[str]] = field(default_factory=lambda: {language: [] for language in LANGUAGES})

    def add(self, made: Made, memory: Memory) -> list[Sample]:
        """Counts what came of one excerpt; returns the samples that no earlier excerpt gave."""
        self.counts.update(made.counts)
        self.spent.merge(made.spent)
        fresh = [sample for sample in made.kept if memory.is_new(sample.id)]
        self.counts["samples left out: the question was asked before"] += len(made.kept) - len(fresh)
        for sample in fresh:
            self.kept[f"{sample.source} {sample.language}"] += 1
            thoughts = self.thoughts[sample.language]
            if len(thoughts) < PROBED:
                thoughts.append(getattr(sample.messages[-1], "thought", ""))
        room = PROBED - len(self.plans)
        self.plans += [plan for plan, _ in made.plans[:room]]
        return fresh

    def probes(self) -> dict[str, Any]:
        """Shares of the commonest openings, and what a bag of words tells of right and wrong where that is known."""
        openings = {
            language: dict(zip(("opening", "share"), commonest_opening(thoughts), strict=True))
            for language, thoughts in self.thoughts.items()
            if thoughts
        }
        found: dict[str, Any] = {"openings": openings, "bag_of_words": {}}
        for language in LANGUAGES:
            plans = [plan for plan in self.plans if plan.question.language == language]
            texts = [f"{plan.action.thought} {written(plan)}" for plan in plans]
            clusters = [plan.question.cluster for plan in plans]
            result = bag_of_words(texts, [not plan.fault for plan in plans], clusters)
            if result is not None:
                found["bag_of_words"][language] = asdict(result)
        return found


def written(plan: Plan) -> str:
    """A plan's action as text."""
    return " ".join(f"{call.tool} {call.arguments}" for call in plan.action.calls) or str(plan.action.answer)


def _line(tally: Tally) -> str:
    samples = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.kept.items())) or "no sample"
    rejected = sum(count for name, count in tally.counts.items() if name.startswith("plans rejected"))
    price = f", price {tally.spent.price:.2f}" if tally.spent.price else ""
    return f"{samples}; {rejected:,} plans rejected{price}{_left_out(tally)}"


def _left_out(tally: Tally) -> str:
    """What a reader must know of what is missing: requests without an answer; and why, where there is no sample."""
    unanswered = sum(count for name, count in tally.counts.items() if name.endswith(NO_ANSWER))
    said = f"; {unanswered:,} requests had no answer and are left out" if unanswered else ""
    if tally.kept:
        return said
    reasons = [f"{name} ({count:,})" for name, count in tally.counts.most_common(3) if count]
    return f"{said}; why: {', '.join(reasons) or 'the memory holds no statement, for the documents gave none'}"


def _probes_line(probes: dict[str, Any]) -> str:
    """What words alone tell, and how often the commonest opening occurs."""
    told = ", ".join(f"{one['accuracy']:.2f} {language}" for language, one in probes["bag_of_words"].items())
    openings = ", ".join(f"{100 * one['share']:.1f} % {language}" for language, one in probes["openings"].items())
    words = f"; words alone tell right plans from wrong: {told} (chance 0.50)" if told else ""
    return words + (f"; commonest opening: {openings}" if openings else "")
