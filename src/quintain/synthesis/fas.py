"""First-order action synthesis: excerpts of the memory to questions, plans, judgements and reasoning.

After the AgentFounder recipe (Su et al. 2025, arXiv 2509.13310). Every step asks the teacher; as many excerpts are
worked on at once as requests may be in flight, and results come in the order of the excerpts, so that a run is the same
however fast the teacher was.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import islice

from quintain.endpoint.structured import Reply
from quintain.interface.sample import Sample
from quintain.interface.tools import Toolset
from quintain.synthesis.config import FASConfig
from quintain.synthesis.judging import Judgement, Plan, judge_request
from quintain.synthesis.memory import Excerpt, Memory
from quintain.synthesis.planning import plan_request, planning_sample, take_plan
from quintain.synthesis.questions import Question, question_request, take_questions
from quintain.synthesis.reasoning import draft_request, refine_request, take_draft, take_reasoning
from quintain.synthesis.teacher import Request, Teacher

WINDOW = 8
"""Excerpts begun ahead of the oldest unfinished one, as a multiple of those worked on at once."""


@dataclass(slots=True)
class Spent:
    """What was asked of the teacher."""

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    price: float = 0.0

    def merge(self, other: Spent) -> None:
        """Adds what somebody else asked."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add(self, reply: Reply) -> None:
        """Counts one reply."""
        self.requests += 1
        self.cached += reply.cached
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        self.price += reply.price


@dataclass(slots=True)
class Made:
    """What came of one excerpt.

    Attributes:
        excerpt: what it was made from.
        kept: samples to learn from.
        rejected: plans that the judge rejected, tagged with the kind of error.
        plans: all plans with their judgement, for the probes.
        counts: what happened, by reason.
        spent: what was asked.
    """

    excerpt: Excerpt
    kept: list[Sample] = field(default_factory=list)
    rejected: list[Sample] = field(default_factory=list)
    plans: list[tuple[Plan, Judgement]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)


class FirstOrder:
    """Makes the samples of excerpts.

    Args:
        teacher: writes.
        judge: judges plans; usually the same teacher.
        toolset: what plans may call. Only its schemas are used: no tool can run, for none has a function.
        config: how much of what.
    """

    def __init__(self, teacher: Teacher, judge: Teacher, toolset: Toolset, config: FASConfig) -> None:
        self._teacher = teacher
        self._judge = judge
        self._toolset = Toolset(tool.bind(None) for tool in toolset)
        self._config = config

    async def make(self, excerpt: Excerpt) -> Made:
        """Questions about one excerpt, and a plan and a reasoning for each, one request after the other."""
        made, styles = Made(excerpt), self._config.styles
        made.counts[f"memories {excerpt.language}"] += 1
        if len(excerpt.own) == 1:
            made.counts["memories with one statement"] += 1
        reply = await self._ask(self._teacher, question_request(excerpt, styles, self._config.seed), made)
        for question in take_questions(excerpt, styles, reply, made.counts):
            made.counts[f"questions {question.style} {question.language}"] += 1
            await self._plan(question, made)
            await self._reason(question, made)
        return made

    async def _plan(self, question: Question, made: Made) -> None:
        reply = await self._ask(self._teacher, plan_request(question, self._toolset), made)
        plan = take_plan(question, reply, made.counts)
        if plan is None:
            return
        judgement = await self._judged(plan, made)
        if judgement is None:
            return
        made.plans.append((plan, judgement))
        judged = "kept" if judgement.right else f"rejected: {judgement.kind}"
        made.counts[f"plans {judged} {question.language}"] += 1
        sample = planning_sample(plan, self._toolset, judgement)
        (made.kept if judgement.right else made.rejected).append(sample)

    async def _judged(self, plan: Plan, made: Made) -> Judgement | None:
        """A call that does not fit the toolset is wrong whatever a judge thinks of it."""
        problems = [self._toolset.check(call.tool, call.arguments) for call in plan.action.calls]
        if any(problems):
            return Judgement(right=False, kind="invalid_tool", reason=str(next(filter(None, problems)).message))
        reply = await self._ask(self._judge, judge_request(plan, self._toolset), made)
        if reply.value is None:
            made.counts[f"judge requests: {reply.problem}"] += 1
        judgement: Judgement | None = reply.value
        return judgement

    async def _reason(self, question: Question, made: Made) -> None:
        reply = await self._ask(self._teacher, draft_request(question), made)
        draft = take_draft(question, reply, made.counts)
        if draft is None:
            return
        reply = await self._ask(self._teacher, refine_request(question, draft), made)
        sample = take_reasoning(question, reply, made.counts)
        if sample is not None:
            made.counts["reasonings kept"] += 1
            made.kept.append(sample)

    async def _ask(self, teacher: Teacher, request: Request, made: Made) -> Reply:
        reply = await teacher.ask(request)
        made.spent.add(reply)
        return reply

    async def run(self, excerpts: Iterator[Excerpt], concurrency: int) -> AsyncIterator[Made]:
        """What came of each excerpt, in their order, `concurrency` of them worked on at once."""
        places = asyncio.Semaphore(concurrency)

        async def one(excerpt: Excerpt) -> Made:
            async with places:
                return await self.make(excerpt)

        waiting: deque[asyncio.Task[Made]] = deque()
        try:
            while True:
                room = WINDOW * concurrency - len(waiting)
                waiting.extend(asyncio.create_task(one(excerpt)) for excerpt in islice(excerpts, room))
                if not waiting:
                    return
                yield await waiting.popleft()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


def draw(memory: Memory, config: FASConfig, counts: Counter[str]) -> Iterator[Excerpt]:
    """The excerpts to ask about: languages in the recipe's share, entities in a random order, none twice.

    Where a language has too few entities the run has fewer excerpts, and `counts` says so.
    """
    chinese = round(config.memories * config.chinese)
    wanted = {"zh": chinese, "en": config.memories - chinese}
    streams = {language: memory.excerpts(language, config.seed) for language, count in wanted.items() if count}
    taken: Counter[str] = Counter()
    while streams:
        # the language that lags most behind its share comes next
        language = min(streams, key=lambda one: taken[one] / wanted[one])
        excerpt = next(streams[language], None) if taken[language] < wanted[language] else None
        if excerpt is None:
            missing = wanted[language] - taken[language]
            counts[f"memories asked for that there are not: {language}"] += missing
            del streams[language]
            continue
        taken[language] += 1
        yield excerpt
