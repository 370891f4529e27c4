"""The judge model: does an answer that the rule rejects say the same as the gold one, in other words?

Asked is any OpenAI-compatible server. How far a judge may be trusted is measured on answers whose truth is known:
`quintain judge`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.config import EndpointConfig
from quintain.endpoint.structured import Reply, Shape, Structured, StructuredEndpoint, filled
from quintain.interface.errors import InputError

PROMPT = "judge.md"
"""The packaged prompt."""

SHOWN = 8_000
"""Most characters of an answer that a judge reads: its beginning and its end."""


class JudgeConfig(BaseModel):
    """`judge` among the options of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    endpoint: EndpointConfig
    """Where the judge is."""
    prompt: Path | None = Field(None, strict=False)
    """A prompt of your own, with `$question`, `$gold` and `$answer`; none is the one that comes along."""
    temperature: float = Field(0.0, ge=0)
    max_tokens: int = Field(2048, ge=1)
    """Bound of one reply; judges that think need more."""
    structured: Structured = "schema"
    """How JSON is asked for: by a schema, as any object, or by the prompt alone."""


class Judgement(Shape):
    """What a judge says."""

    reason: str = ""
    correct: bool


class Judge:
    """Asks a model whether answers are right. Use it in one event loop, with `async with`.

    Args:
        options: as `JudgeConfig` has them.
        cache: of replies; None keeps nothing.

    Raises:
        InputError: an option is wrong, the prompt file is missing or can't be filled, or `openai` is not installed.
    """

    def __init__(self, options: Mapping[str, Any], cache: ReplyCache | None = None) -> None:
        config = checked(options)
        self.model = config.endpoint.model
        self._config = config
        self._endpoint = StructuredEndpoint(
            config.endpoint,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            structured=config.structured,
            cache=cache,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._endpoint.close()

    async def ask(self, question: str, gold: str, answer: str) -> Reply:
        """A `Judgement`, or why there is none.

        Raises:
            InputError: the server refuses the key, the model or the request.
            InfraError: no answer after all tries.
        """
        prompt = _prompt(self._config.prompt, question, gold, answer)
        return await self._endpoint.ask(prompt, Judgement, "judgement")


def judge_digest(options: Mapping[str, Any]) -> dict[str, Any]:
    """What of a judge decides what it says: model, prompt and how it is asked."""
    config = checked(options)
    kept = config.model_dump(exclude={"endpoint", "prompt"})
    return {**kept, "model": config.endpoint.model, "url": config.endpoint.url, "prompt": _text(config.prompt)}


def checked(options: Mapping[str, Any]) -> JudgeConfig:
    """The options, and a prompt that can be filled.

    Raises:
        InputError: one is wrong, or the prompt file is.
    """
    try:
        config = JudgeConfig.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, ("judge", *first["loc"])))
        example = 'judge = { endpoint = { model = "...", url = "http://127.0.0.1:8000/v1" } }'
        raise InputError(f"research: {place}: {first['msg']}; for example {example}") from None
    _prompt(config.prompt, "", "", "")
    return config


def _prompt(file: Path | None, question: str, gold: str, answer: str) -> str:
    values = {"question": question, "gold": gold, "answer": _shown(answer)}
    quoted = {name: json.dumps(text, ensure_ascii=False) for name, text in values.items()}
    return filled(Template(_text(file)), str(file or PROMPT), quoted)


def _text(prompt: Path | None) -> str:
    if prompt is None:
        return (resources.files(__package__) / PROMPT).read_text(encoding="utf-8")
    if not prompt.is_file():
        raise InputError(f"research: judge.prompt: no file {str(prompt)!r}")
    return prompt.read_text(encoding="utf-8")


def _shown(answer: str) -> str:
    """An answer as a judge reads it."""
    if len(answer) <= SHOWN:
        return answer
    return f"{answer[: SHOWN // 2]} [... {len(answer) - SHOWN} characters ...] {answer[-SHOWN // 2 :]}"
