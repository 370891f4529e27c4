"""Episodes rewound to a step and played on from there through the harness: trying options, taking wrong turns."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from quintain.harness.loop import Harness
from quintain.interface.episode import Episode
from quintain.interface.messages import Action, Observation
from quintain.interface.tasks import Task
from quintain.interface.view import Agent, View
from quintain.synthesis.choices import Alternatives, Choice, Step

StateAt = Callable[[str, int], bytes | None]
"""The world's state after so many turns of an episode (`Journal.state_at`)."""

TRIES = 3
"""Wrong turns tried for each failure wanted: some turn out to do no harm."""


class _Once:
    """Takes one given action at one turn, and leaves all others to another agent."""

    def __init__(self, turn: int, action: Action, otherwise: Agent) -> None:
        self._turn = turn
        self._action = action
        self._otherwise = otherwise
        self.name = otherwise.name
        self.version = otherwise.version

    async def act(self, view: View) -> Action:
        """The given action at its turn."""
        return self._action if len(view.turns) == self._turn else await self._otherwise.act(view)

    async def release(self, episode: str) -> None:
        """Passes it on."""
        await self._otherwise.release(episode)


async def wrong_turns(
    episodes: Sequence[Episode],
    wanted: int,
    harness: Harness,
    tasks: Mapping[str, Task],
    agent: Agent,
    alternatives: Alternatives,
    state_at: StateAt,
    seed: int,
    done: Mapping[str, Episode],
) -> list[Episode]:
    """Successful episodes, rewound, given one alternative action, and played on: real episodes that mostly fail.

    Args:
        episodes: successful ones.
        wanted: failures to stop at; at most `TRIES` times as many are tried.
        harness: plays; its journal keeps what is played.
        tasks: by id.
        agent: plays on after the wrong turn.
        alternatives: where wrong turns come from.
        state_at: snapshots of the episodes.
        seed: of the choice.
        done: what an interrupted run has played before, by id; it is not played again.

    Returns:
        What was played, successes included.
    """
    rng = random.Random(f"{seed}/wrong turns")
    played: list[Episode] = []
    for number in range(TRIES * wanted if episodes else 0):
        if sum(not one.success for one in played) == wanted:
            break
        episode = rng.choice(episodes)
        turn = rng.randrange(len(episode.turns))
        found = _instead(Step(episode, turn), alternatives, rng)
        name = f"w{number}"
        if (before := done.get(f"{episode.id}+{turn}{name}")) is not None:
            played.append(before)
        elif found is not None:
            detour = _Once(turn, _own_ids(found), agent)
            state = state_at(episode.id, turn)
            task = tasks[episode.task_id]
            played.append(await harness.of(task).branch(episode, turn, task, detour, state=state, name=name))
    return played


def _instead(step: Step, alternatives: Alternatives, rng: random.Random) -> Action | None:
    """One alternative. An answer is replaced by an answer only: nothing is left to do after it."""
    for action in alternatives(step, 8, rng):
        if step.action.answer is None or action.answer is not None:
            return action
    return None


async def tried(
    episode: Episode, choices: Sequence[Choice], harness: Callable[[str, int], Harness], task: Task, state_at: StateAt
) -> list[Choice]:
    """The choices with what each option returns: alternatives are executed from the snapshot before their step.

    Args:
        episode: whose choices they are.
        choices: one for each of its turns.
        harness: makes one of a world, by its name, whose episodes end after so many turns.
        task: of the episode.
        state_at: snapshots of the episode.
    """
    found = []
    for index, choice in enumerate(choices):
        state = state_at(_owner(episode, index), index)
        results = await _results(episode, index, choice, harness(episode.world, index + 1), task, state)
        found.append(replace(choice, results=results))
    return found


def _owner(episode: Episode, index: int) -> str:
    """Whose snapshot the state before a step is: a branched episode begins with the turns of its parent."""
    return episode.parent[0] if episode.parent is not None and index <= episode.parent[1] else episode.id


async def _results(
    episode: Episode, index: int, choice: Choice, harness: Harness, task: Task, state: bytes | None
) -> tuple[tuple[Observation, ...], ...]:
    """Observations of every option; only calls have any, and the action taken has its own already."""
    found: list[tuple[Observation, ...]] = []
    for number, option in enumerate(choice.options):
        if number == choice.chosen or not option.calls:
            found.append(())
            continue
        agent = _Once(index, _own_ids(option), _Nobody())
        branch = await harness.branch(episode, index, task, agent, state=state, name=f"t{index}.{number}")
        found.append(branch.turns[index].observations if len(branch.turns) > index else ())
    return tuple(found)


class _Nobody:
    """Is never asked: the budget ends the episode after the one turn."""

    name = "nobody"
    version = 0

    async def act(self, view: View) -> Action:
        """Gives up."""
        return Action(answer="")

    async def release(self, episode: str) -> None:
        """Nothing to forget."""


def _own_ids(action: Action) -> Action:
    """The action with call ids that no turn before it has."""
    calls = tuple(replace(call, id=f"w{number}") for number, call in enumerate(action.calls))
    return replace(action, calls=calls)
