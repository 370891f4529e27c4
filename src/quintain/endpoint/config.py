"""What a recipe says of an OpenAI-compatible endpoint."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A table of a recipe; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class EndpointConfig(Section):
    """Where a model answers over HTTP, and what it costs."""

    model: str = Field(min_length=1)
    """Name of the model, as the server spells it."""
    url: str = "https://api.openai.com/v1"
    """Base address of the server, up to and including its version."""
    key: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; the key itself never stands in a recipe."""
    seconds: float = Field(120.0, gt=0)
    """Time limit of one try."""
    tries: int = Field(4, ge=1)
    """Tries of one request; between them the client waits longer and longer, or as long as the server asks."""
    price_in: float = Field(0.0, ge=0)
    """Price of a million prompt tokens."""
    price_out: float = Field(0.0, ge=0)
    """Price of a million generated tokens."""


class ExampleSection(Section):
    """`[[examples]]` of a prompt: one exchange shown before the task."""

    user: str
    """What a user asks."""
    assistant: str
    """What a good agent replies."""


class PromptConfig(Section):
    """What an agent is told beside the task: everything one can choose without training."""

    instructions: str | None = None
    """The system message; none keeps the world's own."""
    examples: list[ExampleSection] = []
    """Exchanges shown before the task (few-shot)."""
    tools: dict[str, str] = {}
    """Descriptions of tools, by name; a tool that is not named keeps its own."""
