"""Conversations as JSON: `messages` and `tools`, as the OpenAI API, transformers' chat templates and TRL have them.

An assistant message is a turn, the tool messages after it are its observations. What comes out of `read_chat` obeys the
strict alternation; what can't be brought into it without guessing is rejected with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from quintain.curation.formats.columns import Origin, Rejected, check_media, columns, identity, outcome_of, verdict_of
from quintain.curation.formats.tools import read_tools, write_tools
from quintain.interface.episode import Digests, Episode, Usage
from quintain.interface.errors import FormatError, FormatErrorKind, ToolErrorKind
from quintain.interface.faults import KINDS
from quintain.interface.lesson import Lesson
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Message, Observation, Turn, message
from quintain.interface.tools import Toolset

FORMAT_ERROR = "format_error-"
"""Name of the user message that tells an agent its text could not be understood; the kind follows."""
SUMMARY = "summary"
"""Name of the user message after a summary, which no user wrote."""
GO_ON = "Go on from this summary."
"""Its text."""

_ERRORS = ("format", *get_args(ToolErrorKind))
_FORMS = get_args(FormatErrorKind)
_REASONING = ("reasoning_content", "reasoning", "thinking")
_CALL_MARKS = ("<tool_call>", "<function=", "<|tool_call|>")

Record = dict[str, Any]


def write_chat(episode: Episode, toolset: Toolset, lesson: Lesson | None = None) -> Record:
    """An episode as one record.

    Args:
        episode: any.
        toolset: of its world.
        lesson: the window of it to write; then each assistant message says by `weight` whether it is learnt.
    """
    first, last = (lesson.first, lesson.last) if lesson else (0, len(episode.turns))
    messages = [_said(one) for one in episode.messages]
    if lesson and lesson.condition:
        messages.insert(0, {"role": "system", "content": lesson.condition})
    for number in range(first, last):
        written, *answers = _write_turn(episode.turns[number])
        messages += [written | ({"weight": int(number in lesson.learnt)} if lesson else {}), *answers]
        if number + 1 in episode.user_messages and number + 1 < last:
            messages.append(_said(episode.user_messages[number + 1]))
    if lesson and lesson.judgement:
        messages.append({"role": "user", "content": lesson.question})
        messages.append({"role": "assistant", "content": lesson.judgement, "weight": 1})
    where = columns(episode)
    if lesson:
        where |= {"id": f"{episode.id}/{first}-{last}", "episode": episode.id}
    return {"messages": messages, "tools": write_tools(toolset), **where}


def _said(one: Message) -> Record:
    return {"role": one.role, "content": one.text}


def _write_turn(turn: Turn) -> list[Record]:
    action = turn.action
    if action.error is not None:
        told = {"role": "user", "name": f"{FORMAT_ERROR}{action.error.kind}", "content": turn.observations[0].content}
        return [{"role": "assistant", "content": action.text}, told]
    if action.summary is not None:
        thought = {"reasoning_content": action.thought} if action.thought else {}
        told = {"role": "user", "name": SUMMARY, "content": GO_ON}
        return [{"role": "assistant", "content": action.summary, **thought}, told]
    if action.answer is not None:
        thought = {"reasoning_content": action.thought} if action.thought else {}
        return [{"role": "assistant", "content": action.answer, **thought}]
    calls = [
        {"id": one.id, "type": "function", "function": {"name": one.tool, "arguments": one.arguments}}
        for one in action.calls
    ]
    return [
        {"role": "assistant", "content": action.thought, "tool_calls": calls},
        *(_write_observation(one) for one in turn.observations),
    ]


def _write_observation(one: Observation) -> Record:
    told = {"role": "tool", "tool_call_id": one.call_id, "name": one.tool, "content": one.content}
    marks = {"error": one.error, "format_kind": one.format_kind, "fault": one.fault, "permanent": one.permanent}
    return told | {key: value for key, value in marks.items() if value}


@dataclass(slots=True)
class _Reading:
    """What has been read of a record so far."""

    messages: Sequence[Record]
    toolset: Toolset
    opening: list[Message] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    said: dict[int, Message] = field(default_factory=dict)


def read_chat(record: Record, origin: Origin) -> tuple[Episode, Toolset]:
    """The episode of a record and its tools.

    Raises:
        Rejected: the record does not alternate strictly, lacks something or holds what is no text.
    """
    messages = record.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise Rejected("messages", "'messages' must be a list of objects")
    check_media(record, "beside the messages")
    for place, one in enumerate(messages):
        check_media(one, f"in message {place}")
    reading = _Reading(messages, read_tools(record.get("tools")))
    place = 0
    while place < len(messages):
        place = _read_message(reading, place)
    _check_end(reading)
    last = reading.turns[-1].action
    prompt = "\n".join(one.text for one in reading.opening)
    episode = Episode(
        **identity(record, origin, prompt),
        messages=tuple(reading.opening),
        turns=tuple(reading.turns),
        outcome=outcome_of(record, last.answer is not None, last.declines),
        verdict=verdict_of(record, origin),
        usage=Usage(turns=len(reading.turns), tool_calls=sum(len(one.action.calls) for one in reading.turns)),
        digests=Digests(toolset=reading.toolset.digest),
        user_messages=reading.said,
    )
    return episode, reading.toolset


def _read_message(reading: _Reading, place: int) -> int:
    """Reads the message at `place`, with a turn all that belongs to it; returns the place of the next."""
    one = reading.messages[place]
    role = one.get("role")
    if role in ("system", "developer", "user"):
        _read_said(reading, place, message("user" if role == "user" else "system", _content(one, place)))
        return place + 1
    if role == "assistant":
        return _read_turn(reading, place)
    if role == "tool":
        raise Rejected("orphan_result", f"message {place}: a tool's result without a call it answers")
    raise Rejected("role", f"message {place}: role {role!r}; known: system, developer, user, assistant, tool")


def _read_said(reading: _Reading, place: int, said: Message) -> None:
    if not reading.turns:
        reading.opening.append(said)
        return
    if reading.turns[-1].action.answer is None:
        raise Rejected("interruption", f"message {place}: the {said.role} speaks before the agent has answered")
    if len(reading.turns) in reading.said:
        raise Rejected("two_messages", f"message {place}: a second message before the agent's next turn")
    reading.said[len(reading.turns)] = said


def _read_turn(reading: _Reading, place: int) -> int:
    number = len(reading.turns)
    if not any(one.role == "user" for one in reading.opening):
        raise Rejected("no_task", f"message {place}: the agent acts before a user message")
    if number and reading.turns[-1].action.answer is not None and number not in reading.said:
        raise Rejected("several_answers", f"message {place}: another answer, and no user message since the last one")
    one = reading.messages[place]
    _check_assistant(one, place)
    end = place + 1
    while end < len(reading.messages) and reading.messages[end].get("role") == "tool":
        end += 1
    results = reading.messages[place + 1 : end]
    if one.get("tool_calls"):
        calls = _calls(one, place, number, reading.toolset)
        action = Action(thought=_thought(one, place), calls=calls)
        reading.turns.append(Turn(action, _observations(calls, results, place, reading.toolset)))
        return end
    if results:
        raise Rejected("orphan_result", f"message {place + 1}: a tool's result without a call it answers")
    text = _content(one, place)
    told = reading.messages[end] if end < len(reading.messages) else {}
    if str(told.get("name") or "").startswith(FORMAT_ERROR):
        reading.turns.append(_malformed(text, told, end))
        return end + 1
    if told.get("name") == SUMMARY and told.get("content") == GO_ON:
        reading.turns.append(Turn(Action(thought=_reasoning(one, place), summary=text)))
        return end + 1
    if any(mark in text for mark in _CALL_MARKS):
        raise Rejected("call_in_text", f"message {place}: a call inside the text; it belongs into 'tool_calls'")
    reading.turns.append(Turn(Action(thought=_reasoning(one, place), answer=text)))
    return end


def _check_assistant(one: Record, place: int) -> None:
    """Refuses what would be lost without a word."""
    if one.get("function_call"):
        raise Rejected("call", f"message {place}: 'function_call' is an old form; a call belongs into 'tool_calls'")
    if one.get("weight") not in (None, 1):
        raise Rejected(
            "weight",
            f"message {place}: weight {one['weight']!r} can't be kept, as curation chooses what carries loss; "
            "import the episodes themselves, or drop 'weight' to let every turn be chosen",
        )


def _malformed(text: str, told: Record, place: int) -> Turn:
    content = _content(told, place)
    kind = told["name"].removeprefix(FORMAT_ERROR)
    if kind not in _FORMS:
        raise Rejected("mark", f"message {place}: {kind!r} is no kind of format error; known: {', '.join(_FORMS)}")
    error = FormatError(kind, content.removeprefix(f"Format error ({kind}): "))
    seen = Observation(FORMAT_CALL_ID, "", content, error="format", format_kind=kind)
    return Turn(Action(error=error, text=text), (seen,))


def _check_end(reading: _Reading) -> None:
    if not reading.turns:
        raise Rejected("no_action", "no assistant message")
    if len(reading.turns) in reading.said:
        raise Rejected("no_reply", "the last message is the user's and nobody answers it")


def _calls(one: Record, place: int, number: int, toolset: Toolset) -> tuple[Call, ...]:
    if not isinstance(one["tool_calls"], list):
        raise Rejected("call", f"message {place}: 'tool_calls' must be a list")
    calls = tuple(
        _call(written, place, f"{number}.{index}", toolset) for index, written in enumerate(one["tool_calls"])
    )
    ids = [call.id for call in calls]
    if len(set(ids)) != len(ids):
        raise Rejected("call", f"message {place}: two calls share an id: {', '.join(ids)}")
    return calls


def _call(written: Any, place: int, running: str, toolset: Toolset) -> Call:
    function = written.get("function", written) if isinstance(written, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Rejected("call", f"message {place}: a call needs a name and arguments, found {written!r:.80}")
    name = function["name"]
    arguments = _arguments(name, function.get("arguments"), place)
    own = running if written.get("id") in (None, "") else str(written["id"])
    return Call(own, name, _without_filling(name, arguments, toolset))


def _arguments(name: str, written: Any, place: int) -> Record:
    """The arguments of a call, an object or the text of one, without what JSON has no form for."""
    try:
        found = json.loads(written or "{}") if isinstance(written, str) else written
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise Rejected("call", f"message {place}: arguments of {name} are no JSON: {error}") from None
    if not isinstance(found, dict | None):
        raise Rejected("call", f"message {place}: arguments of {name} must be an object")
    return found or {}


def _without_filling(name: str, arguments: Record, toolset: Toolset) -> Record:
    """The arguments without nulls the schema refuses: a table puts them where only other rows have a key."""
    if name not in toolset or None not in arguments.values() or toolset.check(name, arguments) is None:
        return arguments
    filled = {key: value for key, value in arguments.items() if value is not None}
    return filled if toolset.check(name, filled) is None else arguments


def _observations(
    calls: tuple[Call, ...], results: Sequence[Record], place: int, toolset: Toolset
) -> tuple[Observation, ...]:
    """One for each call, in the order of the calls: by id where there are ids, else as they come."""
    if len(results) != len(calls):
        reason = "missing_result" if len(results) < len(calls) else "orphan_result"
        raise Rejected(reason, f"message {place}: {len(calls)} calls, {len(results)} results")
    ids = [None if one.get("tool_call_id") is None else str(one["tool_call_id"]) for one in results]
    if all(identity is None for identity in ids):
        pairs = list(zip(calls, results, strict=True))
        if any(result.get("name") not in (None, "", call.tool) for call, result in pairs):
            names = ", ".join(str(one.get("name")) for one in results)
            raise Rejected(
                "orphan_result",
                f"message {place}: results of {names}, calls of {', '.join(one.tool for one in calls)}, and no ids",
            )
    else:
        by_id = dict(zip(ids, results, strict=True))
        if set(by_id) != {call.id for call in calls}:
            found = ", ".join(str(identity) for identity in ids)
            raise Rejected(
                "missing_result", f"message {place}: results of {found}, calls {', '.join(one.id for one in calls)}"
            )
        pairs = [(call, by_id[call.id]) for call in calls]
    return tuple(_observation(call, result, place, toolset) for call, result in pairs)


def _observation(call: Call, result: Record, place: int, toolset: Toolset) -> Observation:
    """A result with its marks; a call that does not fit its tool's schema is marked, so that it never carries loss."""
    error, kind, fault = _marks(result, place)
    wrong = toolset.check(call.tool, call.arguments) if len(toolset) and not error else None
    if wrong is not None:
        error, kind = "format", wrong.kind
    content, permanent = _content(result, place), bool(fault and result.get("permanent"))
    return Observation(call.id, call.tool, content, error=error, format_kind=kind, fault=fault, permanent=permanent)


def _marks(result: Record, place: int) -> tuple[Any, Any, Any]:
    """Error, kind of format error and injected fault; an error that others tell in their own words is an exception."""
    error, kind, fault = (result.get(key) or "" for key in ("error", "format_kind", "fault"))
    if result.get("is_error") is True or result.get("status") == "error":  # as other programs mark it
        error = error or "exception"
    if error is True or (isinstance(error, str) and error and error not in _ERRORS):
        error = "exception"
    for mark, known in ((error, _ERRORS), (kind, _FORMS), (fault, KINDS)):
        if mark not in ("", *known):
            raise Rejected("mark", f"message {place}: a result marked {mark!r}; known: {', '.join(known)}")
    return error, kind, fault


def _thought(one: Record, place: int) -> str:
    """Reasoning and the text beside calls; one of the two is usual."""
    text = "" if one.get("content") is None else _content(one, place)
    return "\n\n".join(filter(None, (_reasoning(one, place), text)))


def _reasoning(one: Record, place: int) -> str:
    found = next((one[key] for key in _REASONING if one.get(key)), "")
    if not isinstance(found, str):
        raise Rejected("content", f"message {place}: reasoning must be text, found {type(found).__name__}")
    return found


def _content(one: Record, place: int) -> str:
    content = one.get("content")
    if isinstance(content, str):
        return content
    if content is None:
        raise Rejected("null_content", f"message {place}: {one.get('role')} without content")
    if not isinstance(content, list):
        raise Rejected("content", f"message {place}: content must be text or parts, found {type(content).__name__}")
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        if kind != "text" or not isinstance(part.get("text"), str):
            reason = "image" if "image" in str(kind) else "content"
            raise Rejected(reason, f"message {place}: part of type {kind!r}; only text is accepted")
    return "".join(part["text"] for part in content)
