"""What a recipe may say about synthesis."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from quintain.endpoint.config import EndpointConfig
from quintain.endpoint.structured import Structured
from quintain.synthesis.questions import STYLES, Style


class TeacherConfig(BaseModel):
    """`teacher` or `judge` of a synthesis stage: who writes what is learnt from, or judges it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    endpoint: EndpointConfig | None = None
    """An OpenAI-compatible server; none is the offline teacher, which needs no model and no key."""
    errors: float = Field(0.3, ge=0, le=1)
    """Share of plans that the offline teacher gets wrong on purpose."""
    concurrency: int = Field(64, ge=1)
    """Requests in flight."""
    temperature: float = Field(1.0, ge=0)
    max_tokens: int = Field(1024, ge=1)
    """Bound of one reply."""
    structured: Structured = "schema"
    """How JSON is asked for: by a schema, as any object, or by the prompt alone."""
    prompts: Path | None = Field(None, strict=False)
    """Folder with your own prompts, `questions.md`, `plan.md`, `judge.md`, `reason.md`, `refine.md`, `alternatives.md`,
    `recover.md`; relative to the recipe."""


class FASConfig(BaseModel):
    """`make` of a fas stage: how much of what."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    memories: int = Field(1000, ge=1)
    """Entities asked about; each gives at most one question per style."""
    styles: list[Style] = list(STYLES)
    """Styles of questions."""
    chinese: float = Field(0.2, ge=0, le=1)
    """Share of the memories that are Chinese."""
    seed: int = 0
