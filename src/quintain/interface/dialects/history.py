"""An episode as a model reads it: which turns, which of their thoughts, and the tokens of a history written anew.

Between two user messages a model reads all of its thoughts again, however many tools it calls. A format may say that
they are forgotten when the next user message comes, as DeepSeek-V3.2's and Qwen3's do; calls, results and answers stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from quintain.interface.dialects.base import Dialect
from quintain.interface.messages import Action, Message, Turn, message
from quintain.interface.tools import Toolset
from quintain.interface.words import has_chinese

SUMMARY = {"en": "Summary of your work so far:", "zh": "到目前为止的工作总结："}
"""What stands above a summary in the message it is read in."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Which part of an episode a model reads. Every event of the episode leads from one memory to the next.

    | event | memory after it |
    |---|---|
    | a turn | the same: the turn is read with its thought |
    | a user speaks, in a format that forgets | `forgotten` is the number of turns so far |
    | a turn that begins afresh | `first` is that turn, and there is no summary |
    | a summary | `first` is the turn after it, `summary` its text |

    Attributes:
        first: turns before it are not read; what user and agent said to each other is.
        forgotten: turns before it are read without their thoughts.
        summary: stands for the turns that are not read.
    """

    first: int = 0
    forgotten: int = 0
    summary: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """What happened so far, and how it is written.

    Attributes:
        dialect: of the model.
        messages: what system and user said at the start.
        toolset: the tools.
        turns: turns so far.
        user_messages: what the user said after an answer, keyed by the number of turns before it.
    """

    dialect: Dialect
    messages: Sequence[Message]
    toolset: Toolset
    turns: Sequence[Turn]
    user_messages: Mapping[int, Message]

    def memory(self) -> Memory:
        """What is read after all that happened."""
        memory = Memory()
        for number, turn in enumerate(self.turns):
            if turn.action.discard == "discard":
                memory = replace(memory, first=number, summary="")
            if turn.action.summary is not None:
                memory = replace(memory, first=number + 1, summary=turn.action.summary)
            if self.dialect.forgets and number + 1 in self.user_messages:
                memory = replace(memory, forgotten=number + 1)
        return memory

    def runs(self) -> Iterator[tuple[int, int]]:
        """First turn, and one past the last, of each run of turns that share a context, where nothing was given up."""
        first = 0
        for at in sorted(at for at in self.user_messages if at < len(self.turns)):
            so_far = replace(self, turns=self.turns[:at])
            if self.dialect.forgets and so_far.ids(Memory(forgotten=at)) != so_far.ids(Memory(forgotten=first)):
                yield first, at
                first = at
        yield first, len(self.turns)

    def ids(self, memory: Memory) -> list[int]:
        """Ids of all that a memory holds, up to those that open the next turn.

        Raises:
            ValueError: a turn that was not generated holds text that the dialect can't write.
        """
        ids = self.opening(memory)
        for number, turn in enumerate(self.turns[memory.first :], start=memory.first):
            ids = self._said(ids, turn.action, number < memory.forgotten)
            ids += self.reply(number + 1)
        return ids

    def opening(self, memory: Memory) -> list[int]:
        """What was said up to the first turn that is read, and the summary of the turns that are not."""
        said = [at for at in sorted(self.user_messages) if at <= memory.first]
        last = self.user_messages[said[-1]] if said else self.messages[-1]
        if memory.summary:
            label = SUMMARY["zh" if has_chinese(last.text) else "en"]
            last = message(last.role, f"{last.text}\n\n{label}\n{memory.summary}")
        if not said:
            return self.dialect.prompt((*self.messages[:-1], last), self.toolset)
        ids = self.dialect.prompt(self.messages, self.toolset)
        for at in said:
            ids = self._said(ids, self.turns[at - 1].action, self.dialect.forgets)
            ids += self.dialect.say(last if at == said[-1] else self.user_messages[at])
        return ids

    def reply(self, turns: int) -> list[int]:
        """What follows the agent's turn number `turns`."""
        if turns in self.user_messages:
            return self.dialect.say(self.user_messages[turns])
        return self.dialect.observe(self.turns[turns - 1].observations)

    def _said(self, ids: list[int], action: Action, forgotten: bool) -> list[int]:
        """With a turn: as it was generated, else as the dialect writes it; or without its thought."""
        if forgotten and action.error is None:
            return self.dialect.recall(ids, action)
        made = action.generation
        return [*ids, *(self.dialect.write(action) if made is None else (*made.ids, *action.closing))]
