"""The record of one episode. It is written once by the harness and only read afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from quintain.interface.errors import LimitKind
from quintain.interface.messages import Message, Turn


@dataclass(frozen=True, slots=True)
class Verdict:
    """The world's judgement of an episode.

    Attributes:
        success: what pass@1 counts.
        score: partial credit in [0, 1]; by default 1.0 for a success, else 0.0.
        reasons: short lines for a person.
        infra: the world could not judge; the episode has no score.
    """

    success: bool
    score: float | None = None
    reasons: tuple[str, ...] = ()
    infra: bool = False

    def __post_init__(self) -> None:
        if self.score is None:
            object.__setattr__(self, "score", 1.0 if self.success else 0.0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an episode ended; never a number.

    Attributes:
        kind: `answered`; `declined` (said honestly that it can't); `limit` (scored as the verdict says);
            `agent_error` (the agent program raised); `infra_error` (no score: it leaves the group, the
            reward statistics and the evaluation's denominator, and is counted).
        limit: which budget ran out, for `limit`; `context` is the model's own.
        detail: one line for a person.
    """

    kind: Literal["answered", "declined", "limit", "agent_error", "infra_error"]
    limit: LimitKind | Literal[""] = ""
    detail: str = ""

    def __post_init__(self) -> None:
        if (self.kind == "limit") != bool(self.limit):
            raise ValueError(
                f"outcome {self.kind!r} with limit {self.limit!r}: a limit names its kind, nothing else does"
            )

    def __str__(self) -> str:
        return f"limit({self.limit})" if self.kind == "limit" else self.kind


@dataclass(frozen=True, slots=True)
class Budget:
    """What one episode may use. Reaching a bound ends it with `limit(kind)`.

    Attributes:
        turns: actions of the agent.
        tool_calls: calls that reach a tool.
        tokens: generated tokens.
        seconds: wall seconds of the whole episode.
        call_seconds: wall seconds of one tool call; past it the call is abandoned and the agent sees a timeout.
        observation_bytes: UTF-8 bytes of one observation.
        format_errors: malformed turns.
    """

    turns: int = 12
    tool_calls: int = 24
    tokens: int = 4096
    seconds: float = 600.0
    call_seconds: float = 10.0
    observation_bytes: int = 16_384
    format_errors: int = 3


@dataclass(slots=True)
class Usage:
    """What one episode has used so far, in the units of `Budget`."""

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    context_tokens: int = 0
    seconds: float = 0.0
    format_errors: int = 0
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class Segment:
    """An append-only run of token ids that the agent saw and wrote.

    Attributes:
        ids: token ids `[T]`.
        parent: index of the segment it came from (-1 for the first, and for a conversation of its own).
        reason: why it was begun.
    """

    ids: tuple[int, ...]
    parent: int = -1
    reason: Literal["start", "new_user", "summary", "discard", "branch"] = "start"


@dataclass(frozen=True, slots=True)
class Span:
    """Where one turn's generated tokens lie: `segments[segment].ids[start:stop]`."""

    segment: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Digests:
    """What the episode was made with; a difference downstream is an error that prints the diff in words."""

    toolset: str = ""
    dialect: str = ""
    world: str = ""


@dataclass(frozen=True, slots=True)
class Episode:
    """One run of one task.

    Attributes:
        id: unique in its run.
        task_id: the task it ran.
        cluster: the task's cluster.
        template: the task's template.
        tags: the task's tags.
        world: name of the world.
        digests: of toolset, dialect and world data.
        agent: name of the agent.
        version: version of the policy that began it.
        messages: what system and user said before the first turn.
        turns: actions with their observations.
        outcome: how it ended.
        verdict: the world's judgement; None for an infra error.
        usage: what it used.
        seed: seed of the episode.
        parent: `(episode id, turn)` it was branched from.
        segments: the token record, empty for agents without tokens.
        spans: for each turn, where its generated tokens lie (None for a turn without tokens).
        milestones: names of the sub-steps done, in the order in which they were.
        milestone_turns: for each of them, the index of the turn that did it.
        user_messages: what the user said after an answer, keyed by the number of turns before it.
    """

    id: str
    task_id: str
    cluster: str
    world: str
    agent: str
    messages: tuple[Message, ...]
    turns: tuple[Turn, ...]
    outcome: Outcome
    verdict: Verdict | None
    usage: Usage
    template: str = ""
    tags: tuple[str, ...] = ()
    digests: Digests = field(default_factory=Digests)
    version: int = 0
    seed: int = 0
    parent: tuple[str, int] | None = None
    segments: tuple[Segment, ...] = ()
    spans: tuple[Span | None, ...] = ()
    milestones: tuple[str, ...] = ()
    milestone_turns: tuple[int, ...] = ()
    user_messages: Mapping[int, Message] = field(default_factory=dict)

    @property
    def answer(self) -> str | None:
        """The last answer given, a declined one included; None if none was given."""
        for turn in reversed(self.turns):
            if turn.action.answer is not None:
                return turn.action.answer
        return None

    @property
    def scored(self) -> bool:
        """False for an infra error: it belongs to no denominator."""
        return self.verdict is not None and not self.verdict.infra

    @property
    def success(self) -> bool:
        """True for a scored episode with a successful verdict."""
        return self.verdict is not None and self.verdict.success and not self.verdict.infra

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """Every call in order, as `(tool, arguments)`."""
        return [(call.tool, call.arguments) for turn in self.turns for call in turn.action.calls]

    def repeated_calls(self) -> int:
        """Calls with the same tool and arguments as an earlier call, the order of keys aside."""
        # Not the canonical JSON: a model may write numbers that have none (NaN, 2**60).
        calls = self.calls()
        return len(calls) - len({json.dumps([tool, arguments], sort_keys=True) for tool, arguments in calls})
