"""ShareGPT: `conversations` of `from` and `value`, with `function_call` and `observation` as LLaMA-Factory reads them.

It has no ids of calls, so results pair by order: those of several calls in one turn are a JSON list of as many texts.
A thought stands in `<think>` before the rest of the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from quintain.curation.formats.columns import Rejected, check_media

_THOUGHT = re.compile(r"<think>\n?(.*?)\n?</think>(?:\n\n)?", re.DOTALL)
_ROLES = {"human": "user", "user": "user", "system": "system"}
_OWN = ("conversations", "system", "tools")

Record = dict[str, Any]


def to_sharegpt(chat: Record) -> Record:
    """A chat record as a ShareGPT record.

    Raises:
        Rejected: a text would read back as something else.
    """
    messages: list[Record] = chat["messages"]
    leading = messages[0]["content"] if messages[0]["role"] == "system" else None
    turns: list[Record] = []
    results: list[str] = []
    for one in messages[leading is not None :]:
        if one["role"] == "tool":
            results.append(one["content"])
            continue
        turns += _results(results)
        turns.append(_write(one))
    turns += _results(results)
    where = {key: value for key, value in chat.items() if key not in ("messages", "tools")}
    system = {} if leading is None else {"system": leading}
    return {"conversations": turns, **system, "tools": json.dumps(chat["tools"], ensure_ascii=False), **where}


def _results(results: list[str]) -> list[Record]:
    """The results of one turn as one entry; empties the list."""
    if not results:
        return []
    value = results[0] if len(results) == 1 else json.dumps(results, ensure_ascii=False)
    results.clear()
    return [{"from": "observation", "value": value}]


def _write(one: Record) -> Record:
    if one["role"] != "assistant":
        if one.get("name"):
            raise Rejected("malformed", "a turn that could not be understood has no form here")
        return {"from": "human" if one["role"] == "user" else one["role"], "value": one["content"]}
    if one.get("weight") == 0:
        raise Rejected("masked", "a turn that carries no loss has no form here")
    thought = one["content"] if one.get("tool_calls") else one.get("reasoning_content", "")
    text = "" if one.get("tool_calls") else one["content"]
    if "</think>" in thought or text.startswith("<think>"):
        raise Rejected("marker", "a text holds <think>, which has a meaning of its own here")
    lead = f"<think>\n{thought}\n</think>\n\n" if thought else ""
    if not one.get("tool_calls"):
        return {"from": "gpt", "value": lead + text}
    calls = [call["function"] for call in one["tool_calls"]]
    value = json.dumps(calls if len(calls) > 1 else calls[0], ensure_ascii=False)
    return {"from": "function_call", "value": lead + value}


def from_sharegpt(record: Record) -> Record:
    """A ShareGPT record as a chat record; its order is checked by the reader of those.

    Raises:
        Rejected: an entry is unknown, or a call is no JSON.
    """
    entries = record.get("conversations")
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise Rejected("messages", "'conversations' must be a list of objects")
    if "messages" in record:
        raise Rejected("messages", "both 'conversations' and 'messages'; only one of them is the episode")
    system = record.get("system")
    if not isinstance(system, str | None):
        raise Rejected("content", f"'system' must be text, found {type(system).__name__}")
    messages: list[Record] = [{"role": "system", "content": system}] if system else []
    expected = 0
    for place, entry in enumerate(entries):
        made = list(_read(entry, place, expected))
        expected = len(made[-1].get("tool_calls") or ()) if made else 0
        messages += made
    where = {key: value for key, value in record.items() if key not in _OWN}
    return {"messages": messages, "tools": record.get("tools"), **where}


def _read(entry: Record, place: int, expected: int) -> Iterator[Record]:
    """The messages of one entry; `expected` calls wait for their results."""
    speaker, value = entry.get("from"), entry.get("value")
    check_media(entry, f"in entry {place}")
    unlearnt = any(entry.get(key) in (0, False) for key in ("weight", "train", "loss"))
    masked = {"weight": 0} if unlearnt else {}
    if speaker in _ROLES:
        yield {"role": _ROLES[speaker], "content": value}
    elif speaker in ("observation", "tool"):
        for text in _split(value, expected):
            yield {"role": "tool", "content": text}
    elif speaker in ("gpt", "assistant"):
        thought, text = _thought(value)
        yield {"role": "assistant", "content": text, "reasoning_content": thought, **masked}
    elif speaker == "function_call":
        thought, text = _thought(value)
        yield {"role": "assistant", "content": thought, "tool_calls": _calls(text, place), **masked}
    else:
        raise Rejected(
            "role", f"entry {place}: from {speaker!r}; known: human, gpt, function_call, observation, system"
        )


def _thought(value: Any) -> tuple[str, Any]:
    found = _THOUGHT.match(value) if isinstance(value, str) else None
    return (found[1], value[found.end() :]) if found else ("", value)


def _calls(text: Any, place: int) -> list[Record]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError) as error:
        raise Rejected("call", f"entry {place}: a call is no JSON: {error}") from None
    if found == []:
        raise Rejected("call", f"entry {place}: a function_call without a call")
    return [{"function": one} for one in (found if isinstance(found, list) else [found])]


def _split(value: Any, expected: int) -> list[Any]:
    """The results of several calls; one text is the result of one call."""
    if expected < 2 or not isinstance(value, str):
        return [value]
    try:
        found = json.loads(value)
    except ValueError:
        return [value]
    return found if isinstance(found, list) and len(found) == expected else [value]
