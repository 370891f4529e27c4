"""Messages between agent and world, and the strict alternation of action and observation.

An `Action` is what the agent does in one turn: either one or more calls, or an answer, or a text that
could not be understood (`FormatError`). A `Turn` is an action and *all* of its observations, paired by
id; the types refuse anything else, so no stage downstream has to check it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from quintain.interface.errors import FormatError, FormatErrorKind, InputError, ToolErrorKind
from quintain.interface.faults import FaultKind
from quintain.interface.generation import Generation

FORMAT_CALL_ID = "format"
"""Id of the observation that reports a `FormatError`: there is no call to pair it with."""

DECLINE_PREFIXES = ("Cannot answer:", "无法回答：")
"""An answer that starts with one of these declines the task: the agent says that it can't, and why."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text part of a message; version 1 knows no other kind."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Message:
    """A message that is neither action nor observation: what the system or the user says."""

    role: Literal["system", "user"]
    content: tuple[Text, ...]

    @property
    def text(self) -> str:
        """All parts joined."""
        return "".join(part.text for part in self.content)


def message(role: Literal["system", "user"], content: Any) -> Message:
    """Makes a message from a string or from OpenAI-style parts.

    Raises:
        InputError: a part is not text (images are refused by name).
    """
    if isinstance(content, str):
        return Message(role, (Text(content),))
    if not isinstance(content, list):
        raise InputError(f"{role} message: content must be text or a list of parts, found {type(content).__name__}")
    parts = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        if kind != "text" or not isinstance(part.get("text"), str):
            raise InputError(f"{role} message: part of type {kind!r} is not supported; version 1 accepts text only")
        parts.append(Text(part["text"]))
    return Message(role, tuple(parts))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one tool; `arguments` are JSON values."""

    id: str
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a turn used, as the server of an agent without tokens of its own counts it.

    Attributes:
        tokens: generated tokens.
        context_tokens: tokens that came new into the agent's context.
        price: in the currency of the configured prices.
    """

    tokens: int
    context_tokens: int
    price: float


@dataclass(frozen=True, slots=True)
class Action:
    """One turn of the agent: calls, or an answer, or an error, or a summary, exactly one of the four.

    Attributes:
        thought: what the agent wrote before acting ("" if nothing).
        calls: tool calls, in the order to run them.
        answer: the final answer.
        error: why the text could not be understood.
        text: the text as written, kept where it could not be understood.
        summary: what the agent keeps of a history that it gives up: its next turn begins a new segment.
        context: token ids added to the segment before this action was generated `[C]` (empty without tokens).
        generation: the engine's tokens, where a token engine produced the action.
        closing: token ids appended with weight 0 because the turn was cut before its end token.
        said: the text beside its calls, where a server sent the thought apart from it; None: the thought is that text.
        spent: what it used, where there is no generation to count.
        discard: the agent starts a new segment with `context` instead of extending one, and why.
        segment: which segment it extends, or leaves for the new one (-1: a conversation of its own); None: the last.
    """

    thought: str = ""
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    error: FormatError | None = None
    text: str = ""
    summary: str | None = None
    context: tuple[int, ...] = ()
    generation: Generation | None = None
    closing: tuple[int, ...] = ()
    said: str | None = None
    spent: Spent | None = None
    discard: Literal["", "start", "summary", "discard", "new_user", "branch"] = ""
    segment: int | None = None

    def __post_init__(self) -> None:
        kinds = [bool(self.calls), self.answer is not None, self.error is not None, self.summary is not None]
        if sum(kinds) != 1:
            raise ValueError(f"an action is calls, an answer, an error or a summary; found {sum(kinds)} of the four")
        ids = [call.id for call in self.calls]
        if len(set(ids)) != len(ids):
            raise ValueError(f"call ids of one action must differ, found {ids}")

    @property
    def declines(self) -> bool:
        """True for an answer that honestly says it can't be given."""
        return self.answer is not None and self.answer.lstrip().startswith(DECLINE_PREFIXES)


@dataclass(frozen=True, slots=True)
class Observation:
    """What the world answered to one call.

    Attributes:
        call_id: id of the call, or `FORMAT_CALL_ID`.
        tool: name of the tool ("" for a format error).
        content: the text the agent reads.
        value: the validated JSON result (None on error).
        error: kind of the tool's error, or `"format"`.
        format_kind: for `"format"`, which rule was broken.
        seconds: time the call took.
        fault: the injected fault's kind ("" without one): neither the world's own answer nor an infra error.
        permanent: the injected fault stays for the rest of the episode.
    """

    call_id: str
    tool: str
    content: str
    value: Any = None
    error: ToolErrorKind | Literal["format", ""] = ""
    seconds: float = 0.0
    fault: FaultKind | Literal[""] = ""
    format_kind: FormatErrorKind | Literal[""] = ""
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """An action and all of its observations.

    Raises:
        ValueError: the observations are not exactly those of the action's calls, in order.
    """

    action: Action
    observations: tuple[Observation, ...] = ()

    def __post_init__(self) -> None:
        expected = [call.id for call in self.action.calls]
        if self.action.error is not None:
            expected = [FORMAT_CALL_ID]
        found = [observation.call_id for observation in self.observations]
        if found != expected:
            raise ValueError(f"observations must answer calls {expected}, found {found}")

    @property
    def malformed(self) -> bool:
        """True if the text could not be understood, or a call names no tool or does not fit its schema."""
        return any(observation.error == "format" for observation in self.observations)
