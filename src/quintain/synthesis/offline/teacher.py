"""The teacher that needs no model and no key: everything follows from the structure of the memory."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from quintain.endpoint.structured import Reply, Shape
from quintain.synthesis.judging import judge
from quintain.synthesis.offline.plans import NoTool, write_plan
from quintain.synthesis.offline.questions import write_questions
from quintain.synthesis.offline.reasons import write_draft, write_reasoning
from quintain.synthesis.teacher import Request

DECOYS = 200
"""Names of earlier entities kept for plans about the wrong thing."""


class OfflineTeacher:
    """Derives questions, plans, reasoning and judgements; the same request gets the same reply.

    Args:
        errors: share of plans with a built-in error, so that the judge and everything after it has something to do.
        seed: of all draws.
    """

    def __init__(self, errors: float = 0.3, seed: int = 0) -> None:
        self._errors = errors
        self._seed = seed
        self._names: dict[str, deque[str]] = {"en": deque(maxlen=DECOYS), "zh": deque(maxlen=DECOYS)}
        self._writers: dict[str, Callable[[Request, random.Random], Shape]] = {
            "questions": self._questions,
            "plan": self._plan,
            "reason": lambda request, rng: write_draft(request.hints["frame"], request.language, rng),
            "refine": lambda request, rng: write_reasoning(request.hints["question"], rng),
            "judge": lambda request, rng: judge(request.hints["plan"], request.hints["toolset"]),
        }

    def remember(self, language: str, names: Sequence[str]) -> None:
        """Takes the names of earlier entities as if it had been asked about them."""
        self._names[language].extend(names)

    async def ask(self, request: Request) -> Reply:
        """The reply, at once; a problem where the structure it needs is missing."""
        if request.kind not in self._writers:
            return Reply(problem=f"the offline teacher writes no {request.kind}")
        identity = json.dumps([self._seed, request.kind, dict(request.fields), request.variant], sort_keys=True)
        try:
            return Reply(self._writers[request.kind](request, random.Random(identity)))
        except NoTool as reason:
            return Reply(problem=str(reason))

    def _questions(self, request: Request, rng: random.Random) -> Shape:
        excerpt = request.hints["excerpt"]
        self._names[excerpt.language].append(excerpt.entity)
        return write_questions(excerpt, request.hints["styles"], rng)

    def _plan(self, request: Request, rng: random.Random) -> Shape:
        question: Any = request.hints["question"]
        return write_plan(question, request.hints["toolset"], self._errors, self._names[question.language], rng)
