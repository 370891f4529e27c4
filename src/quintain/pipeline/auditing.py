"""Keeps evaluation out of training: scans what stages learn from, and says what of an evaluation they have seen."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from quintain.curation.contamination import UNKNOWN, Finding, Item, Scanned, Scanner, batches
from quintain.curation.distance import Distance, distances
from quintain.curation.items import read_items
from quintain.curation.leak_index import LeakIndex
from quintain.curation.leaks import SearchLeak, search_leaks
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.pipeline.fas import documents
from quintain.pipeline.lineage import ancestors
from quintain.pipeline.run import write_json
from quintain.pipeline.workshop import Workshop
from quintain.progress import say
from quintain.recipe import EvalStage, FASStage
from quintain.synthesis.documents import Document

AUDIT = "contamination.json"
"""In the folder of a stage: what its scan found."""
FEW = 8
"""Batches that are scanned sooner than processes on a cluster begin."""
SHOWN = 20
"""Findings a record keeps; all are counted."""


@dataclass(slots=True)
class Scan:
    """What one scan found.

    Attributes:
        items: texts scanned.
        megabytes: of text, as UTF-8.
        seconds: it took.
        tasks: findings by the task that is given away.
        findings: the first ones, with both texts.
        first: the first one of each pool.
    """

    items: int = 0
    megabytes: float = 0.0
    seconds: float = 0.0
    tasks: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    first: dict[str, Finding] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """For a person."""
        if not self.items:
            return "nothing was scanned: what this model was trained on is not in this run"
        speed = self.megabytes / self.seconds if self.seconds else 0.0
        return (
            f"{len(self.tasks)} tasks given away by {sum(self.tasks.values())} of {self.items} texts "
            f"({self.megabytes:.1f} MB, {speed:.0f} MB/s)"
        )


@dataclass(frozen=True, slots=True)
class Audit:
    """What is known of an evaluation's independence.

    Attributes:
        training: the scan of everything the model was trained on in this run.
        leaks: episodes in which a tool's result gave the task away.
        distance: from the training tasks to the evaluated ones, by facet; empty without training tasks.
        openings: how often the sealed pool was opened, by checkpoint; empty for a pool that is not sealed.
    """

    training: Scan
    leaks: list[SearchLeak]
    distance: dict[str, Distance]
    openings: dict[str, int]

    def contaminated(self, episodes: Iterable[Episode]) -> set[str]:
        """Ids of the episodes whose success may not be the agent's own."""
        leaked = {one.episode for one in self.leaks}
        return {one.id for one in episodes if one.task_id in self.training.tasks or one.id in leaked}

    @property
    def line(self) -> str:
        """For a person."""
        parts = [f"contamination: {self.training.line}, {len(self.leaks)} leaks through tool results"]
        if self.distance:
            facets = ", ".join(f"{name} {one.apart:.2f}" for name, one in self.distance.items())
            parts.append(f"distance to training (0 to 1): {facets}")
        if self.openings:
            times = ", ".join(f"{count} for {name}" for name, count in self.openings.items())
            parts.append(f"sealed pool opened {sum(self.openings.values())} times: {times}")
        return "; ".join(parts)


class Auditor:
    """Audits the stages of one run.

    Args:
        workshop: of the run.
    """

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process makes its own."""
        return Auditor, (self._workshop,)

    def before(self, stage: Any, folder: Path) -> None:
        """Scans what a stage reads against all pools of evaluation stages, and leaves the record in its folder.

        Sealed pools stay closed: their canaries and the hashes of their prompts are enough to know their tasks.

        Raises:
            InputError: the stage would learn from a task of a sealed pool.
        """
        found = self.refuse_sealed(stage.name, partial(self._texts, [stage]))
        write_json(folder / AUDIT, asdict(found))
        if found.tasks:
            say(f"{stage.name}: {found.line}; see {AUDIT}")

    def refuse_sealed(self, stage: str, read: Callable[[], Iterable[Item]]) -> Scan:
        """Scans texts that a stage would learn from.

        Raises:
            InputError: one holds a task of a sealed pool.
        """
        found = self.scan(self._scanner, read)
        for pool in {*self._sealed, UNKNOWN} & found.first.keys():
            raise found.first[pool].refusal(f"stage {stage!r}")
        return found

    def evaluation(self, stage: EvalStage, tasks: Sequence[Task], episodes: Sequence[Episode], folder: Path) -> Audit:
        """Scans everything the evaluated model learnt from in this run, and what its tools returned."""
        learnt = ancestors(self._workshop.recipe.stages, stage.model)
        index = LeakIndex({stage.pool: tasks}, self._siblings)
        training = self.scan(Scanner(index), partial(self._texts, learnt, rollouts=True))
        names = [one.pool for one in learnt if hasattr(one, "pool")]
        seen = [task for name in dict.fromkeys(names) for task in self._workshop.pool(name)]
        audit = Audit(
            training,
            search_leaks(episodes, tasks),
            distances(seen, tasks) if seen else {},
            self._workshop.pools.openings(stage.pool),
        )
        ids = sorted(audit.contaminated(episodes))
        write_json(folder / AUDIT, asdict(audit) | {"line": audit.line, "contaminated_episodes": ids})
        return audit

    def scanner_of_opened_pools(self) -> Scanner:
        """Scans against everything that is evaluated, sealed pools included, which their logs say.

        Where no stage evaluates, all pools count as evaluated.
        """
        names = sorted(self._measured) or list(self._workshop.recipe.pools)
        sealed = [name for name in names if name in self._sealed]
        opened = {name: self._workshop.pools.open(name, "audit") for name in sealed}
        plain = {name: self._workshop.pool(name) for name in names if name not in opened}
        manifests = [self._workshop.pools.manifest(name) for name in sealed]
        return Scanner(LeakIndex(plain | opened, self._siblings if self._measured else ()), manifests)

    def scan(self, scanner: Scanner, read: Callable[[], Iterable[Item]], keep: int | None = SHOWN) -> Scan:
        """Scans a stream to its end, in this process or on the recipe's cluster, and keeps so many findings.

        Args:
            scanner: of the pools.
            read: the stream; picklable where there is a cluster, on whose nodes it is read.
            keep: most findings.
        """
        section, pieces = self._workshop.recipe.cluster, batches(read())
        first = [] if section is None else list(islice(pieces, FEW + 1))
        if section is None or len(first) <= FEW:
            return summed(map(scanner.batch, chain(first, pieces)), keep)
        from quintain.pipeline.fleets import on_cluster

        return summed(on_cluster(section, scanner.batch, partial(_pieces, read)), keep)

    @cached_property
    def _sealed(self) -> set[str]:
        return {name for name, pool in self._workshop.recipe.pools.items() if pool.sealed}

    @cached_property
    def _measured(self) -> set[str]:
        return {stage.pool for stage in self._workshop.recipe.stages if isinstance(stage, EvalStage)}

    @cached_property
    def _siblings(self) -> list[Task]:
        """Training tasks that show a template's wording, for what they are about is known not to be evaluated.

        The world's generator made them, or a file that gives each a template and a cluster: without that, copies of
        evaluated tasks would pass for wording.
        """
        pools = self._workshop.recipe.pools
        made = [name for name, pool in pools.items() if pool.split == "train" and name not in self._measured]
        files = [name for name, pool in pools.items() if pool.file is not None and name not in self._measured]
        told = (task for name in files for task in self._workshop.pool(name))
        return [task for name in made for task in self._workshop.pool(name)] + [
            task for task in told if task.template and task.cluster != task.id
        ]

    @cached_property
    def _scanner(self) -> Scanner:
        open_ones = {name: self._workshop.pool(name) for name in sorted(self._measured - self._sealed)}
        manifests = [self._workshop.pools.manifest(name) for name in sorted(self._sealed)]
        return Scanner(LeakIndex(open_ones, self._siblings), manifests)

    def _texts(self, stages: Sequence[Any], *, rollouts: bool = False) -> Iterator[Item]:
        """Every text that stages read, and what they played themselves."""
        for stage in stages:
            yield from self._inputs(stage)
        for folder in self._own_rollouts(stages) if rollouts else ():
            yield from read_items(folder, (".jsonl",))

    def _inputs(self, stage: Any) -> Iterator[Item]:
        """Every text a stage reads: tasks, the records of earlier stages, imports, general text."""
        from quintain.synthesis.general import read_text

        workshop = self._workshop
        if hasattr(stage, "pool"):
            yield from task_items(stage.pool, workshop.pool(stage.pool))
        if isinstance(stage, FASStage):
            yield from document_items(documents(workshop, stage, Counter()))
        for name in (*getattr(stage, "data", ()), *filter(None, [getattr(stage, "replay", None)])):
            yield from read_items(workshop.folder / name, (".jsonl",))
        for path in (*getattr(stage, "imports", ()), *filter(None, [getattr(stage, "corrections", None)])):
            yield from read_items(workshop.home / path, (".jsonl",))
        for reference in getattr(stage, "text", ()):
            yield from (Item(one.id, one.text) for one in read_text(reference, workshop.home, Counter()))

    def _own_rollouts(self, stages: Iterable[Any]) -> list[Path]:
        """Where reinforcement learning keeps what it played itself."""
        folders = [self._workshop.folder / stage.name / "rollouts" for stage in stages]
        return [folder for folder in folders if folder.is_dir()]


def read_audit(folder: Path) -> dict[str, Any]:
    """What the audit of a stage left in its folder; empty for a stage that was not audited.

    Raises:
        InputError: it is damaged.
    """
    path = folder / AUDIT
    if not path.is_file():
        return {}
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: damaged ({error}); remove the folder to run the stage again") from None
    return record


def _pieces(read: Callable[[], Iterable[Item]]) -> Iterator[list[Item]]:
    return batches(read())


def document_items(documents: Iterable[Document]) -> Iterator[Item]:
    """Texts of documents, with where they are from."""
    return (Item(one.source, one.text) for one in documents)


def task_items(pool: str, tasks: Iterable[Task]) -> Iterator[Item]:
    """Texts of tasks that an agent may see, and the tags, which hold the canary."""
    for task in tasks:
        yield Item(f"pool {pool}: task {task.id}", task.prompt)
        yield Item(f"pool {pool}: task {task.id}", " ".join(task.tags))


def summed(parts: Iterable[Scanned], keep: int | None) -> Scan:
    """What batches found together, with the first so many findings."""
    found, size, begun = Scan(), 0, time.monotonic()
    for part in parts:
        found.items += part.items
        size += part.bytes
        for one in part.findings:
            found.tasks[one.task] = found.tasks.get(one.task, 0) + 1
            found.first.setdefault(one.pool, one)
            if keep is None or len(found.findings) < keep:
                found.findings.append(one)
    found.seconds = round(time.monotonic() - begun, 3)
    found.megabytes = round(size / 1e6, 3)
    return found
