"""The judge model: does an answer that the rule rejects say the same as the gold one, in other words?

How far a judge may be trusted is measured on answers whose truth is known: `quintain judge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.structured import Reply, Shape
from quintain.worlds.research.asked import Asked, Role

SHOWN = 8_000
"""Most characters of an answer that a judge reads: its beginning and its end."""


class Judgement(Shape):
    """What a judge says."""

    reason: str = ""
    correct: bool


JUDGE = Role("judge", Judgement, ("question", "gold", "answer"))


class Judge(Asked):
    """Asks a model whether answers are right.

    Args:
        options: as `AskedConfig` has them.
        cache: of replies; None keeps nothing.
    """

    def __init__(self, options: Mapping[str, Any], cache: ReplyCache | None = None) -> None:
        super().__init__(JUDGE, options, cache)

    async def judge(self, question: str, gold: str, answer: str) -> Reply:
        """A `Judgement`, or why there is none.

        Raises:
            InputError: the server refuses the key, the model or the request.
            InfraError: no answer after all tries.
        """
        return await self.ask(question=question, gold=gold, answer=_shown(answer))


def _shown(answer: str) -> str:
    """An answer as a judge reads it."""
    if len(answer) <= SHOWN:
        return answer
    return f"{answer[: SHOWN // 2]} [... {len(answer) - SHOWN} characters ...] {answer[-SHOWN // 2 :]}"
