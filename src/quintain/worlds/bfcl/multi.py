"""The world `bfcl-multi-turn`: BFCL v4's 800 multi-turn tasks over eight small stateful APIs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from typing import Any, ClassVar

from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.messages import Action, Call, Message, message
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset
from quintain.interface.view import View
from quintain.worlds.bfcl import apis
from quintain.worlds.bfcl.pool import choose
from quintain.worlds.bfcl.schemas import tools
from quintain.worlds.bfcl.wheel import Entry, digest_of, folder

CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")

_UPDATED = "I have updated some more functions you can choose from. What about now?"
"""What BFCL's user says where functions that were missing come in."""


class MultiTurn(World):
    """Several requests of one user: after each of them the APIs must be in the right state.

    BFCL's rules: where a request has reference calls, the agent has made at least one call since it; every public
    attribute of every API is as the reference calls leave it; and their responses are among those of the agent's
    calls so far. Requests without reference calls (something is missing) are judged by what comes after them. An
    episode ends with its first request that fails, since the verdict can't change any more.

    Each episode has instances of its own in a process of its own: the API classes keep some state in globals.

    Raises:
        InputError: the package `bfcl-eval` is not installed.
    """

    name: ClassVar[str] = "bfcl-multi-turn"
    instructions: ClassVar[str] = (
        "Do what the user asks by calling functions, and answer when it is done. "
        "If a function or a value that is needed is missing, say so."
    )
    tools_per_task: ClassVar[bool] = True
    isolated: ClassVar[bool] = True

    def __init__(self) -> None:
        folder()
        self.apis: apis.Apis = {}
        self.functions: list[dict[str, Any]] = []
        self.responses: list[str] = []
        self.turn = 0
        self.before = 0

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Draws tasks (`pool.choose`); 800 takes them all."""
        return choose(cls.name, CATEGORIES, _task, split, count, seed, languages, templates)

    def data_digest(self) -> str:
        """Digest of the files with tasks, answers and functions, and the version of the classes."""
        tasks = [f"{place}BFCL_v4_{one}.json" for one in CATEGORIES for place in ("", "possible_answer/")]
        documents = [f"multi_turn_func_doc/{one}.json" for one in apis.MODULES.values()]
        data = digest_of(*tasks, *documents)
        return digest({"world": self.name, "data": data, "version": metadata.version("bfcl-eval")})

    def reset(self, task: Task) -> None:
        """Makes the APIs anew, without the functions that come in later."""
        self.task = task
        self.apis = _fresh(task)
        later = [name for names in task.setup["later"].values() for name in names]
        self.functions = [one for one in apis.functions(task.setup["classes"]) if one["name"] not in later]
        self.responses = []
        self.turn = self.before = 0

    def toolset(self) -> Toolset:
        """The functions there are by now."""
        return Toolset(tools(self.functions, self._runner))

    def _runner(self, name: str) -> Callable[..., str]:
        return partial(self._run, name)

    def _run(self, name: str, /, **arguments: Any) -> str:
        """Calls a function and keeps its response, which is also what the agent reads."""
        try:
            response = apis.run(self.apis, (name, arguments))
        except Exception as error:
            self.responses.append(apis.failed(error))
            raise
        self.responses.append(response)
        return response

    def user(self, view: View) -> Message | None:
        """The next request; None after the last one, or once one has failed."""
        requests = self.task.setup["requests"]
        if self._fault(self.task) or self.turn == len(requests):
            return None
        said = requests[self.turn]
        self.turn += 1
        self.before = len(self.responses)
        return message("user", self._bring(self.task.setup["later"].get(str(self.turn), [])) + said)

    def _bring(self, names: Sequence[str]) -> str:
        """Adds functions; says them too, for agents whose tools stand at the start of what they read."""
        new = [one for one in apis.functions(self.task.setup["classes"]) if one["name"] in names]
        self.functions += new
        return "".join(f"{one.signature()} - {one.description}\n" for one in tools(new, self._runner))

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """Each request that was followed by another, which only those are that did not fail."""
        return {f"request {number}": number <= self.turn for number in range(1, len(task.setup["requests"]) + 1)}

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges the state after the last answer."""
        reason = self._fault(task) or self._unfinished(task, episode)
        return Verdict(success=not reason, reasons=(reason,) if reason else ())

    def _unfinished(self, task: Task, episode: Episode) -> str:
        total = len(task.setup["requests"]) + 1
        if self.turn + 1 < total or episode.outcome.kind not in ("answered", "declined"):
            return f"ended in request {self.turn + 1} of {total}"
        return ""

    def _fault(self, task: Task) -> str:
        """What is wrong after the current request; "" if nothing is."""
        expected = _fresh(task)
        for written in task.answer[: self.turn + 1]:
            right = apis.play(expected, apis.steps(written, task.setup["classes"]))
        if not right:
            return ""
        where = f"request {self.turn + 1}"
        if len(self.responses) == self.before:
            return f"{where}: no call"
        differs = apis.difference(self.apis, expected)
        if differs:
            return f"{where}: {differs} is not as it should be"
        lacking = apis.missing(self.responses, right)
        return f"{where}: no call gave {lacking[:200]}" if lacking else ""

    def solution(self, task: Task) -> Solution:
        """The reference calls, a turn for each request."""
        for number, written in enumerate(task.answer):
            steps = enumerate(apis.steps(written, task.setup["classes"]))
            calls = tuple(Call(f"c{number}_{at}", name, arguments) for at, (name, arguments) in steps)
            if calls:
                yield Action(calls=calls)
            yield Action(answer="Done." if calls else "Something that is needed is missing.")


def _fresh(task: Task) -> apis.Apis:
    long_context = task.template == "multi_turn_long_context"
    return apis.made(task.setup["classes"], json.loads(task.setup["scenario"]), long_context)


def _task(entry: Entry) -> Task:
    """A task; its variants in the other categories share its cluster."""
    record = entry.record
    said = [turn[0]["content"] if turn else _UPDATED for turn in record["question"]]
    return Task(
        id=record["id"],
        world=MultiTurn.name,
        prompt=said[0],
        setup={
            "requests": said[1:],
            "classes": record["involved_classes"],
            "scenario": json.dumps(record["initial_config"]),  # holds integers that canonical JSON has none for
            "later": _later(entry),
        },
        answer=entry.answer,
        cluster=f"multi_turn_{record['id'].rpartition('_')[2]}",
        template=entry.category,
        tags=("lang:en",),
    )


def _later(entry: Entry) -> dict[str, list[str]]:
    """Functions by the request they come in with, counted from 0; one that the answer needs before is there at once."""
    found = {}
    for turn, names in entry.record.get("missed_function", {}).items():
        needed = {written.partition("(")[0] for steps in (entry.answer or ())[: int(turn)] for written in steps}
        found[turn] = [name for name in names if name not in needed]
    return found
