"""Episodes as JSON: the schema of the journal and of everything that reads it.

Arguments and results are stored as JSON *text*, so that every record has the same columns whatever the
tools are: DuckDB and Hugging Face datasets read the files as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from quintain.interface.episode import Budget, Digests, Episode, Outcome, Segment, Span, Usage, Verdict
from quintain.interface.errors import FormatError
from quintain.interface.generation import Generation
from quintain.interface.messages import Action, Call, Message, Observation, Spent, Turn, message

SCHEMA = 2


def message_to_json(one: Message) -> dict[str, Any]:
    """A message in the OpenAI form."""
    return {"role": one.role, "content": [{"type": part.type, "text": part.text} for part in one.content]}


def message_from_json(record: dict[str, Any]) -> Message:
    """Reads a message; images and other parts are refused by `message`."""
    return message(record["role"], record["content"])


def turn_to_json(turn: Turn) -> dict[str, Any]:
    """One turn, its tokens and its observations."""
    action, made = turn.action, turn.action.generation
    return {
        "thought": action.thought,
        "calls": [{"id": call.id, "tool": call.tool, "arguments": json.dumps(call.arguments)} for call in action.calls],
        "answer": action.answer,
        "error": {"kind": action.error.kind, "message": action.error.message} if action.error else None,
        "text": action.text,
        "summary": action.summary,
        "context": action.context,
        "closing": action.closing,
        "discard": action.discard,
        "segment": action.segment,
        "said": action.said,
        "spent": action.spent,
        "ids": made.ids if made else (),
        "logprobs": made.logprobs if made else (),
        "sampled_logprobs": made.sampled_logprobs if made else (),
        "finish": made.finish if made else None,
        "version": made.version if made else None,
        "observations": [_observation_to_json(one) for one in turn.observations],
    }


def _observation_to_json(one: Observation) -> dict[str, Any]:
    return {
        "call_id": one.call_id,
        "tool": one.tool,
        "content": one.content,
        "value": None if one.error else json.dumps(one.value),
        "error": one.error,
        "format_kind": one.format_kind,
        "seconds": round(one.seconds, 6),
        "fault": one.fault,
        "permanent": one.permanent,
    }


def turn_from_json(record: dict[str, Any]) -> Turn:
    """Reads what `turn_to_json` wrote."""
    made = None
    if record["finish"] is not None:
        made = Generation(
            tuple(record["ids"]),
            tuple(record["logprobs"]),
            tuple(record["sampled_logprobs"]),
            record["finish"],
            record["version"],
        )
    action = Action(
        thought=record["thought"],
        calls=tuple(Call(one["id"], one["tool"], json.loads(one["arguments"])) for one in record["calls"]),
        answer=record["answer"],
        error=FormatError(**record["error"]) if record["error"] else None,
        text=record["text"],
        summary=record.get("summary"),
        context=tuple(record["context"]),
        generation=made,
        closing=tuple(record["closing"]),
        discard=record["discard"],
        segment=record.get("segment"),
        said=record.get("said"),
        spent=Spent(**record["spent"]) if record.get("spent") else None,  # older journals have none
    )
    return Turn(action, tuple(_observation_from_json(one) for one in record["observations"]))


def _observation_from_json(record: dict[str, Any]) -> Observation:
    value = record["value"]
    return Observation(**{**record, "value": None if value is None else json.loads(value)})


class TokenRecord:
    """Builds an episode's segments from the tokens its actions report."""

    def __init__(self) -> None:
        self._segments: list[tuple[list[int], int, str]] = []
        self.spans: list[Span | None] = []

    def add(self, action: Action) -> None:
        """Appends what one action saw and wrote to the segment it names, or to a new one."""
        made = action.generation
        if made is None:
            self.spans.append(None)
            return
        number = len(self._segments) - 1 if action.segment is None else action.segment
        if not self._segments or action.discard:
            self._segments.append(([], number, action.discard or "start"))
            number = len(self._segments) - 1
        ids = self._segments[number][0]
        ids.extend(action.context)
        start = len(ids)
        ids.extend(made.ids)
        self.spans.append(Span(number, start, len(ids)))
        ids.extend(action.closing)

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of the current segment."""
        return tuple(self._segments[-1][0]) if self._segments else ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All segments so far."""
        return tuple(Segment(tuple(ids), parent, reason) for ids, parent, reason in self._segments)  # type: ignore[arg-type]


def start_to_json(episode: Episode, budget: Budget) -> dict[str, Any]:
    """What is known of an episode before its first turn; flat dataclasses are left to the JSON writer."""
    return {
        "task_id": episode.task_id,
        "cluster": episode.cluster,
        "template": episode.template,
        "tags": episode.tags,
        "world": episode.world,
        "agent": episode.agent,
        "policy": episode.version,
        "seed": episode.seed,
        "parent": {"episode": episode.parent[0], "turn": episode.parent[1]} if episode.parent else None,
        "digests": episode.digests,
        "messages": [message_to_json(one) for one in episode.messages],
        "budget": budget,
    }


def end_to_json(episode: Episode) -> dict[str, Any]:
    """How an episode ended."""
    return {
        "outcome": episode.outcome,
        "verdict": episode.verdict,
        "usage": episode.usage,
        "milestones": episode.milestones,
    }


def episode_records(episode: Episode, budget: Budget) -> Iterator[dict[str, Any]]:
    """The records of a finished episode as a journal holds them, without snapshots."""
    place = {"v": SCHEMA, "episode": episode.id}
    yield {**place, "kind": "start", "index": 0, **start_to_json(episode, budget), "snapshot": None}
    for index, turn in enumerate(episode.turns):
        told = {"turn": turn_to_json(turn), "usage": episode.usage, "milestones": episode.milestones, "snapshot": None}
        yield {**place, "kind": "turn", "index": index, **told}
        said = episode.user_messages.get(index + 1)
        if said is not None:
            yield {**place, "kind": "user", "index": index, "user": message_to_json(said), "snapshot": None}
    yield {**place, "kind": "end", "index": len(episode.turns), **end_to_json(episode)}


def milestones_by_turn(turns: list[dict[str, Any]]) -> dict[str, int]:
    """The milestones reached in an episode's turn records, with the index of the first turn that holds each."""
    reached: dict[str, int] = {}
    for index, record in enumerate(turns):
        reached |= {name: index for name in record["milestones"] if name not in reached}
    return reached


def episode_from_json(
    identity: str,
    start: dict[str, Any],
    turns: list[dict[str, Any]],
    end: dict[str, Any],
) -> Episode:
    """Puts an episode together from its start, turn and end records."""
    tokens = TokenRecord()
    read = []
    said: dict[int, Message] = {}
    for record in turns:
        turn = turn_from_json(record["turn"])
        tokens.add(turn.action)
        read.append(turn)
        if record.get("user"):
            said[len(read)] = message_from_json(record["user"])
    reached = milestones_by_turn(turns)
    verdict = end["verdict"]
    return Episode(
        id=identity,
        task_id=start["task_id"],
        cluster=start["cluster"],
        template=start["template"],
        tags=tuple(start["tags"]),
        world=start["world"],
        agent=start["agent"],
        version=start["policy"],
        seed=start["seed"],
        parent=(start["parent"]["episode"], start["parent"]["turn"]) if start["parent"] else None,
        digests=Digests(**start["digests"]),
        messages=tuple(message_from_json(one) for one in start["messages"]),
        turns=tuple(read),
        outcome=Outcome(**end["outcome"]),
        verdict=Verdict(**{**verdict, "reasons": tuple(verdict["reasons"])}) if verdict else None,
        usage=Usage(**end["usage"]),
        milestones=tuple(end["milestones"]),
        milestone_turns=tuple(reached[name] for name in end["milestones"]),
        segments=tokens.segments,
        spans=tuple(tokens.spans),
        user_messages=said,
    )


__all__ = [
    "SCHEMA",
    "TokenRecord",
    "end_to_json",
    "episode_from_json",
    "episode_records",
    "message_from_json",
    "message_to_json",
    "milestones_by_turn",
    "start_to_json",
    "turn_from_json",
    "turn_to_json",
]
