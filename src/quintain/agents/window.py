"""What a model agent does when its window fills: begin afresh, or write a summary and go on from it.

Discard-all and summary are two of the strategies that DeepSeek-V3.2 (DeepSeek-AI 2025, arXiv 2512.02556) compares on
search benchmarks. Which of them acts, and when, is the agent's decision; the harness only sees its turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from quintain.agents.context import Step, afresh
from quintain.interface.dialects.base import Dialect
from quintain.interface.errors import ContextFull
from quintain.interface.messages import Action, Message, Observation, message
from quintain.interface.view import View
from quintain.interface.words import has_chinese

ASK = {
    "en": "There is little room left, and all of the above will be gone. Write a summary to go on from: what is asked, "
    "what you have found and where, what you tried in vain, what to do next. Call no tool.",
    "zh": "剩余空间不多，上面的内容即将全部清空。请写一份总结，以便接着做下去：任务是什么，已经找到什么、在哪里找到，"
    "哪些尝试没有用，下一步做什么。不要调用工具。",
}
"""What the user says before a summary."""

SHARES = (1.0, 0.5, 0.25, 0.1, 0.0)
"""How much of each of the last results is read before a summary: the largest share that fits."""

CUT = " [...]"
"""Stands at the end of a result that is not read whole."""


@dataclass(frozen=True, slots=True)
class Window:
    """How much a model reads at once.

    Attributes:
        tokens: what prompt, history and the turn to come may fill.
        when_full: `discard-all` begins the task afresh with what is left of the budget; `summary` lets the model write
            a summary, a turn of its own, and goes on with that in place of all turns.
    """

    tokens: int
    when_full: Literal["discard-all", "summary"]

    def fit(self, dialect: Dialect, view: View, step: Step, turn: int) -> tuple[Step, int, bool]:
        """What is read next, how many tokens may be generated after it, and whether they are a summary.

        A summary takes at most half of what the prompt leaves free. Where there is no room to write one, the task
        begins afresh.

        Args:
            dialect: of the model.
            view: the episode so far.
            step: what would be read if there were no bound.
            turn: most tokens of a turn.

        Raises:
            ContextFull: not even the task alone leaves room for a token.
        """
        if not self._full(dialect, view, step, turn):
            return step, self._room(step, turn), False
        fresh = afresh(dialect, view)
        if self.when_full == "summary" and view.ids and view.remaining.turns > 1:
            most = min(turn, (self.tokens - len(fresh.ids)) // 2)
            asked = self._before_summary(dialect, view, most)
            most = min(most, self.tokens - len(asked.ids))
            if most > 0:
                return asked, most, True
        return fresh, self._room(fresh, turn), False

    def _full(self, dialect: Dialect, view: View, step: Step, turn: int) -> bool:
        """True if there is something to give up, and the next turn may leave no room for what comes after it."""
        if not view.turns or view.turns[-1].action.summary is not None:
            return False
        if view.remaining.turns == 1:  # what is left of the window is enough for the last words
            return len(step.ids) >= self.tokens
        after = 0
        if self.when_full == "summary":
            after = turn + len(dialect.follow([[Observation("", "", CUT)], _request(view)]))
        return len(step.ids) + turn + after > self.tokens

    def _room(self, step: Step, turn: int) -> int:
        left = self.tokens - len(step.ids)
        if left < 1:
            raise ContextFull(
                f"context.tokens: {len(step.ids)} tokens + 1 to generate > {self.tokens}, and nothing is left to give "
                "up; give it more or shorten the prompt"
            )
        return min(turn, left)

    def _before_summary(self, dialect: Dialect, view: View, most: int) -> Step:
        """The segment, what came back last as far as it fits, and the request for a summary."""
        step = Step(view.ids, ())
        for share in SHARES:
            said = view.user_messages.get(len(view.turns)) or _shortened(view, share)
            step = Step(view.ids, tuple(dialect.follow([said, _request(view)])))
            if len(step.ids) + most <= self.tokens:
                break
        return step


def summary_of(action: Action) -> Action:
    """What was written when a summary was asked for, as one: the answer, or whatever else the model wrote."""
    text = next(filter(None, (action.answer, action.thought, action.text)), "")
    thought = action.thought if action.answer else ""
    return replace(action, thought=thought, calls=(), answer=None, error=None, text="", summary=text)


def _request(view: View) -> Message:
    return message("user", ASK["zh" if has_chinese(view.messages[-1].text) else "en"])


def _shortened(view: View, share: float) -> list[Observation]:
    seen = view.turns[-1].observations
    if share == 1:
        return list(seen)
    return [replace(one, content=one.content[: int(len(one.content) * share)] + CUT) for one in seen]
