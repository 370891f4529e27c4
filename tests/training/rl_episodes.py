"""Episodes made by hand, for tests of rewards, groups and monitors."""

from __future__ import annotations

from typing import Any

from quintain.interface.episode import Episode, Outcome, Segment, Span, Usage, Verdict
from quintain.interface.errors import FormatError
from quintain.interface.generation import Generation
from quintain.interface.messages import Action, Call, Observation, Turn, message


def generation(ids: tuple[int, ...], version: int = 0, finish: str = "stop") -> Generation:
    logprobs = tuple(-0.1 * (place + 1) for place in range(len(ids)))
    return Generation(ids, logprobs, logprobs, finish, version)


def calls(*names: str, thought: str = "", error: str = "", fault: str = "", ids=(5, 6, 7), version: int = 0) -> Turn:
    made = tuple(Call(str(place), name, {"q": name}) for place, name in enumerate(names))
    seen = tuple(Observation(call.id, call.tool, "found", 1, error=error, fault=fault) for call in made)
    return Turn(Action(thought=thought, calls=made, generation=generation(ids, version)), seen)


def answers(text: str = "42", *, thought: str = "", ids=(8, 9), version: int = 0, finish: str = "stop") -> Turn:
    return Turn(Action(thought=thought, answer=text, generation=generation(ids, version, finish)))


def malformed(kind: str = "json", ids=(3, 3), version: int = 0) -> Turn:
    action = Action(error=FormatError(kind, "no"), text="x", generation=generation(ids, version))
    return Turn(action, (Observation("format", "", "no", error="format", format_kind=kind),))


def episode(*turns: Turn, success: bool | None = True, task: str = "t", number: int = 0, **more: Any) -> Episode:
    """An episode of these turns: a prompt of two tokens, and one token between turns; `success=None` is infra."""
    ids: list[int] = [1, 2]
    spans = []
    for turn in turns:
        made = turn.action.generation.ids
        spans.append(Span(0, len(ids), len(ids) + len(made)))
        ids += [*made, 4]
    usage = Usage(turns=len(turns), tool_calls=sum(len(turn.action.calls) for turn in turns), tokens=len(ids))
    return Episode(
        id=f"{task}#{number}",
        task_id=task,
        cluster=task,
        world="w",
        agent="a",
        messages=(message("user", "?"),),
        turns=turns,
        **{
            "outcome": Outcome("infra_error", detail="gone") if success is None else Outcome("answered"),
            "verdict": None if success is None else Verdict(success),
            "usage": usage,
            "segments": (Segment(tuple(ids)),),
            "spans": tuple(spans),
            **more,
        },
    )
