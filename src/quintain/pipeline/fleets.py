"""A recipe's rollouts on its cluster: what travels to the workers, and what they make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quintain.cluster.fleet import Fleet
from quintain.cluster.mapping import R, T, mapped
from quintain.cluster.placement import Placement
from quintain.cluster.worker import Interface
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.interface.generation import Load, Sampling
from quintain.interface.tensors import need_same_model
from quintain.pipeline.engines import make_engine
from quintain.pipeline.programs import model_player
from quintain.pipeline.workshop import Policy, Workshop
from quintain.recipe import EvalStage, GRPOStage, Recipe, RolloutStage
from quintain.recipe.tables import ClusterSection

AnyPlayed = RolloutStage | EvalStage | GRPOStage


@dataclass(frozen=True)
class Blueprint:
    """What a worker is made of.

    Attributes:
        recipe: of the run.
        home: the recipe's folder, the same on all nodes.
        folder: the run's folder, the same on all nodes.
        accept_drift: go on with models that were trained on another interface.
        stage: what is played.
    """

    recipe: Recipe
    home: Path
    folder: Path
    accept_drift: bool
    stage: AnyPlayed

    def __call__(self) -> RecipeKit:
        """What a worker plays with, made on its node."""
        return RecipeKit(self)


class RecipeKit:
    """Engine, agent and world side of a worker, as the recipe has them."""

    def __init__(self, plan: Blueprint) -> None:
        self._stage = stage = plan.stage
        self._workshop = workshop = Workshop(plan.recipe, plan.home, plan.folder, plan.accept_drift)
        self.interface = interface_of(workshop)
        start = workshop.take_policy(_model_of(stage))
        self._model = trainable(start.model, stage) if stage.kind == "grpo" else start.model
        policy = Policy(self._model, start.tokenizer, start.dialect)
        grammars = policy.grammars() if stage.kind != "grpo" and stage.sampling.grammar else None
        self.engine = make_engine(plan.recipe, policy, grammars)
        self.agent, _ = model_player(workshop, stage, policy, self.engine, sampling_of(stage))

    def harness(self, journal: Journal, seed: int) -> Harness:
        """The world side of a session."""
        return self._workshop.harness(journal, self._stage.faults, seed=seed)

    def weights(self, data: bytes) -> Callable[[], object]:
        """What puts published weights into the engine's model."""
        return lambda: put_weights(self._model, data)


class Published:
    """The trainer's side of the workers' engines: what it changes is sent to all of them.

    Args:
        fleet: the workers.
        model: what is trained.
    """

    def __init__(self, fleet: Fleet, model: Any) -> None:
        self.fleet = fleet
        self.version = 0
        self.mismatch = 0.0
        self._model = model

    async def sleep(self) -> None:
        """Workers free nothing: their memory is not the trainer's."""

    async def update(self, weights: Callable[[], object], *, version: int | None = None) -> int:
        """Changes the model in place and publishes it; returns the new version."""
        await asyncio.to_thread(weights)
        self.version = self.version + 1 if version is None else version
        await self.fleet.publish(await asyncio.to_thread(weights_of, self._model), self.version)
        return self.version

    def load(self) -> Load:
        """How much all engines have to do together."""
        return self.fleet.load()

    def close(self) -> None:
        """Ends the workers."""
        self.fleet.close()


def make_fleet(workshop: Workshop, stage: AnyPlayed) -> Fleet:
    """The workers of the recipe's `[cluster]` for a stage; each has an engine with places for its own episodes.

    Raises:
        InputError: Ray is missing or can't be reached, or the cluster is too small.
    """
    section = workshop.recipe.cluster
    assert section is not None
    recipe = workshop.recipe.model_copy(update={"concurrency": section.episodes_per_worker})
    home, folder = workshop.home.resolve(), workshop.folder.resolve()
    placement = Placement(
        section.workers,
        section.cpus_per_worker,
        section.gpus_per_worker,
        section.episodes_per_worker,
        dict.fromkeys(workshop.worlds, workshop.recipe.concurrency),
        lag=stage.train.ahead if stage.kind == "grpo" else 0,
    )
    return Fleet(Blueprint(recipe, home, folder, workshop.accept_drift, stage), placement, interface_of(workshop))


def on_cluster(section: ClusterSection, work: Callable[[T], R], read: Callable[[], Iterable[T]]) -> Iterator[R]:
    """`work` of each piece that `read` gives, in order, by as many processes as the cluster has workers."""
    return mapped(work, read, Placement(section.workers, section.cpus_per_worker))


def _model_of(stage: AnyPlayed) -> str:
    if stage.kind == "grpo":
        return stage.start
    return stage.agent if stage.kind == "rollout" else stage.model


def sampling_of(stage: AnyPlayed) -> Sampling:
    """How a stage's tokens are drawn; a policy that is trained plays at temperature 1 with nothing cut."""
    return Sampling(max_tokens=stage.max_tokens) if stage.kind == "grpo" else stage.sampling.sampling()


def interface_of(workshop: Workshop) -> Interface:
    """What episodes are made with here; tools are named with their world."""
    specs = [
        spec | {"name": f"{name}.{spec['name']}"}
        for name, one in workshop.worlds.items()
        for spec in one.toolset().specs()
    ]
    return Interface(workshop.digest_table(), specs)


def trainable(model: Any, stage: GRPOStage) -> Any:
    """The model as a stage begins with it: adapters it has are merged, and new ones added where asked for."""
    from quintain.training.lora import add_lora, merge

    whole = merge(model) if hasattr(model, "merge_and_unload") else model
    return add_lora(whole, stage.train.lora_rank, stage.train.seed) if stage.train.lora_rank else whole


def weights_of(model: Any) -> bytes:
    """The weights that training changes, as safetensors."""
    from safetensors.torch import save

    from quintain.training.checkpoint import contiguous, trained_parameters

    return save(contiguous(trained_parameters(model)))


def put_weights(model: Any, data: bytes) -> None:
    """Puts published weights into a worker's model.

    Raises:
        InputError: they are those of another model.
    """
    from safetensors.torch import load

    from quintain.training.checkpoint import trained_parameters

    weights = load(data)
    need_same_model("what the trainer sent", weights, trained_parameters(model), "put the same model on all nodes")
    model.load_state_dict(weights, strict=False)  # what is frozen stays
