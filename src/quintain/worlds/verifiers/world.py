"""The world `verifiers`: an installed environment of that package, played by any agent, judged by its rubric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from quintain.harness.world import Solution, World
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InfraError, InputError
from quintain.interface.messages import Action, Message, message
from quintain.interface.tasks import Task
from quintain.interface.tools import Tool, Toolset
from quintain.interface.view import View
from quintain.worlds.bridges.schemas import parameters
from quintain.worlds.bridges.world import ToolFailed
from quintain.worlds.verifiers.environments import WORLD, data_digest, load, no_model, tasks

_WORDINGS = ("{}", r"\boxed{{{}}}", "<answer>{}</answer>", "<think>\n\n</think>\n{}")
"""In which a reference answer may have to stand for an environment's parser to read it."""


class Verifiers(World):
    r"""The tasks, tools and rubric of one environment.

    An episode takes the steps of the package's own rollout (`init_state`, `setup_state`, stop conditions,
    `env_response`, `rubric.score_rollout`), with an agent of Quintain in the model's place. Success is a reward of at
    least the environment's `pass_threshold`, and the score is the reward, cut to \[0, 1].

    Every call is a step of its own there, also where a turn has several.

    Args:
        env: name of the environment, as `vf.load_environment` takes it.
        args: what it is made with.

    Raises:
        InputError: it can't be loaded or played.
    """

    name: ClassVar[str] = WORLD
    snapshots: ClassVar[Literal["exact", "replay", "none"]] = "replay"

    def __init__(self, env: str = "", args: Mapping[str, Any] | None = None) -> None:
        if not env:
            raise InputError("the world verifiers needs options = { env = 'NAME' }: an installed environment")
        self._environment = type(self).resources(env=env, args=dict(args or {}))
        self.instructions = self._environment.system_prompt or ""  # type: ignore[misc]  # one class for all environments
        self._answers = 0

    @classmethod
    def shared(cls, **options: Any) -> Any:
        """The environment, which serves all episodes of a process: what belongs to one is in its state."""
        return load(options["env"], options["args"])

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Draws rows of the environment's `dataset` (`train`) or `eval_dataset` (`eval`).

        Raises:
            InputError: there are fewer, a row can't be a task, or `templates` is given.
        """
        if templates:
            raise InputError("the world verifiers has no templates; leave them out")
        return tasks(cls(**options)._environment, split, count, seed)

    def data_digest(self) -> str:
        """Digest of the package's version and the environment with its arguments."""
        return data_digest(self._environment)

    def toolset(self) -> Toolset:
        """The environment's tools."""
        return Toolset(
            Tool(one.name, one.description, parameters(one.parameters, where=f"tool {one.name!r}")).bind(
                partial(self._call, one.name)
            )
            for one in self._environment.tool_defs or ()
        )

    async def reset(self, task: Task) -> None:
        """Makes the episode's state.

        Raises:
            InfraError: the environment's own set-up fails.
        """
        from verifiers.errors import Error

        made = await self._environment.init_state(task.setup["row"], no_model(), "quintain")
        try:
            self._state = await self._environment.setup_state(made) or made
        except Error as error:
            raise InfraError(f"{self._environment.env_id}: {type(error).__name__}: {error}") from error
        self._messages = list(self._state["prompt"])
        self._answers = 0

    async def _call(self, name: str, /, **arguments: Any) -> str:
        """One call as a step of the rollout; returns what the environment says to it."""
        from verifiers.types import ToolCall

        made = ToolCall(id=f"call_{len(self._state['trajectory'])}", name=name, arguments=json.dumps(arguments))
        if await self._step(None, [made]):
            raise ToolFailed(f"the environment has ended the episode ({self._state['stop_condition']})")
        return await self._heard()

    async def user(self, view: View) -> Message | None:
        """What the environment says to an answer; None where one of its stop conditions holds.

        Raises:
            InfraError: this instance was made again after an earlier answer, which can't be played again.
        """
        self._answers += 1
        self._complete(view.turns)
        action = view.turns[-1].action
        if await self._step(action.answer, None, action.thought):
            return None
        said = await self._heard()
        ended = await self._environment.is_completed(self._state)
        return None if ended else message("user", said)

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        """The rubric's reward of the rollout."""
        self._complete(episode.turns)
        rubric = self._environment.rubric
        await self._environment.cleanup(self._state)
        await rubric.score_rollout(self._state)
        await rubric.cleanup(self._state)
        reward, metrics = self._state["reward"], self._state["metrics"]
        reasons = tuple(f"{name} {value:g}" for name, value in metrics.items())
        return Verdict(reward >= self._environment.pass_threshold, min(1.0, max(0.0, reward)), reasons)

    def solution(self, task: Task) -> Solution:
        """The row's answer, worded as the environment's parser reads it.

        Raises:
            NotImplementedError: there is none, or the parser reads it in none of the usual wordings.
        """
        parser = self._environment.parser
        wordings = [one.format(task.answer) for one in _WORDINGS]
        read = [one for one in wordings if parser.parse_answer([{"role": "assistant", "content": one}]) == task.answer]
        if task.answer is None or not read:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        yield Action(answer=read[0])

    async def _step(self, content: str | None, calls: list[Any] | None, thought: str = "") -> bool:
        """Adds what the agent did as the model's response; true where the environment ends the rollout after it."""
        from verifiers.types import Response, ResponseMessage

        if self._state["is_completed"]:
            return True
        said = ResponseMessage(
            content=content,
            reasoning_content=thought or None,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            is_truncated=False,
        )
        response = Response(id="", created=0, model="quintain", message=said)
        await self._environment.add_model_response(self._state, self._messages, response)
        ended: bool = await self._environment.is_completed(self._state)
        return ended

    async def _heard(self) -> str:
        """The text of the messages with which the environment answers the last step."""
        from verifiers.errors import Error
        from verifiers.errors import InfraError as TheirInfraError
        from verifiers.utils.message_utils import maybe_normalize_messages

        known = len(self._messages) + 1  # with the step's own message
        try:
            found = await self._environment.get_prompt_messages(self._state)
        except TheirInfraError as error:
            raise InfraError(f"{self._environment.env_id}: {type(error).__name__}: {error}") from error
        except Error as error:  # the rollout is over, and its rubric sees why
            self._state["error"] = error
            await self._environment.is_completed(self._state)
            raise ToolFailed(f"{type(error).__name__}: {error or error.__cause__}") from error
        self._messages = maybe_normalize_messages(found, field_name="env_response")
        return "\n".join(_text(one.content) for one in self._messages[known:])

    def _complete(self, turns: Sequence[Any]) -> None:
        if sum(turn.action.answer is not None for turn in turns) != self._answers:
            raise InfraError(f"{self._environment.env_id}: what the environment said to an answer can't be replayed")


def _text(content: Any) -> str:
    """The text of a message.

    Raises:
        InputError: a part is no text.
    """
    return message("user", content if isinstance(content, str) else [dict(one) for one in content or ()]).text
