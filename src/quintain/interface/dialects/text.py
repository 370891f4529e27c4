"""What all dialects share: writing text around special tokens, reading it back, and the promise that both agree."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from quintain.interface.canonical import digest
from quintain.interface.dialects.base import Codec
from quintain.interface.errors import FormatError, FormatErrorKind, InputError
from quintain.interface.messages import Action, Call, Message, Observation
from quintain.interface.tools import Toolset


class Token(str):
    """A token by its name, among the text pieces of a rendering."""


Part = str | Token
Calls = list[tuple[str, dict[str, Any]]]
"""Tool names with arguments, not yet numbered."""


class Malformed(Exception):
    """A turn broke a rule; carries the `FormatError` its observation will show."""

    def __init__(self, kind: FormatErrorKind, message: str) -> None:
        super().__init__(message)
        self.error = FormatError(kind, message)


class TextDialect(ABC):
    """A dialect whose turns are text between special tokens.

    Args:
        codec: the tokenizer.

    Raises:
        InputError: the tokenizer lacks tokens of `required`.

    Class attributes:
        id: name in the registry.
        version: raised by every change of the tokens written or of what is read.
        required: special tokens it can't do without.
        ends: those of them that end a turn, the one `write` uses first.
        forgets: when a user speaks, the thoughts of all turns before are left out of what the model reads.
        markers: texts with a meaning inside a turn; a token where the tokenizer has one of that name.
        _after_end: what stands between the token that ends a turn and what follows.
    """

    id: ClassVar[str]
    version: ClassVar[str]
    required: ClassVar[tuple[str, ...]]
    ends: ClassVar[tuple[str, ...]]
    markers: ClassVar[tuple[str, ...]]
    forgets: ClassVar[bool] = False
    _after_end: ClassVar[tuple[Part, ...]] = ()

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._tokens = {
            name: _token_id(codec, name) for name in dict.fromkeys(self.required + self.markers + self.ends)
        }
        missing = [name for name in self.required if self._tokens[name] is None]
        if missing:
            raise InputError(f"dialect {self.id!r} needs tokens this tokenizer lacks: {', '.join(missing)}")

    @property
    def digest(self) -> str:
        """Digest of id and version."""
        return digest({"id": self.id, "version": self.version})

    @property
    def stop(self) -> tuple[int, ...]:
        """Ids that end an agent's turn, the one `write` uses first."""
        ids = (self._tokens[name] for name in self.ends)
        return tuple(index for index in ids if index is not None)

    def prompt(self, messages: Sequence[Message], toolset: Toolset) -> list[int]:
        """Ids of system, tools and user messages, up to and including those that open an agent's turn."""
        count = next((index for index, one in enumerate(messages) if one.role != "system"), len(messages))
        system = "\n\n".join(one.text for one in messages[:count])
        return self._ids(self._prompt(system, messages[count:], toolset))

    def observe(self, observations: Sequence[Observation]) -> list[int]:
        """Ids that follow an agent's end token: the observations, then those that open its next turn."""
        return self.follow([observations])

    def say(self, message: Message) -> list[int]:
        """Ids that follow an agent's end token: what the user says, then those that open its next turn."""
        return self.follow([message])

    def follow(self, said: Sequence[Sequence[Observation] | Message]) -> list[int]:
        """The same for several of both, in their order."""
        parts: list[Part] = [*self._after_end]
        for one in said:
            parts += self._say(one) if isinstance(one, Message) else self._observe([seen.content for seen in one])
        return self._ids([*parts, *self._open(isinstance(said[-1], Message))])

    def write(self, action: Action) -> list[int]:
        """Ids a perfect agent would generate for `action`, end token included.

        Raises:
            ValueError: the action holds text that would not parse back to itself; names the marker at fault.
        """
        if action.error is not None:
            raise ValueError(f"an action that could not be understood ({action.error.kind}) can't be written")
        ids = self._ids([*self._write(action), Token(self.ends[0])])
        found = self.parse(ids, cut=False, prefix="")
        if _content(found) != _content(action):
            raise ValueError(f"dialect {self.id!r} can't write this action: {self._reason(action, found)}")
        return ids

    def recall(self, ids: Sequence[int], action: Action) -> list[int]:
        """`ids`, which open a turn, and that turn as it is read once its thought is forgotten."""
        if action.generation is not None and not action.thought:
            return [*ids, *action.generation.ids, *action.closing]
        return [*ids, *self._ids([*self._write(replace(action, thought="")), Token(self.ends[0])])]

    def parse(self, ids: Sequence[int], *, cut: bool, prefix: str) -> Action:
        """Reads generated ids; never raises.

        Args:
            ids: as generated, end token included if there is one.
            cut: generation stopped at its token limit.
            prefix: call ids are `prefix` + a running number from 0.
        """
        stop = self.stop
        end = next((place for place, index in enumerate(ids) if index in stop), len(ids))
        text = self.codec.decode(ids[:end])
        try:
            if cut and end == len(ids):
                raise Malformed("cut", f"the turn was cut at its limit of {len(ids)} tokens; write less")
            if end + 1 < len(ids):
                raise Malformed("prose", "nothing may follow the token that ends a turn")
            if not text.strip():
                raise Malformed("empty", f"the turn is empty; {self._form()}")
            thought, calls, answer = self._read(text)
        except Malformed as problem:
            return Action(error=problem.error, text=text)
        numbered = tuple(Call(f"{prefix}{number}", tool, value) for number, (tool, value) in enumerate(calls))
        return Action(thought=thought, calls=numbered, answer=answer)

    @abstractmethod
    def _prompt(self, system: str, messages: Sequence[Message], toolset: Toolset) -> list[Part]:
        """`system` is the text of the leading system messages, `messages` are the others."""

    @abstractmethod
    def _observe(self, contents: Sequence[str]) -> list[Part]:
        """Observations alone."""

    @abstractmethod
    def _say(self, message: Message) -> list[Part]:
        """A user's or the system's message alone."""

    @abstractmethod
    def _open(self, after_message: bool) -> list[Part]:
        """What opens an agent's turn, after a message or after observations."""

    @abstractmethod
    def _write(self, action: Action) -> list[Part]:
        """A turn without its end token."""

    @abstractmethod
    def _read(self, text: str) -> tuple[str, Calls, str | None]:
        """Thought, calls and answer of a turn; raises `Malformed`."""

    @abstractmethod
    def _form(self) -> str:
        """How a call is written, in half a line, for messages to the agent."""

    def _ids(self, parts: Iterable[Part]) -> list[int]:
        """Tokens by their ids, everything else as plain text; neighbouring texts are encoded as one."""
        ids: list[int] = []
        text = ""
        for part in parts:
            token = self._tokens.get(part) if isinstance(part, Token) else None
            if token is None:
                text += part
                continue
            ids += self.codec.encode(text) if text else []
            ids.append(token)
            text = ""
        return ids + (self.codec.encode(text) if text else [])

    def _own(self, text: str) -> list[Part]:
        """Text the dialect itself supplies, in which the names of markers stand for the tokens."""
        pieces = re.split("(" + "|".join(map(re.escape, self.markers)) + ")", text)
        return [Token(piece) if number % 2 else piece for number, piece in enumerate(pieces)]

    def _reason(self, action: Action, found: Action) -> str:
        texts = (action.thought, action.answer or "", *(call.tool for call in action.calls))
        guilty = [marker for marker in self.markers if any(marker in text for text in texts)]
        if guilty:
            return f"its text holds {guilty[0]!r}, which has a meaning of its own"
        if found.error is not None:
            return f"it would read back as {found.error.kind}: {found.error.message}"
        return "it reads back differently (blank or unusual characters that the format or the tokenizer changes)"


def _token_id(codec: Codec, name: str) -> int | None:
    try:
        return codec.special(name)
    except InputError:
        return None


def _content(action: Action) -> tuple[str, Calls, str | None]:
    return action.thought, [(call.tool, call.arguments) for call in action.calls], action.answer
