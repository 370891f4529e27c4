"""`quintain synth audit`: the judge of a recipe on plans over the desk's documents whose truth is known."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from quintain.evaluation.intervals import mean_interval
from quintain.interface.errors import InputError
from quintain.pipeline.fas import CACHE, MEMORY, teacher_of
from quintain.recipe import FASStage, load_recipe
from quintain.synthesis.audit.cases import Case, build_cases
from quintain.synthesis.audit.measure import Audit, Share, audit
from quintain.synthesis.config import TeacherConfig
from quintain.synthesis.documents import Document
from quintain.synthesis.memory import Memory, build

MEMORIES = 40
"""Memories of each language that cases are built from."""
SEED = 11
"""Of the cases: every judge is asked the same."""
MOST_UNANSWERED = 0.05
"""Share of cases a judge may leave without a judgement: one that speaks on the easy ones alone proves nothing."""
PRECISION, RECALL = 0.90, 0.95
"""What a judge has to reach. The published filter kept plans that were 82 % right, at about 93 % recall."""


def audit_judge(path: Path, folder: Path) -> dict[str, Any]:
    """Precision, recall and false accepts of the judge of a recipe's fas stage.

    Args:
        path: of the recipe.
        folder: of the run; the replies of an endpoint are kept there.

    Raises:
        InputError: the recipe has no fas stage.
    """
    stage = next((one for one in load_recipe(path).stages if isinstance(one, FASStage)), None)
    if stage is None:
        raise InputError(f"{path}: no stage of kind 'fas', so no judge to audit")
    judge = stage.judge or stage.teacher
    found = asyncio.run(_audit(judge, path.parent.resolve(), folder.absolute() / CACHE))
    answered = found.unanswered <= MOST_UNANSWERED * (found.unanswered + found.judged)
    passed = answered and found.precision.value >= PRECISION and found.recall.value >= RECALL
    name = judge.endpoint.model if judge.endpoint else "the offline judge"
    return {"judge": name, "passed": passed, **_to_json(found), "lines": _lines(found, name, passed)}


async def _audit(config: TeacherConfig, home: Path, cache: Path) -> Audit:
    from quintain.worlds.desk import Desk

    async with teacher_of(config, home, cache, SEED) as judge:
        return await audit(judge, desk_cases(), Desk().toolset(), config.concurrency)


def desk_cases() -> list[Case]:
    """The cases: plans about documents of the desk's training split, in English and Chinese."""
    from quintain.worlds.desk import Desk

    documents = (Document(title, text, Desk.name) for title, text in Desk.corpus("train", ("en", "zh")))
    with tempfile.TemporaryDirectory() as scratch:
        build(Path(scratch) / MEMORY, documents, Counter())
        with closing(Memory(Path(scratch) / MEMORY)) as memory:
            chosen = [one for language in ("en", "zh") for one in islice(memory.excerpts(language, SEED), MEMORIES)]
    return build_cases(chosen, SEED)


def _to_json(found: Audit) -> dict[str, Any]:
    return {
        "precision": _estimate(found.precision),
        "recall": _estimate(found.recall),
        "false_accepts": {kind: _estimate(share) for kind, share in found.false_accepts.items()},
        "false_accepts_unforeseen": {name: _estimate(share) for name, share in found.unforeseen.items()},
        "kind_named": _estimate(found.named),
        "misjudged": {name: _estimate(share) for name, share in found.misjudged.items()},
        "unanswered": found.unanswered,
        "spent": asdict(found.spent),
    }


def _estimate(share: Share) -> dict[str, float | int]:
    """A share with its 95 % interval by memory."""
    if not share.values:
        return {"value": 0.0, "low": 0.0, "high": 1.0, "hits": 0, "cases": 0}
    one = mean_interval(share.values, share.clusters)
    return {"value": share.value, "low": one.low, "high": one.high, "hits": share.hits, "cases": len(share.values)}


def _lines(found: Audit, name: str, passed: bool) -> list[str]:
    lines = [
        f"judge: {name}",
        _row("precision", found.precision),
        _row("recall", found.recall),
        "wrong plans accepted, by kind of error:",
        *(_row(f"  {kind}", share) for kind, share in found.false_accepts.items()),
        "wrong plans accepted, of kinds the offline judge has no rule for:",
        *(_row(f"  {kind}", share) for kind, share in found.unforeseen.items()),
        _row("kind of error named", found.named),
    ]
    if found.unanswered:
        allowed = f"at most {100 * MOST_UNANSWERED:.0f} % may be"
        lines.append(f"{found.unanswered} of {found.unanswered + found.judged} cases without a judgement ({allowed})")
    if found.spent.price:
        lines.append(f"price {found.spent.price:.2f}")
    needed = f"precision {PRECISION:.2f} at recall {RECALL:.2f}"
    return [*lines, f"{'reaches' if passed else 'MISSES'} {needed}"]


def _row(label: str, share: Share) -> str:
    one = _estimate(share)
    return f"{label:<34} {one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]  {one['hits']} of {one['cases']}"
