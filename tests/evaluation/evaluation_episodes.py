"""A small builder of episodes, written by hand: what the harness would have recorded."""

from __future__ import annotations

from collections.abc import Sequence

from quintain.interface.episode import Digests, Episode, Outcome, Segment, Span, Usage, Verdict
from quintain.interface.errors import FormatError, FormatErrorKind
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation, Turn, message


def call(tool: str = "search", content: str = "found", error: str = "", thought: str = "", **arguments: object) -> Turn:
    """A turn with one call and its observation."""
    one = Call("c1", tool, dict(arguments))
    return Turn(Action(thought=thought, calls=(one,)), (Observation("c1", tool, content, error=error),))  # type: ignore[arg-type]


def malformed(kind: FormatErrorKind = "json", text: str = "<tool_call>{") -> Turn:
    """A turn that could not be understood."""
    error = FormatError(kind, f"not a call: {kind}")
    return Turn(Action(error=error, text=text), (Observation(FORMAT_CALL_ID, "", error.message, error="format"),))


def answer(text: str = "42", thought: str = "") -> Turn:
    """A turn that answers."""
    return Turn(Action(thought=thought, answer=text))


def episode(
    task: str = "t1",
    success: bool | None = True,
    *,
    trial: int = 0,
    cluster: str = "",
    template: str = "lookup",
    tags: Sequence[str] = ("lang:en",),
    turns: Sequence[Turn] | None = None,
    outcome: Outcome | None = None,
    prompt: str = "What is it?",
    reasons: Sequence[str] = ("as checked",),
    tokens: bool = False,
) -> Episode:
    """One episode; `success=None` makes it an infra error. With `tokens`, token ids are numbered from 0."""
    turns = tuple(turns) if turns is not None else (call(query="x"), answer())
    kind = "infra_error" if success is None else "answered"
    verdict = None if success is None else Verdict(success, reasons=tuple(reasons))
    calls = sum(len(turn.action.calls) for turn in turns)
    # A prompt of 4 tokens, then 3 generated and 2 of observation for each turn.
    spans = tuple(Span(0, 4 + 5 * index, 7 + 5 * index) for index in range(len(turns))) if tokens else ()
    segments = (Segment(tuple(range(4 + 5 * len(turns)))),) if tokens else ()
    return Episode(
        id=f"{task}#{trial}",
        task_id=task,
        cluster=cluster or task,
        world="desk",
        agent="model",
        messages=(message("system", "You have tools."), message("user", prompt)),
        turns=turns,
        outcome=outcome or Outcome(kind),  # type: ignore[arg-type]
        verdict=verdict,
        usage=Usage(turns=len(turns), tool_calls=calls, tokens=3 * len(turns), context_tokens=20, seconds=0.5),
        template=template,
        tags=tuple(tags),
        digests=Digests("sha256:tools", "hermes/1", "sha256:world"),
        segments=segments,
        spans=spans,
    )
