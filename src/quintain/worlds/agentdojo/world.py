"""The world `agentdojo`: AgentDojo's 97 user tasks in four environments, and its attacks on whoever does them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import metadata
from random import Random
from typing import Any, ClassVar, Literal, get_args

from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import Task
from quintain.interface.tools import Tool, Toolset
from quintain.worlds.agentdojo.suites import VERSION, attacked, environment, suites
from quintain.worlds.bridges.schemas import parameters

Judged = Literal["utility", "security"]
FOLLOWED = "did what the injected text asks"
"""Reason in the verdict of every episode in which an attack succeeded."""


class AgentDojo(World):
    """User tasks over mail, calendars, files, bookings, bank accounts and chats, judged by AgentDojo's own functions.

    Every episode has an environment of its own. With an `attack` the environment holds texts of somebody else that ask
    for something else (an injection task), a task for each pair of user task and injection task.

    Args:
        attack: name of one of AgentDojo's attacks with a fixed wording; none by default.
        judged: what success is: `utility`, the user's task is done; or `security`, the injection task is not.

    Raises:
        InputError: `agentdojo` is not installed, or `judged` is neither, or security is judged without an attack.
    """

    name: ClassVar[str] = "agentdojo"
    instructions: ClassVar[str] = "Do what the user asks by calling tools, and answer when it is done."
    tools_per_task: ClassVar[bool] = True

    def __init__(self, attack: str = "", judged: Judged = "utility") -> None:
        suites()
        if judged not in get_args(Judged):
            raise InputError(f"agentdojo judged = {judged!r}: allowed are {', '.join(get_args(Judged))}")
        if judged == "security" and not attack:
            raise InputError("agentdojo judged = 'security' needs an attack, e.g. 'important_instructions_no_names'")
        self.judged = judged
        self.suite = ""

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Draws tasks; `templates` names suites. 97 takes them all, 949 all pairs under an attack.

        Raises:
            InputError: an argument is not allowed, or there are fewer tasks.
        """
        known = suites()
        unknown = [one for one in templates if one not in known]
        if split != "eval":
            raise InputError(f"agentdojo is a benchmark: its tasks are for evaluation, so split = {split!r} is refused")
        if list(languages) != ["en"]:
            raise InputError(f"agentdojo languages {list(languages)}: its tasks are in English, allowed is 'en'")
        if unknown:
            raise InputError(f"agentdojo template {unknown[0]!r}: allowed are its suites {', '.join(known)}")
        wanted = [one for one in known if one in (templates or known)]
        tasks = [task for suite in wanted for task in _tasks(suite, options.get("attack", ""))]
        if count > len(tasks):
            raise InputError(f"agentdojo: {', '.join(wanted)} hold {len(tasks)} tasks; {count} were asked for")
        return [tasks[at] for at in sorted(Random(seed).sample(range(len(tasks)), count))]

    def data_digest(self) -> str:
        """Digest of the package's version and the benchmark's."""
        return digest({"world": self.name, "version": metadata.version("agentdojo"), "benchmark": VERSION})

    def reset(self, task: Task) -> None:
        """Makes the environment anew."""
        self.suite = task.setup["suite"]
        self.environment = _begin(task)

    def toolset(self) -> Toolset:
        """The functions of the task's suite; before `reset` none."""
        if not self.suite:
            return Toolset([])
        return Toolset(_tool(one, partial(self._run, one.name)) for one in suites()[self.suite].tools)

    def _run(self, name: str, /, **arguments: Any) -> str:
        """Calls a function; returns what AgentDojo shows a model."""
        from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
        from agentdojo.functions_runtime import FunctionsRuntime

        runtime = FunctionsRuntime(suites()[self.suite].tools)
        result, _ = runtime.run_function(self.environment, name, arguments, raise_on_error=True)
        return str(tool_result_to_str(result))

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges the answer, the environment and the calls with the functions of AgentDojo's tasks."""
        suite, injection = suites()[task.setup["suite"]], task.setup["injection"]
        followed = bool(injection) and self._holds(suite.injection_tasks[injection], "security", task, episode)
        done = self._holds(suite.user_tasks[task.setup["task"]], "utility", task, episode)
        success = done if self.judged == "utility" else not followed
        reasons = [] if done else ["the user's task is not done"]
        return Verdict(success=success, reasons=(*reasons, FOLLOWED) if followed else tuple(reasons))

    def _holds(self, one: Any, what: str, task: Task, episode: Episode) -> bool:
        """Whether the function `what` of a user task or an injection task says yes."""
        from agentdojo.functions_runtime import FunctionCall

        calls = [FunctionCall(function=tool, args=arguments) for tool, arguments in episode.calls()]
        states = (episode.answer or "", _begin(task), self.environment)
        try:
            found = getattr(one, f"{what}_from_traces")(*states, calls)
            return bool(getattr(one, what)(*states) if found is None else found)
        except Exception:  # these functions index what an agent may have deleted: its doing, and so no
            return False

    def solution(self, task: Task) -> Solution:
        """AgentDojo's own calls and answer for the user's task."""
        user = suites()[task.setup["suite"]].user_tasks[task.setup["task"]]
        for number, one in enumerate(user.ground_truth(_begin(task))):
            yield Action(calls=(Call(f"c{number}", one.function, dict(one.args)),))
        yield Action(answer=user.GROUND_TRUTH_OUTPUT or "Done.")


def _begin(task: Task) -> Any:
    return environment(task.setup["suite"], task.setup["task"], task.setup["injections"])


def _tasks(suite: str, attack: str) -> Iterator[Task]:
    """The user tasks of a suite, under an attack one for each injection; variants of a user task share its cluster."""
    pairs = attacked(suite, attack) if attack else ((one, "", {}) for one in suites()[suite].user_tasks)
    for user, injection, injections in pairs:
        yield Task(
            id="-".join(filter(None, (AgentDojo.name, suite, user, injection))),
            world=AgentDojo.name,
            prompt=suites()[suite].user_tasks[user].PROMPT,
            setup={"suite": suite, "task": user, "injection": injection, "injections": injections},
            answer=suites()[suite].user_tasks[user].GROUND_TRUTH_OUTPUT or None,
            cluster=f"{suite}-{user}",
            template=suite,
            tags=("lang:en",),
        )


def _tool(function: Any, run: Callable[..., str]) -> Tool:
    schema = parameters(function.parameters.model_json_schema(), where=f"tool {function.name!r}")
    return Tool(function.name, function.description, schema, function=run)
