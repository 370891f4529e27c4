"""How good a judge is on plans whose truth is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quintain.interface.tools import Toolset
from quintain.synthesis.audit.cases import Case
from quintain.synthesis.fas import Spent
from quintain.synthesis.judging import Judgement, judge_request
from quintain.synthesis.teacher import Teacher


@dataclass(frozen=True, slots=True)
class Share:
    """How many of several cases.

    Attributes:
        values: 1.0 for each case that counts, else 0.0.
        clusters: memory that each case was built from, for intervals.
    """

    values: tuple[float, ...]
    clusters: tuple[str, ...]

    @property
    def hits(self) -> int:
        """Number of cases that count."""
        return round(sum(self.values))

    @property
    def value(self) -> float:
        """The share; 0 without cases."""
        return sum(self.values) / len(self.values) if self.values else 0.0


def _share(pairs: Iterable[tuple[Case, bool]]) -> Share:
    found = list(pairs)
    return Share(tuple(float(hit) for _, hit in found), tuple(case.plan.question.cluster for case, _ in found))


@dataclass(frozen=True, slots=True)
class Audit:
    """What a judge did.

    Attributes:
        precision: right plans among those it accepted, half of all being right.
        recall: accepted plans among the right ones.
        false_accepts: accepted plans among the wrong ones, by kind of error.
        unforeseen: the same for kinds the offline judge has no rule for, by family.
        named: wrong plans whose kind it named, among those it rejected.
        misjudged: families it got wrong, with how often.
        judged: cases with a judgement.
        unanswered: cases without one; they count as neither.
        spent: what was asked.
    """

    precision: Share
    recall: Share
    false_accepts: dict[str, Share]
    unforeseen: dict[str, Share]
    named: Share
    misjudged: dict[str, Share]
    judged: int
    unanswered: int
    spent: Spent


async def audit(judge: Teacher, cases: Sequence[Case], toolset: Toolset, concurrency: int) -> Audit:
    """Asks a judge about every case, `concurrency` at once. Nothing is checked before: the judge is measured alone."""
    places, spent = asyncio.Semaphore(concurrency), Spent()

    async def one(case: Case) -> tuple[Case, Judgement] | None:
        async with places:
            reply = await judge.ask(judge_request(case.plan, toolset))
        spent.add(reply)
        return None if reply.value is None else (case, reply.value)

    answers = await asyncio.gather(*map(one, cases))
    judged = [answer for answer in answers if answer is not None]
    return summarise(judged, len(cases) - len(judged), spent)


def summarise(judged: Sequence[tuple[Case, Judgement]], unanswered: int, spent: Spent) -> Audit:
    """The figures of an audit."""
    known = [(case, found) for case, found in judged if case.known]
    kinds = dict.fromkeys(case.kind for case, _ in known if case.kind)
    families = dict.fromkeys(case.family for case, _ in judged)
    unforeseen = dict.fromkeys(case.family for case, _ in judged if not case.known)
    wrong = {
        name: _share((case, bool(case.kind) == found.right) for case, found in judged if case.family == name)
        for name in families
    }
    return Audit(
        precision=_share((case, not case.kind) for case, found in known if found.right),
        recall=_share((case, found.right) for case, found in known if not case.kind),
        false_accepts={
            kind: _share((case, found.right) for case, found in known if case.kind == kind) for kind in kinds
        },
        unforeseen={
            name: _share((case, found.right) for case, found in judged if case.family == name) for name in unforeseen
        },
        named=_share((case, case.kind == found.kind) for case, found in judged if case.kind and not found.right),
        misjudged={name: share for name, share in wrong.items() if share.hits},
        judged=len(judged),
        unanswered=unanswered,
        spent=spent,
    )
