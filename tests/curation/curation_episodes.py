"""Episodes made by hand, and journals that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from quintain.interface.episode import Budget, Episode, Outcome, Usage, Verdict
from quintain.interface.errors import FormatError
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation, Turn, message
from quintain.interface.records import end_to_json, start_to_json, turn_to_json


def called(tool: str = "search", result: str = "found", error: str = "", fault: str = "", **arguments: Any) -> Turn:
    """One call and its observation."""
    seen = Observation("c", tool, result, error=error, fault=fault)  # type: ignore[arg-type]
    return Turn(Action(calls=(Call("c", tool, arguments),)), (seen,))


def malformed() -> Turn:
    """A turn nobody could read."""
    seen = Observation(FORMAT_CALL_ID, "", "not JSON", error="format", format_kind="json")
    return Turn(Action(error=FormatError("json", "not JSON"), text="{"), (seen,))


def answered(text: str = "42") -> Turn:
    """An answer."""
    return Turn(Action(answer=text))


def episode(
    name: str = "e",
    turns: Sequence[Turn] = (),
    success: bool | None = True,
    *,
    prompt: str = "",
    cluster: str = "",
    template: str = "lookup",
    language: str = "en",
    **more: Any,
) -> Episode:
    """One episode; its prompt, call and answer are its own, so that no two are alike."""
    turns = tuple(turns) or (called(query=f"{name} {name * 2} {name * 3}"), answered(f"answer of {name}"))
    kind = "answered" if turns[-1].action.answer is not None else "limit"
    return Episode(
        id=name,
        task_id=f"task {name}",
        cluster=cluster or name,
        template=template,
        tags=(f"lang:{language}",) if language else (),
        world="desk",
        agent="oracle",
        messages=(message("user", prompt or f"What is {name}, of all the things in {name}-land and {name}-town?"),),
        turns=turns,
        outcome=Outcome(kind, "turns" if kind == "limit" else ""),  # type: ignore[arg-type]
        verdict=None if success is None else Verdict(success),
        usage=Usage(),
        **more,
    )


def records_of(one: Episode) -> list[dict[str, Any]]:
    """The records a journal holds of an episode."""
    base = {"v": 1, "episode": one.id}
    records: list[dict[str, Any]] = [{**base, "kind": "start", "index": 0, **start_to_json(one, Budget())}]
    for place, turn in enumerate(one.turns):
        records.append(
            {**base, "kind": "turn", "index": place, "turn": turn_to_json(turn), "milestones": [], "snapshot": None}
        )
        if place + 1 in one.user_messages:
            said = asdict(one.user_messages[place + 1])
            records.append({**base, "kind": "user", "index": place, "user": said, "snapshot": None})
    return [*records, {**base, "kind": "end", "index": len(one.turns), **end_to_json(one)}]


def write_records(folder: Path, records: Iterable[dict[str, Any]]) -> Path:
    """A stage's folder with these records in its journal."""
    (folder / "journal").mkdir(parents=True, exist_ok=True)
    (folder / "journal" / "journal.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in records))
    return folder


def write_journal(folder: Path, episodes: Iterable[Episode]) -> Path:
    """A stage's folder with these episodes in its journal."""
    return write_records(folder, (record for one in episodes for record in records_of(one)))
