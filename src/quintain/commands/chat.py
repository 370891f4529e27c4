"""A person asks a trained agent and sees what it thinks, calls and observes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from quintain.harness.loop import Harness
from quintain.interface.errors import InputError
from quintain.interface.generation import Sampling
from quintain.interface.messages import Action, Observation
from quintain.interface.view import Agent, View
from quintain.pipeline.lineage import trained_stage
from quintain.pipeline.run import read_recipe
from quintain.pipeline.workshop import Workshop


class Shown:
    """An agent whose turns are printed as they happen."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.name = agent.name

    @property
    def version(self) -> int:
        """Version of the agent's policy."""
        return self._agent.version

    async def act(self, view: View) -> Action:
        """Prints what the world answered, then what the agent does."""
        if view.turns:
            show_observations(view.turns[-1].observations)
        action = await self._agent.act(view)
        show_action(action)
        return action

    async def release(self, episode: str) -> None:
        """Frees the agent's caches."""
        await self._agent.release(episode)


def show_action(action: Action) -> None:
    """Prints one action."""
    if action.thought:
        print(f"  thinks    {action.thought}")
    for call in action.calls:
        arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()
        )
        print(f"  calls     {call.tool}({arguments})")
    if action.error is not None:
        print(f"  malformed {action.text!r}")
    if action.answer is not None:
        print(f"  answers   {action.answer}")


def show_observations(observations: tuple[Observation, ...]) -> None:
    """Prints what came back, one indented block each."""
    for one in observations:
        lines = one.content.splitlines() or [""]
        print(f"  observes  {lines[0]}")
        for line in lines[1:]:
            print(f"            {line}")


def chat(run: Path, stage: str | None, temperature: float) -> None:
    """Reads questions from standard input until an empty line or the end.

    Args:
        run: a run's folder.
        stage: the trained stage to ask; None takes the last finished one, `base` the base model.
        temperature: of the sampling; 0 is greedy.

    Raises:
        InputError: the folder is no run, the stage is not finished, or the temperature is negative.
    """
    from quintain.agents.model import ModelAgent
    from quintain.inference.local import LocalEngine

    if not temperature >= 0:  # also what is no number
        raise InputError(f"temperature {temperature:g}: must be at least 0, which is greedy")
    recipe, home, name = (*read_recipe(run), stage) if stage == "base" else trained_stage(run, stage)
    workshop = Workshop(recipe, home, run, accept_drift=True)  # a person sees what comes of it
    policy = workshop.policy(name)
    engine = LocalEngine(policy.model, sessions=1)
    agent = Shown(ModelAgent(engine, policy.dialect, Sampling(temperature=temperature), name=name))
    sample = workshop.pools.sample()
    print(f"{name} of {run}, world {workshop.world_class.name}. For example: {sample.prompt}")
    harness = Harness(workshop.world, budget=recipe.budget.budget(), judge=False)
    try:
        for number, prompt in enumerate(_questions()):
            task = replace(sample, id=f"chat-{number}", prompt=prompt)
            episode = asyncio.run(harness.run(task, agent))
            if episode.outcome.kind not in ("answered", "declined"):
                print(f"  ended     {episode.outcome} {episode.outcome.detail}".rstrip())
    finally:
        engine.close()


def _questions() -> Iterator[str]:
    """Lines a person types; a generator, so that each is answered before the next is read."""
    while sys.stdin is not None:  # it is None where it was closed
        if sys.stdin.isatty():
            print("> ", end="", flush=True)
        line = sys.stdin.readline().strip()
        if not line:
            return
        yield line
