"""The oracle: follows each task's reference solution. It knows the tasks, so it measures worlds, not agents."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Observation
from quintain.interface.tasks import Task
from quintain.interface.view import View


class OracleAgent:
    """Acts as the world's reference solution says.

    It keeps nothing between turns: the solution is run again from the start and fed the observations so
    far, so resumed and branched episodes go on where they stand.

    Args:
        solution: makes the reference solution of a task (`World.solution`).
        tasks: every task it may meet, by id.
    """

    name = "oracle"
    version = 0

    def __init__(
        self,
        solution: Callable[[Task], Generator[Action, tuple[Observation, ...], None]],
        tasks: Mapping[str, Task],
    ) -> None:
        self._solution = solution
        self._tasks = tasks

    async def act(self, view: View) -> Action:
        """The solution's next action.

        Raises:
            InputError: the task is unknown, or its solution ends without an answer.
        """
        if view.task_id not in self._tasks:
            raise InputError(f"oracle: no task {view.task_id!r} among the {len(self._tasks)} it was given")
        steps = self._solution(self._tasks[view.task_id])
        try:
            action = next(steps)
            for turn in view.turns:
                action = steps.send(turn.observations)
        except StopIteration:
            raise InputError(f"oracle: the solution of {view.task_id!r} ends after {len(view.turns)} turns") from None
        return action

    async def release(self, episode: str) -> None:
        """Nothing to forget."""
