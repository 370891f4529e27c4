"""What a model reads before its next turn.

Token in, token out: a turn appends, and what was generated is not tokenized again. Where the history is rewritten (the
window is full, or a user speaks to a model whose format forgets earlier thoughts) a new segment of the token record
begins with all that the model is to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quintain.interface.dialects.base import Dialect
from quintain.interface.dialects.history import History, Memory
from quintain.interface.view import View

Reason = Literal["", "new_user", "summary", "discard"]


@dataclass(frozen=True, slots=True)
class Step:
    """What a model reads next.

    Attributes:
        before: ids of the segment so far `[B]`.
        context: ids that come new `[C]`.
        reason: why a new segment begins, which `before` is no part of; "" goes on with the segment.
    """

    before: tuple[int, ...]
    context: tuple[int, ...]
    reason: Reason = ""

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids before the generation."""
        return self.context if self.reason else (*self.before, *self.context)


def next_step(dialect: Dialect, view: View) -> Step:
    """The prompt, the last observations, the user's words, or the history written anew."""
    history, turns = history_of(dialect, view), len(view.turns)
    if not view.ids:  # the beginning, or a history without tokens, such as an oracle's
        return Step((), tuple(history.ids(history.memory())))
    if view.turns[-1].action.summary is not None:
        return Step(view.ids, tuple(history.ids(history.memory())), "summary")
    going_on = Step(view.ids, tuple(history.reply(turns)))
    if turns in view.user_messages and dialect.forgets:
        anew = Step(view.ids, tuple(history.ids(history.memory())), "new_user")
        return going_on if anew.ids == going_on.ids else anew
    return going_on


def afresh(dialect: Dialect, view: View) -> Step:
    """The task, and what user and agent said since, without any turn of work."""
    return Step(view.ids, tuple(history_of(dialect, view).opening(Memory(first=len(view.turns)))), "discard")


def history_of(dialect: Dialect, view: View) -> History:
    """The episode so far."""
    return History(dialect, view.messages, view.toolset, view.turns, view.user_messages)
