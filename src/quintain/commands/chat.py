"""A person asks a trained agent and sees what it thinks, calls and observes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from quintain.interface.errors import InputError
from quintain.pipeline.lineage import chosen_model, measured_sampling
from quintain.pipeline.workshop import Workshop
from quintain.serving.conversation import harness_of
from quintain.serving.watched import Watched, end_lines


def chat(run: Path, stage: str | None, world: str | None, temperature: float) -> None:
    """Reads questions from standard input until an empty line or the end.

    Args:
        run: a run's folder.
        stage: the trained stage to ask; None takes the last finished one, `base` the base model.
        world: the world it acts in; None for the only one.
        temperature: of the sampling; 0 is greedy.

    Raises:
        InputError: the folder is no run, the stage is not finished, no world is chosen, or the temperature is negative.
    """
    from quintain.agents.model import ModelAgent
    from quintain.inference.local import LocalEngine

    if not temperature >= 0:  # also what is no number
        raise InputError(f"temperature {temperature:g}: must be at least 0, which is greedy")
    recipe, home, name = chosen_model(run, stage)
    workshop = Workshop(recipe, home, run, accept_drift=True)  # a person sees what comes of it
    place = workshop.one_world("chat", world, "choose with --world NAME")
    policy = workshop.policy(name)
    engine = LocalEngine(policy.model, sessions=1)
    sampling = replace(measured_sampling(run, recipe, name).sampling(), temperature=temperature)
    agent = Watched(ModelAgent(engine, policy.dialect, sampling, name=name), lambda line: print(f"  {line}"))
    sample = workshop.pools.sample(place.name)
    print(f"{name} of {run}, world {place.name}. For example: {sample.prompt} An empty line ends it.")
    harness = harness_of(place)
    try:
        for number, prompt in enumerate(_questions()):
            task = replace(sample, id=f"chat-{number}", prompt=prompt)
            episode = asyncio.run(harness.run(task, agent))
            for line in end_lines(episode):
                print(f"  {line}")
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
