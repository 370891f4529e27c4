"""A stage's agent: the built-in loop around a model, or a program of the user's own around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quintain.agents.gateway.program import Command, Function, Runs
from quintain.agents.model import ModelAgent
from quintain.harness.world import World
from quintain.interface.errors import InputError
from quintain.interface.generation import Engine, Sampling
from quintain.interface.view import Player
from quintain.pipeline.workshop import Policy, Workshop
from quintain.recipe import EvalStage, GRPOStage, ProgramSection, RolloutStage
from quintain.recipe.user_code import load_function

Close = Callable[[], Awaitable[None]]


def model_player(
    workshop: Workshop, stage: RolloutStage | EvalStage | GRPOStage, policy: Policy, engine: Engine, sampling: Sampling
) -> tuple[Player, Close | None]:
    """Who plays a stage with a model's tokens, and what frees its means in the event loop it played in.

    Raises:
        InputError: the program can't be loaded, or the world plays a user, who waits for a reply.
    """
    if stage.program is None:
        grammar = stage.kind != "grpo" and stage.sampling.grammar
        window = stage.context.window() if stage.context is not None else None
        return ModelAgent(engine, policy.dialect, sampling, name=stage.name, grammar=grammar, window=window), None
    from quintain.agents.gateway.agent import GatewayAgent

    talking = [name for name, one in workshop.worlds.items() if one.world_class.user is not World.user]
    if talking:
        raise InputError(f"stage {stage.name!r}: world {talking[0]!r} plays a user; a program is given its task once")
    program = _program(workshop, workshop.recipe.programs[stage.program])
    agent = GatewayAgent(engine, policy.dialect, sampling, program, name=stage.name)
    return agent, agent.close


def _program(workshop: Workshop, section: ProgramSection) -> Runs:
    if section.function is not None:
        return Function(load_function(section.function, workshop.home))
    return Command(section.command, workshop.home)
