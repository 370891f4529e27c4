"""`quintain eval --rescore`: stored episodes are judged again by the world as it is now, without the model.

A copy of the journal without its ends is an interrupted run whose episodes only lack their verdicts; resuming it asks
no agent. The stored run is never touched.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from copy import copy
from pathlib import Path
from typing import Any

from quintain.evaluation.summary import summarise
from quintain.harness.journal import Journal, read_journal, read_records
from quintain.interface.episode import Budget, Outcome
from quintain.interface.errors import InputError
from quintain.interface.messages import Action
from quintain.interface.reading import JOURNAL
from quintain.interface.view import View
from quintain.pipeline.run import read_manifest, write_json
from quintain.pipeline.stages import what_broke
from quintain.pipeline.workshop import Workshop
from quintain.recipe import EvalStage

_JUDGED = ("answered", "declined", "limit")
"""Outcomes that a verdict follows; `limit(context)` is the model's own and stays as it was."""


class Bystander:
    """Stands where an agent is needed that must never be asked."""

    version = 0

    def __init__(self, name: str) -> None:
        self.name = name

    async def act(self, view: View) -> Action:
        """Refuses.

        Raises:
            InputError: always.
        """
        raise InputError(f"episode {view.episode}: its journal ends before its outcome, so it can't be judged again")

    async def release(self, episode: str) -> None:
        """Nothing to forget."""


def stored_stage(path: Path) -> dict[str, Any]:
    """The manifest of a stored eval stage.

    Raises:
        InputError: the folder is no finished eval stage.
    """
    found = read_manifest(path)
    if found is None or found["kind"] != "eval" or found["status"] != "done":
        raise InputError(f"{path} is no finished eval stage; give RUN/STAGE")
    return found


def rescore(workshop: Workshop, stage: EvalStage, folder: Path, stored: Path) -> dict[str, Any]:
    """Judges the episodes of a stored stage again, each in its world and under its own budget, and summarises them.

    Args:
        workshop: of the recipe whose world judges.
        stage: names the pool with the tasks.
        folder: of the new stage.
        stored: folder of the stored stage.

    Raises:
        InputError: a task of the stored run is not in the pool, or no episode has a score any more.
    """
    opened = workshop.pools.for_evaluation(stage.pool, stage.name, str(stored))
    tasks = {task.id: task for task in opened}
    before, _ = read_journal(stored / "journal")
    missing = sorted({one.task_id for one in before} - tasks.keys())
    if missing:
        raise InputError(f"pool {stage.pool!r} lacks task {missing[0]!r} of {stored}, and {len(missing) - 1} more")
    judged = {one.id for one in before if _judged(one.outcome)}
    _copy(stored, folder, judged)
    journal = Journal(folder / "journal")
    _, unfinished = read_journal(journal.folder)
    agent = Bystander(before[0].agent if before else "")

    async def judge() -> None:
        harness = workshop.harness(journal, stage.faults)
        for one in unfinished:
            task = tasks[one.start["task_id"]]
            home = copy(harness.of(task))
            home.budget = Budget(**one.start["budget"])  # a limit is only reached again under the same one
            await home.resume(one, task, agent)

    try:
        asyncio.run(judge())
    finally:
        journal.close()
    after, _ = read_journal(folder / "journal")
    summary = summarise(after, planned=max(len(after), len(tasks) * stage.samples))
    write_json(folder / "evaluation.json", summary.to_json())
    rate = summary.pass1
    if rate is None:
        what = f"none of {len(after)} episodes has a score now{what_broke(after)}"
        raise InputError(f"{stored}: {what}; mend that and give another --out")
    was = {one.id: one.success for one in before}
    changed = sum(one.success != was[one.id] for one in after)
    told = f"{len(unfinished)} of {len(after)} episodes judged again, {changed} verdicts changed"
    line = f"pass@1 {rate.value:.3f}; {told}"
    return {"model": str(stored), "judged": len(unfinished), "changed": changed, "line": line}


def _judged(outcome: Outcome) -> bool:
    return outcome.kind in _JUDGED and outcome.limit != "context"


def _copy(stored: Path, folder: Path, judged: set[str]) -> None:
    """The stored journal with its snapshots, without the ends of the episodes to judge."""
    (folder / "journal").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(stored / "journal" / "snapshots.pack", folder / "journal" / "snapshots.pack")
    with (folder / JOURNAL).open("w", encoding="utf-8") as file:
        for record in read_records(stored / JOURNAL):
            if record["kind"] != "end" or record["episode"] not in judged:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
