"""A training sample before it has tokens: what synthesis writes and continual pre-training reads.

A sample is either a conversation in the interface's own messages, which a dialect renders later together with
the toolset, or a plain text. One JSON line each; files are written and read as streams.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from quintain.interface.errors import InputError
from quintain.interface.files import json_lines, replacing
from quintain.interface.messages import Action, Call, Message, Observation, message

Said = Message | Action | Observation
"""One entry of a conversation: what the system or the user says, the agent does, or the world answers."""

_LABELS = ("id", "source", "language", "cluster")
_FIELDS = (*_LABELS, "toolset", "tags", "messages", "text", "unlearnt")


@dataclass(frozen=True, slots=True)
class Sample:
    """One text to learn from, as a conversation or as it is.

    Attributes:
        id: unique in its file.
        source: which part of a mix it belongs to: `planning`, `reasoning`, `has`, `general`, ...
        language: `en`, `zh` or another language's code.
        cluster: samples with the same cluster share content (the memory they were made from).
        toolset: digest of the tools its calls were checked against; None for a sample without tools.
        messages: the conversation. It begins with what the system or the user says; an action's observations
            follow it directly, in the order of its calls. An action at the very end may lack them: a plan's
            first action is never carried out.
        text: a plain text, instead of messages.
        tags: free labels, such as `style:comparison`.
        unlearnt: parts of the text that are read but carry no loss, as `(start, end)` in characters, in order.

    Raises:
        ValueError: a label is empty, there is not exactly one of messages and text, the messages do not alternate, or
            the unlearnt parts are no parts of the text in order.
    """

    id: str
    source: str
    language: str
    cluster: str
    toolset: str | None = None
    messages: tuple[Said, ...] = ()
    text: str = ""
    tags: tuple[str, ...] = ()
    unlearnt: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        empty = [name for name in _LABELS if not getattr(self, name)]
        if empty:
            raise ValueError(f"{empty[0]!r} must not be empty")
        if bool(self.messages) == bool(self.text):
            raise ValueError("a sample has either messages or a text")
        if self.messages:
            _check_alternation(self.messages)
        edges = [0, *(edge for part in self.unlearnt for edge in part), len(self.text)]
        if edges != sorted(edges):
            raise ValueError(f"unlearnt {self.unlearnt} are no parts of a text of {len(self.text)} characters in order")

    def to_json(self) -> dict[str, Any]:
        """The sample as a JSON object, keys in the documented order, without the unused one of messages and text."""
        record: dict[str, Any] = {name: getattr(self, name) for name in (*_LABELS, "toolset")}
        record["tags"] = list(self.tags)
        record["unlearnt"] = [list(part) for part in self.unlearnt]
        return record | (
            {"text": self.text} if self.text else {"messages": [_said_to_json(one) for one in self.messages]}
        )


def _check_alternation(messages: Sequence[Said]) -> None:
    """An action is followed by its observations and nothing else; only the last one may lack them."""
    if not isinstance(messages[0], Message):
        raise ValueError("messages begin with what the system or the user says")
    waiting: list[str] = []
    for one in messages:
        if isinstance(one, Observation):
            if not waiting or one.call_id != waiting.pop(0):
                raise ValueError(f"observation of call {one.call_id!r} does not follow its action")
            continue
        if waiting:
            raise ValueError(f"call {waiting[0]!r} has no observation")
        waiting = [call.id for call in one.calls] if isinstance(one, Action) else []
    last = messages[-1]
    if waiting and isinstance(last, Observation):
        raise ValueError(f"call {waiting[0]!r} has no observation")


def _said_to_json(one: Said) -> dict[str, Any]:
    if isinstance(one, Message):
        return {"role": one.role, "content": one.text}
    if isinstance(one, Observation):
        return {"role": "tool", "id": one.call_id, "tool": one.tool, "content": one.content, "error": one.error}
    if one.error is not None:
        raise ValueError("an action that could not be understood has no place in a sample")
    calls = [
        # arguments as text, so that every line has the same columns whatever the tools are
        {"id": call.id, "tool": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
        for call in one.calls
    ]
    return {"role": "assistant", "thought": one.thought, "calls": calls, "answer": one.answer}


def _said_from_json(record: dict[str, Any]) -> Said:
    role = record["role"]
    if role == "tool":
        return Observation(record["id"], record["tool"], record["content"], error=record["error"])
    if role == "assistant":
        calls = tuple(Call(one["id"], one["tool"], json.loads(one["arguments"])) for one in record["calls"])
        return Action(record["thought"], calls, record["answer"])
    if role not in ("system", "user"):
        raise ValueError(f"role {role!r}: allowed are system, user, assistant and tool")
    return message(role, record["content"])


def sample_from_json(record: Any, where: str) -> Sample:
    """Reads one sample.

    Args:
        record: the JSON object.
        where: file and line, for the error message.

    Raises:
        InputError: it is no object, a key is unknown or missing, or its messages do not alternate.
    """
    if not isinstance(record, dict):
        raise InputError(f"{where}: a sample is a JSON object, found {type(record).__name__}")
    unknown = sorted(set(record) - set(_FIELDS))
    if unknown:
        raise InputError(f"{where}: unknown key {unknown[0]!r}; allowed: {', '.join(_FIELDS)}")
    for key in (*_LABELS, *({"text", "toolset"} & set(record))):
        if not isinstance(record.get(key), str) and (key, record.get(key)) != ("toolset", None):
            raise InputError(f"{where}: {key!r} must be text, found {record.get(key)!r}")
    try:
        messages = tuple(_said_from_json(one) for one in record.get("messages", ()))
        rest = {key: record[key] for key in (*_LABELS, "toolset", "text") if key in record}
        unlearnt = tuple((int(start), int(end)) for start, end in record.get("unlearnt", ()))
        return Sample(**rest, messages=messages, tags=tuple(record.get("tags", ())), unlearnt=unlearnt)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except KeyError as error:
        raise InputError(f"{where}: a message lacks the key {error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{where}: damaged sample: {error}") from None


def read_samples(path: Path) -> Iterator[Sample]:
    """Every sample of a JSON Lines file, one at a time, so that memory does not grow with the file.

    Raises:
        InputError: the file is missing, or a line is no sample; the message names the line.
    """
    if not path.is_file():
        raise InputError(f"sample file not found: {path}")
    for number, record in json_lines(path):
        yield sample_from_json(record, f"{path}:{number}")


class SampleWriter:
    """Writes samples one at a time; on leaving without an error the file is put in place, else the old one stays.

    Args:
        path: of the JSON Lines file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._replacing = replacing(self.path)
        self._file = self._replacing.__enter__()
        return self

    def add(self, sample: Sample) -> None:
        """Writes a line. Half characters (lone surrogates, which JSON escapes can hold) become `?`: UTF-8 has none."""
        line = json.dumps(sample.to_json(), ensure_ascii=False)
        self._file.write(line.encode("utf-8", "replace") + b"\n")
        self.count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._replacing.__exit__(kind, error, trace)


def write_samples(path: Path, samples: Iterable[Sample]) -> int:
    """Writes samples as JSON Lines (UTF-8) and returns how many; a reader sees the old file or the whole new one."""
    with SampleWriter(path) as writer:
        for one in samples:
            writer.add(one)
    return writer.count
