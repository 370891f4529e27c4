"""Every error a user can meet, one policy sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class QuintainError(Exception):
    """Base of all errors raised on purpose."""


class InputError(QuintainError):
    """The user's input is wrong: the command prints this one line and exits with code 2."""


class InfraError(QuintainError):
    """The world or an engine broke: the turn is retried once from its snapshot, then the episode has no score."""


class ContextFull(InputError):
    """No room is left for another token: an episode ends with `limit(context)`."""


LimitKind = Literal["turns", "tool_calls", "tokens", "seconds", "format_errors", "context"]
"""What can run out in an episode; `context` is the model's own."""


class OutOfBudget(QuintainError):
    """A program asks for more than its budget holds: its episode ends with `limit(kind)`."""

    def __init__(self, kind: LimitKind) -> None:
        super().__init__(f"the budget of {kind} is used up")
        self.kind = kind


def describe(error: BaseException) -> str:
    """Type and message of an error of somebody else's code, also where its message can't be read."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__} (its message can't be read)"


class InterfaceDrift(InputError):
    """A toolset, dialect or world differs from the recorded one: stop and print the difference in words."""


FormatErrorKind = Literal[
    "empty",  # nothing was written
    "cut",  # the turn hit its token limit before its end token
    "unclosed",  # a call was opened and never closed
    "json",  # the call is not valid JSON (or not valid XML in an XML dialect)
    "shape",  # valid JSON, but no {"name", "arguments"} object
    "prose",  # text after or between calls
    "unknown_tool",  # no tool of that name
    "arguments",  # the arguments do not fit the tool's schema
]


@dataclass(frozen=True, slots=True)
class FormatError:
    """A turn that could not be understood: shown to the agent as an observation, never raised, never silent.

    Attributes:
        kind: which rule the text broke.
        message: one line for the agent, naming the cause and the expected form.
    """

    kind: FormatErrorKind
    message: str


ToolErrorKind = Literal[
    "exception",  # the tool raised
    "timeout",  # the tool ran past its time limit and was abandoned
    "result_type",  # the result does not fit the tool's result schema
    "too_large",  # the result is larger than the observation budget
    "infra",  # an infra error that came back on retry: the agent's doing
]
