"""Tasks about the offline site: those of the world `web` that have an answer, asked with other tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quintain.interface.tasks import Task
from quintain.worlds.web.questions import AlmanacQuestions
from quintain.worlds.web.world import Web

_DECLINED = "missing"
"""The template of the almanac whose questions have no answer: no rule tells a good refusal from a lazy one here."""


def offline_tasks(
    split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], site: str
) -> list[Task]:
    """Tasks of the world `web`; the pages they rest on must be visited.

    Raises:
        InputError: an argument is unknown, or the site does not give as many.
    """
    names = list(templates)
    if site == "almanac" and not set(names) - {"seen", "held_out"}:
        kinds = {"seen": [False], "held_out": [True]}
        wanted = [one for name in names for one in kinds[name]] or [False, split == "eval"]
        known = AlmanacQuestions.templates.items()
        names = [name for name, held_out in known if held_out in wanted and name != _DECLINED]
    return [_asked_here(task) for task in Web.generate(split, count, seed, languages, names, site=site)]


def _asked_here(task: Task) -> Task:
    evidence = [[one.partition("#")[0] for one in group] for group in task.setup["evidence"]]
    setup = {"root": task.setup["root"], "evidence": evidence, "query": task.setup["plan"][0][0][1]["query"]}
    identity = task.id.replace("web-", "research-", 1)
    return replace(task, id=identity, world="research", setup=setup, answer=task.setup["said"])
