"""The rescuer: goes on from anywhere in an episode towards the reference solution, through whatever trouble there is.

It follows the world's reference solution call by call, but never writes what nobody has read: a call that failed is
tried again while that may help, passed over if all that the next step needs stands in the texts so far, and otherwise
the task is declined with the reason. So nothing a student learns from it rests on knowledge a student can't have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.failures import RETRIES, failed, may_pass
from quintain.interface.faults import REFUSALS
from quintain.interface.messages import DECLINE_PREFIXES, Action, Call, Observation
from quintain.interface.tasks import Task
from quintain.interface.view import View
from quintain.synthesis.analysis import Language, Remedy, analysis, declined

Steps = Generator[Action, tuple[Observation, ...], None]

_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")
"""A word or a number, thousands and decimals included."""

_LETTER = "[0-9a-z\u00df-\u024f]"
"""A digit or a small letter of the Latin script."""


class Rescuer:
    """A teacher that knows the reference solution. Keeps nothing between turns, as the oracle.

    Args:
        solution: makes the reference solution of a task (`World.solution`).
        tasks: every task it may meet, by id.
        first: what to do in turn `at`, before anything else: a repaired call, or what a person wrote.
        at: number of turns it takes over after.
    """

    name = "rescuer"
    version = 0

    def __init__(
        self, solution: Callable[[Task], Steps], tasks: Mapping[str, Task], first: Action | None = None, at: int = 0
    ) -> None:
        self._solution = solution
        self._tasks = tasks
        self._first = first
        self._at = at

    async def act(self, view: View) -> Action:
        """The next action: of the solution, or a remedy for what just failed.

        Raises:
            InputError: the task is unknown, or its solution ends without an answer.
        """
        if self._first is not None and len(view.turns) == self._at:
            return _numbered(self._first, view)
        if view.task_id not in self._tasks:
            raise InputError(f"rescuer: no task {view.task_id!r} among the {len(self._tasks)} it was given")
        task = self._tasks[view.task_id]
        language: Language = "zh" if "lang:zh" in task.tags else "en"
        return _numbered(_Rescue(view, language).next(self._solution(task)), view)

    async def release(self, episode: str) -> None:
        """Nothing to forget."""


class _Rescue:
    """One decision."""

    def __init__(self, view: View, language: Language) -> None:
        self._language = language
        self._heard = _heard(view)
        self._trouble = [one for turn in view.turns[-1:] for one in turn.observations if failed(one)]
        texts = [one.text for one in view.messages]
        # what a refusal says is no knowledge, though a solution may take it for a result
        texts += [one.content for turn in view.turns for one in turn.observations if one.fault not in REFUSALS]
        self._read = "\n".join(texts).casefold()

    def next(self, steps: Steps) -> Action:
        """The first action of the solution that is not done yet, or a remedy for one that failed."""
        action = _step(steps)
        while action is not None and action.answer is None:
            missing = [call for call in action.calls if _key(call) not in self._heard]
            if missing:
                return replace(action, thought=self._thought(action), calls=tuple(missing))
            lost = [call for call in action.calls if failed(self._heard[_key(call)][-1])]
            answers = tuple(replace(self._heard[_key(call)][-1], call_id=call.id) for call in action.calls)
            following = _step(steps, answers)
            if lost and (self._kept_out(lost) or not self._supported(following)):
                return self._remedy(lost)
            action = following
        if action is None:
            raise InputError("rescuer: the reference solution ends without an answer")
        return replace(action, thought=self._thought(action))

    def _kept_out(self, lost: Sequence[Call]) -> bool:
        """True if a call was not run at all, and may be if it is made again."""
        return any(self._heard[_key(call)][-1].fault in REFUSALS for call in self._again(lost))

    def _again(self, lost: Sequence[Call]) -> list[Call]:
        """Those of the failed calls that are worth another try."""
        return [call for call in lost if _worth_another(self._heard[_key(call)])]

    def _remedy(self, lost: Sequence[Call]) -> Action:
        trouble = self._heard[_key(lost[0])][-1]
        again = self._again(lost)
        if again:
            tries = self._heard[_key(again[0])]
            remedy: Remedy = "last_retry" if len(_failures(tries)) == RETRIES else "retry"
            return Action(thought=analysis(tries[-1], remedy, self._language), calls=tuple(again))
        thought = analysis(trouble, "decline", self._language)
        return Action(thought=thought, answer=declined(trouble, self._language))

    def _thought(self, action: Action) -> str:
        """What precedes the solution's own action: after trouble, what is made of it."""
        if not self._trouble:
            return action.thought
        trouble = self._trouble[0]
        remedy = _passed_over(trouble, action)
        if remedy is None:
            return action.thought
        return analysis(trouble, remedy, self._language, action.calls[0].tool if action.calls else "")

    def _supported(self, action: Action | None) -> bool:
        """True if every word and number the action writes has been read."""
        if action is None or (action.answer or "").lstrip().startswith(DECLINE_PREFIXES):
            return False
        texts = [action.answer or "", *(text for call in action.calls for text in _texts(call.arguments))]
        return all(_stands(word, self._read) for text in texts for word in _WORD.findall(text.casefold()))


def _passed_over(trouble: Observation, action: Action) -> Remedy | None:
    """What is done about trouble that needs no second try; None where what is needed stands in the damaged result."""
    if trouble.fault not in (*REFUSALS, "", "empty_result", "wrong_type"):
        return None
    if action.answer is not None:
        return "enough"
    if trouble.fault:
        return "without" if trouble.fault in REFUSALS else "useless"
    if trouble.error == "format":
        return "rewrite"
    return "differently" if action.calls[0].tool == trouble.tool else "correct"


def _heard(view: View) -> dict[str, list[Observation]]:
    """What came back from every call so far, in order."""
    heard: dict[str, list[Observation]] = {}
    for turn in view.turns:
        for call, observation in zip(turn.action.calls, turn.observations, strict=False):
            heard.setdefault(_key(call), []).append(observation)
    return heard


def _worth_another(tries: Sequence[Observation]) -> bool:
    failures = _failures(tries)
    return may_pass(failures[0]) and len(failures) <= RETRIES


def _failures(tries: Sequence[Observation]) -> list[Observation]:
    """Those since the call last went through, the newest first."""
    return list(takewhile(failed, reversed(tries)))


def _key(call: Call) -> str:
    return json.dumps([call.tool, call.arguments], sort_keys=True)


def _step(steps: Steps, answers: tuple[Observation, ...] | None = None) -> Action | None:
    """The solution's next action; None if it ends, or can't make anything of these observations."""
    try:
        return next(steps) if answers is None else steps.send(answers)
    except Exception:
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
    else:
        yield str(value)


def _stands(word: str, text: str) -> bool:
    """True if the word stands in the text on its own, not inside of another; Chinese has no such borders."""
    if not re.fullmatch(f"{_LETTER}.*", word):
        return word in text
    return re.search(rf"(?<!{_LETTER})(?<!\d[.,]){re.escape(word)}(?!{_LETTER}|[.,]\d)", text) is not None


def _numbered(action: Action, view: View) -> Action:
    """The action with call ids of its own turn."""
    calls = tuple(replace(call, id=f"{len(view.turns)}.{number}") for number, call in enumerate(action.calls))
    return replace(action, calls=calls)
