"""Which known conversation a request goes on with, and which tokens it adds: nothing known is tokenized again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import Literal

from quintain.agents.gateway.protocol import Refused, Written, text_of
from quintain.interface.dialects.base import Dialect
from quintain.interface.messages import Action, Call, Message, Observation, message
from quintain.interface.tools import Toolset

Reason = Literal["", "start", "discard", "branch"]


@dataclass(frozen=True, slots=True)
class Said:
    """A message, as two tellings of it are compared.

    Attributes:
        role: who says it; `developer` is `system`.
        text: its text, an assistant's without blanks around it (clients may strip them).
        calls: name and arguments of an assistant's calls, the order of keys aside.
        ids: ids of these calls, or of the call a tool's message answers; some clients rename them.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[tuple[str, str], ...] = ()
    ids: tuple[str, ...] = field(default=(), compare=False)


def said_in(messages: Sequence[Written]) -> list[Said]:
    """A request's messages.

    Raises:
        Refused: one holds something other than text, two of the assistant's stand in a row, or one stands last.
    """
    said = [_said(one, number) for number, one in enumerate(messages)]
    for one, after in zip(said, [*said[1:], said[-1]], strict=True):
        if one.role == after.role == "assistant":
            text = "messages: something must be said after an assistant's message, before the next one"
            raise Refused(400, text, "invalid_request")
    return said


def _said(one: Written, number: int) -> Said:
    text = text_of(one, number)
    if one.role == "assistant":
        calls = one.tool_calls or ()
        written = tuple((call.function.name, _canonical(call.function.arguments)) for call in calls)
        return Said("assistant", text.strip(), written, tuple(call.id for call in calls))
    if one.role == "tool":
        return Said("tool", text, ids=(one.tool_call_id,))
    return Said("system" if one.role == "developer" else one.role, text)


def reply_of(action: Action) -> Said:
    """The message an action is returned as."""
    calls = tuple((call.tool, json.dumps(call.arguments, sort_keys=True)) for call in action.calls)
    return Said("assistant", content_of(action).strip(), calls, tuple(call.id for call in action.calls))


def content_of(action: Action) -> str:
    """The `content` an action is returned with: its answer, or the text that could not be understood."""
    return action.text if action.error is not None else action.answer or ""


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


@dataclass(slots=True)
class Known:
    """One segment, and the messages it holds.

    Attributes:
        number: its index in the episode.
        draws: number of its session in the engine.
        tools: digest of the tools its prompt describes.
        said: the messages.
        ids: the tokens.
        before: for the number of messages before each generation, the number of tokens before it.
        after: for the number of messages up to each reply, the number of tokens up to its end.
        busy: a generation for it is under way.
    """

    number: int
    draws: int
    tools: str
    said: list[Said]
    ids: list[int]
    before: dict[int, int] = field(default_factory=dict)
    after: dict[int, int] = field(default_factory=dict)
    busy: bool = False

    def cut(self, said: Sequence[Said]) -> int:
        """How many of these messages it holds, up to a point from which it can go on; 0 for none."""
        pairs = zip(said, self.said, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        points = [count for count in self.after if count <= common and count < len(said)]
        points += [count for count in self.before if count == common == len(said)]
        return max(points, default=0)

    def tokens(self, cut: int, said: Sequence[Said]) -> int:
        """Number of tokens up to a cut."""
        return self.before[cut] if cut == len(said) else self.after[cut]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request belongs.

    Attributes:
        known: the segment it extends; a new one's parent; None for a conversation of its own.
        reason: why a new segment begins; "" for none.
        prefix: tokens before the new ones.
        context: tokens this request adds to its segment.
        said: the request's messages.
        tools: digest of its tools.
        draws: number of its session in the engine: one for each segment, so that equal requests are drawn apart.
    """

    known: Known | None
    reason: Reason
    prefix: tuple[int, ...]
    context: tuple[int, ...]
    said: tuple[Said, ...]
    tools: str
    draws: int

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens before the generation."""
        return (*self.prefix, *self.context)


class History:
    """The segments of one episode.

    Args:
        dialect: of the model.

    Attributes:
        draws: sessions of the engine so far.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.draws = 0
        self._dialect = dialect
        self._known: list[Known] = []
        self._written: dict[Said, tuple[int, ...]] = {}

    def place(self, said: Sequence[Said], toolset: Toolset) -> Place:
        """The segment with the longest matching prefix is extended; a rewritten history starts a new one.

        Raises:
            Refused: a message the dialect can't write.
        """
        tools = toolset.digest
        found = [(one.cut(said), not one.busy, one) for one in self._known if one.tools == tools]
        cut, free, known = max(found, key=lambda one: one[:2], default=(0, False, None))
        if known is None or not cut:
            parent = self._rewritten(said)
            reason: Reason = "start" if parent is None else "discard"
            return self._begun(parent, reason, self._whole(said, toolset), said, tools)
        rest = self._rest(said[cut:])
        kept = known.ids[: known.tokens(cut, said)]
        if free and cut == len(known.said):
            return Place(known, "", tuple(kept), tuple(rest), tuple(said), tools, known.draws)
        return self._begun(known, "branch", [*kept, *rest], said, tools)

    def _begun(
        self, parent: Known | None, reason: Reason, ids: Sequence[int], said: Sequence[Said], tools: str
    ) -> Place:
        """A place at the start of a new segment."""
        self.draws += 1
        return Place(parent, reason, (), tuple(ids), tuple(said), tools, self.draws - 1)

    def add(self, place: Place, ids: Sequence[int], reply: Said) -> None:
        """Adds what was generated at a place, closing tokens included."""
        known = place.known
        if known is None or place.reason:
            known = Known(len(self._known), place.draws, place.tools, [], [])
            self._known.append(known)
        known.ids = [*place.ids, *ids]
        known.said = [*place.said, reply]
        known.before[len(place.said)] = len(place.ids)
        known.after[len(known.said)] = len(known.ids)
        self._written[reply] = tuple(ids)

    def _rewritten(self, said: Sequence[Said]) -> Known | None:
        """The segment that shares most of what the agent did or saw with these messages."""
        done = {one for one in said if one.role in ("assistant", "tool")}
        shared = [(len(done.intersection(one.said)), one.number, one) for one in self._known]
        most = max(shared, key=lambda one: one[:2], default=(0, 0, None))
        return most[2] if most[0] else None

    def _whole(self, said: Sequence[Said], toolset: Toolset) -> list[int]:
        first = next((place for place, one in enumerate(said) if one.role == "assistant"), len(said))
        opening = [_message(one) for one in said[:first]]
        return self._dialect.prompt(opening, toolset) + self._rest(said[first:])

    def _rest(self, said: Sequence[Said]) -> list[int]:
        """Replies as they were generated, or written anew where they are not known; and what follows each."""
        ids: list[int] = []
        for own, group in groupby(said, lambda one: one.role == "assistant"):
            if own:
                for one in group:
                    ids += self._written.get(one) or self._write(one)
            else:
                ids += self._dialect.follow(list(_heard(group)))
        return ids

    def _write(self, one: Said) -> list[int]:
        """An assistant's message that this model did not write."""
        try:
            calls = tuple(Call(str(n), tool, json.loads(text)) for n, (tool, text) in enumerate(one.calls))
            action = Action(thought=one.text, calls=calls) if calls else Action(answer=one.text)
            return self._dialect.write(action)
        except ValueError as error:
            text = f"messages: this assistant's message can't be written in {self._dialect.id}: {error}"
            raise Refused(400, text, "invalid_request") from None


def _message(one: Said) -> Message:
    if one.role == "tool":
        raise Refused(400, "messages: a tool's message must follow the assistant's call", "invalid_request")
    return message("system" if one.role == "system" else "user", one.text)


def _heard(said: Iterator[Said]) -> Iterator[Sequence[Observation] | Message]:
    """Tools' messages in a row are the observations of one turn."""
    for tools, group in groupby(said, lambda one: one.role == "tool"):
        if tools:
            yield [Observation(one.ids[0], "", one.text) for one in group]
        else:
            yield from map(_message, group)
