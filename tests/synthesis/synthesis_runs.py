"""Runs synthesis and keeps everything, for tests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from quintain.interface.sample import Sample
from quintain.interface.tools import Toolset
from quintain.synthesis.config import FASConfig
from quintain.synthesis.endpoint import EndpointTeacher
from quintain.synthesis.fas import FirstOrder, Made
from quintain.synthesis.judging import Judgement, Plan
from quintain.synthesis.memory import Excerpt
from quintain.synthesis.teacher import Teacher


@dataclass
class Output:
    """Everything a run made."""

    kept: list[Sample] = field(default_factory=list)
    rejected: list[Sample] = field(default_factory=list)
    plans: list[tuple[Plan, Judgement]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def collect(
    teacher: Teacher, toolset: Toolset, config: FASConfig, excerpts: Iterable[Excerpt], width: int = 4
) -> Output:
    """Runs synthesis over excerpts, and closes the connections of a teacher that has any."""
    output = Output()

    def take(made: Made) -> None:
        output.kept += made.kept
        output.rejected += made.rejected
        output.plans += made.plans
        output.counts.update(made.counts)

    async def work() -> None:
        try:
            async for made in FirstOrder(teacher, teacher, toolset, config).run(iter(excerpts), width):
                take(made)
        finally:
            if isinstance(teacher, EndpointTeacher):
                await teacher.close()

    asyncio.run(work())
    return output
