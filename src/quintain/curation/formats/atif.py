"""ATIF, Harbor's Agent Trajectory Interchange Format: `steps`, each of an agent's with its observation.

Written as version 1.7 of Harbor's RFC 0001, read from 1.0 to 1.8. What belongs to Quintain alone stands in `extra`.
Token ids and log-probabilities are written where an agent has them; they are not read: an imported episode is rendered
by the dialect that trains on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from quintain.curation.formats.chat import FORMAT_ERROR
from quintain.curation.formats.columns import Rejected
from quintain.interface.episode import Episode

VERSION = "ATIF-v1.7"
_KNOWN = re.compile(r"ATIF-v1\.[0-8]")
_MARKS = ("error", "format_kind", "fault", "permanent")

Record = dict[str, Any]


def to_atif(chat: Record, episode: Episode, first_turn: int = 0) -> Record:
    """A chat record as a trajectory.

    Args:
        chat: as `write_chat` made it.
        episode: the same, for its tokens and usage.
        first_turn: number of the record's first turn.
    """
    steps: list[Record] = []
    turn = first_turn
    for one in chat["messages"]:
        if one["role"] == "tool":
            steps[-1].setdefault("observation", {"results": []})["results"].append(_result(one))
        elif str(one.get("name", "")).startswith(FORMAT_ERROR):
            told = {"content": one["content"], "extra": {"format_error": one["name"].removeprefix(FORMAT_ERROR)}}
            steps[-1]["observation"] = {"results": [told]}
        elif one["role"] == "assistant":
            steps.append(_agent_step(one) | _metrics(episode, turn))
            turn += 1
        else:
            named = {"extra": {"name": one["name"]}} if one.get("name") else {}
            steps.append({"source": one["role"], "message": one["content"], **named})
    where = {key: value for key, value in chat.items() if key not in ("messages", "tools")}
    return {
        "schema_version": VERSION,
        "session_id": episode.id,
        "trajectory_id": chat["id"],
        "agent": {"name": episode.agent, "version": str(episode.version), "tool_definitions": chat["tools"]},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
        "final_metrics": {"total_completion_tokens": episode.usage.tokens, "total_steps": len(steps)},
        "extra": where,
    }


def _agent_step(one: Record) -> Record:
    weight = {"extra": {"weight": one["weight"]}} if "weight" in one else {}
    if not one.get("tool_calls"):
        thought = {"reasoning_content": one["reasoning_content"]} if one.get("reasoning_content") else {}
        return {"source": "agent", "message": one["content"], **thought, **weight}
    calls = [
        {
            "tool_call_id": call["id"],
            "function_name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
        }
        for call in one["tool_calls"]
    ]
    return {"source": "agent", "message": one["content"], "tool_calls": calls, **weight}


def _result(one: Record) -> Record:
    marks = {key: one[key] for key in _MARKS if key in one}
    return {"source_call_id": one["tool_call_id"], "content": one["content"], **({"extra": marks} if marks else {})}


def _metrics(episode: Episode, turn: int) -> Record:
    made = episode.turns[turn].action.generation if turn < len(episode.turns) else None
    if made is None:
        return {}
    ids = {"completion_tokens": len(made.ids), "completion_token_ids": list(made.ids)}
    return {"metrics": {**ids, "logprobs": list(made.logprobs)}}


def from_atif(record: Record) -> Record:
    """A trajectory as a chat record; its order is checked by the reader of those.

    Raises:
        Rejected: an unknown version, or a step that is no plain exchange between agent and tools.
    """
    version, steps = record.get("schema_version"), record.get("steps")
    if not isinstance(version, str) or not _KNOWN.fullmatch(version):
        raise Rejected("version", f"schema_version {version!r}; known: ATIF-v1.0 to ATIF-v1.8")
    if not isinstance(steps, list) or not all(isinstance(one, dict) for one in steps):
        raise Rejected("messages", "'steps' must be a list of objects")
    if record.get("continued_trajectory_ref"):
        raise Rejected("continued", "the trajectory goes on in another file")
    agent = record.get("agent") or {}
    where = {
        "id": record.get("trajectory_id") or record.get("session_id"),
        "agent": agent.get("name"),
        **(record.get("extra") or {}),
    }
    messages = [one for place, step in enumerate(steps) for one in _messages(step, place)]
    return {**where, "messages": messages, "tools": agent.get("tool_definitions")}


def _messages(step: Record, place: int) -> Iterator[Record]:
    source, results = step.get("source"), (step.get("observation") or {}).get("results") or []
    if step.get("is_copied_context"):
        raise Rejected("copied_context", f"step {place + 1}: copied from another trajectory; take that one")
    extra = step.get("extra") or {}
    if source in ("system", "user"):
        if results:
            raise Rejected("observation", f"step {place + 1}: an observation of the {source}, which calls nothing")
        yield {"role": source, "content": step.get("message"), "name": extra.get("name")}
        return
    if source != "agent":
        raise Rejected("role", f"step {place + 1}: source {source!r}; known: system, user, agent")
    if step.get("llm_call_count") == 0:
        raise Rejected("no_model", f"step {place + 1}: made by a program, not by a model")
    if any(one.get("subagent_trajectory_ref") for one in results):
        raise Rejected("subagent", f"step {place + 1}: handed to another agent, whose turns are elsewhere")
    calls = [{"id": one.get("tool_call_id"), "function": _function(one)} for one in step.get("tool_calls") or ()]
    thought = {"reasoning_content": step["reasoning_content"]} if step.get("reasoning_content") else {}
    said = {"role": "assistant", "content": step.get("message"), "weight": extra.get("weight")}
    yield said | thought | ({"tool_calls": calls} if calls else {})
    for one in results:
        yield _told(one, bool(calls))


def _function(call: Record) -> Record:
    return {"name": call.get("function_name"), "arguments": call.get("arguments")}


def _told(result: Record, called: bool) -> Record:
    extra = result.get("extra") or {}
    if not called and extra.get("format_error"):
        return {"role": "user", "name": f"{FORMAT_ERROR}{extra['format_error']}", "content": result.get("content")}
    marks = {key: extra[key] for key in _MARKS if key in extra}
    content = "" if result.get("content") is None else result["content"]
    return {"role": "tool", "tool_call_id": result.get("source_call_id"), "content": content, **marks}
