"""What a recipe may say about synthesis."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from quintain.synthesis.questions import STYLES, Style


class Section(BaseModel):
    """A table of a recipe; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TeacherConfig(Section):
    """`teacher` of a synthesis stage: who writes what is learnt from."""

    kind: Literal["offline", "endpoint"] = "offline"
    """`offline` needs no model and no key; `endpoint` is any OpenAI-compatible server."""
    errors: float = Field(0.3, ge=0, le=1)
    """Share of plans the offline teacher gets wrong on purpose."""
    url: str = "https://api.openai.com/v1"
    """Base address of the endpoint."""
    model: str = ""
    """Name of the endpoint's model."""
    key: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; the key itself never stands in a recipe."""
    concurrency: int = Field(64, ge=1)
    """Requests in flight."""
    temperature: float = Field(1.0, ge=0)
    max_tokens: int = Field(1024, ge=1)
    """Bound of one reply."""
    seconds: float = Field(120.0, gt=0)
    """Time limit of one try."""
    tries: int = Field(6, ge=1)
    """Tries of one request before it is counted as failed."""
    structured: Literal["schema", "object", "text"] = "schema"
    """How JSON is asked for."""
    price_in: float = Field(0.0, ge=0)
    """Price of a million prompt tokens."""
    price_out: float = Field(0.0, ge=0)
    """Price of a million generated tokens."""
    prompts: Path | None = Field(None, strict=False)
    """Folder with your own `questions.md`, `plan.md`, `judge.md`, `reason.md`, `refine.md`."""

    @model_validator(mode="after")
    def _endpoint_has_a_model(self) -> TeacherConfig:
        if self.kind == "endpoint" and not self.model:
            raise ValueError("an endpoint needs `model`")
        return self


class FASConfig(Section):
    """`make` of a fas stage: how much of what."""

    memories: int = Field(1000, ge=1)
    """Entities asked about; each gives at most one question per style."""
    styles: list[Style] = list(STYLES)
    """Styles of questions."""
    chinese: float = Field(0.2, ge=0, le=1)
    """Share of the memories that are Chinese."""
    seed: int = 0
