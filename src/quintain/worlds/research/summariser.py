"""The summariser: a model that reads a page for a goal, as in AgentFounder's `visit`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from quintain.endpoint.structured import Shape
from quintain.interface.errors import InfraError, InputError
from quintain.worlds.research.asked import Asked, Role

PAGE = 60_000
"""Most characters of a page that it reads, its beginning; about 15,000 tokens of English."""


class Summary(Shape):
    """What a page says about a goal."""

    summary: str


SUMMARISER = Role("summariser", Summary, ("goal", "page"))


def summaries(options: Mapping[str, Any], goal: str, texts: Sequence[str]) -> list[str]:
    """What each page says about a goal, all asked at once. Call it where no event loop runs.

    A page without a summary is never shown otherwise: what a tool says must not depend on the mood of a server.

    Args:
        options: as `AskedConfig` has them.
        goal: what is looked for.
        texts: of the pages.

    Raises:
        InfraError: a page got no summary, or the server refuses the key, the model or the request: nothing that the
            agent could mend.
    """
    try:
        return asyncio.run(_summaries(options, goal, texts))
    except InputError as error:
        raise InfraError(f"summariser: {error}") from error


async def _summaries(options: Mapping[str, Any], goal: str, texts: Sequence[str]) -> list[str]:
    async with Asked(SUMMARISER, options) as model:
        replies = await asyncio.gather(*(model.ask(goal=goal, page=_shown(text)) for text in texts))
    failed = [one.problem for one in replies if one.value is None]
    if failed:
        raise InfraError(f"summariser {model.model}: {failed[0]}")
    return [one.value.summary for one in replies]


def _shown(text: str) -> str:
    return text if len(text) <= PAGE else f"{text[:PAGE]}\n[... {len(text) - PAGE} more characters]"
