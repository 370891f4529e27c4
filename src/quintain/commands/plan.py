"""What a recipe asks for before it runs: tokens, steps, memory and hours of every stage, from stated formulas.

docs/planning.md has the formulas. All figures are upper bounds: full contexts, full budgets, no stage that ends early.
What no formula says, who waits for whom when tools are slow, is simulated for `grpo`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from quintain.commands.forecast import Advice, advise
from quintain.commands.forecast import lines as advice_lines
from quintain.commands.shape import (
    FLOAT32,
    forward_flops,
    kv_bytes,
    most_tokens,
    parameters,
    shape_of,
    training_bytes,
    training_flops,
)
from quintain.commands.simulation import Latency, Shop
from quintain.recipe import CPTStage, EvalStage, GRPOStage, HASStage, Recipe, RolloutStage, SFTStage
from quintain.recipe.tables import ShapeSection

GIB = 2**30
PER_QUESTION = 2
"""Samples a question gives at most: a plan and a reasoning."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage; what can't be said before it runs is None.

    Attributes:
        name: of the stage.
        kind: of the stage.
        tokens: learnt from, written or read, by kind.
        steps: optimiser steps.
        gib: memory of one accelerator.
        hours: on all accelerators.
        note: what the figures rest on, or what stands against them.
        most_tokens: of a microbatch, and so of a document, that one accelerator has room for.
    """

    name: str
    kind: str
    tokens: int | None = None
    steps: int | None = None
    gib: float | None = None
    hours: float | None = None
    note: str = ""
    most_tokens: int | None = None


def plan(recipe: Recipe) -> dict[str, Any]:
    """Every stage of a recipe with its figures, and lines for a person.

    Raises:
        InputError: the model's dimensions are not known here and not given.
    """
    shape = recipe.plan.shape or shape_of(recipe.model.base)
    planner = _Planner(recipe, shape)
    stages = [planner.stage(stage) for stage in recipe.stages]
    total, active = parameters(shape), parameters(shape, active=True)
    learning = [one for one in recipe.stages if isinstance(one, GRPOStage)]
    hours = sum(one.hours or 0.0 for one in stages)
    price = recipe.plan.price and recipe.plan.price * hours * recipe.plan.accelerators
    return {
        "parameters": total,
        "active_parameters": active,
        "stages": [asdict(one) for one in stages],
        "hours": hours,
        "price": price,
        "simulated": {one.name: asdict(planner.advice(one)) for one in learning},
        "lines": [
            _headline(recipe, total, active),
            *_table(stages, price),
            *(line for one in learning for line in planner.said(one)),
            *_warnings(recipe, stages),
        ],
    }


class _Planner:
    """The formulas with the recipe's numbers."""

    def __init__(self, recipe: Recipe, shape: ShapeSection) -> None:
        self.recipe = recipe
        self.shape = shape
        self.machine = recipe.plan
        self._advice: dict[str, Advice] = {}
        budgets = [one.budget or recipe.budget for one in recipe.worlds.values()] or [recipe.budget]
        most = max(one.tokens for one in budgets)
        self.generated = min(self.machine.generated_tokens or most, self.machine.episode_tokens)
        self.turns = max(one.turns for one in budgets)

    def stage(self, stage: Any) -> StagePlan:
        kinds: dict[str, Callable[[Any], StagePlan]] = {
            "fas": self.fas,
            "has": self.has,
            "cpt": self.cpt,
            "rollout": self.played,
            "eval": self.played,
            "sft": self.sft,
            "grpo": self.grpo,
        }
        made = kinds.get(stage.kind, lambda one: StagePlan(one.name, one.kind))(stage)
        if made.gib is None or not hasattr(stage, "train"):
            return made
        taken = made.gib * GIB - self._training_bytes(stage, stage.train.microbatch_tokens)
        room = self.machine.gib * GIB - taken
        return replace(made, most_tokens=most_tokens(self.shape, room, self._trainers(stage), **_memory(stage)))

    def fas(self, stage: Any) -> StagePlan:
        samples = stage.make.memories * len(stage.make.styles) * PER_QUESTION
        note = f"at most {samples:,} samples; `quintain synth --preview` has their price"
        return StagePlan(stage.name, stage.kind, note=note)

    def has(self, stage: HASStage) -> StagePlan:
        texts = self._episodes(stage.data) * (2 if stage.detours else 1)
        each = self.machine.episode_tokens + (stage.alternatives + 1) * self.generated
        return StagePlan(stage.name, stage.kind, tokens=texts * each, note=f"at most {texts:,} decisions")

    def cpt(self, stage: CPTStage) -> StagePlan:
        config = stage.train
        own = sum(stage.tokens.values())
        tokens = round(own / (1 - stage.replay_share)) if stage.replay else own
        unknown = "sources without a target come on top" if stage.tokens else "no targets: every source is read once"
        made = self._training(stage, tokens, config.context)
        steps = math.ceil(tokens / config.batch_tokens) or None
        return StagePlan(stage.name, stage.kind, tokens, steps, *made, note=f"{unknown}{self._too_few(stage)}")

    def _too_few(self, stage: CPTStage) -> str:
        """What is said where the decisions of its data are fewer than its target, whatever their number of passes."""
        sources = [one for one in self.recipe.stages if isinstance(one, HASStage) and one.name in stage.data]
        asked, passes = stage.tokens.get("has", 0), stage.train.most_epochs
        most = sum(self.has(one).tokens or 0 for one in sources) * passes
        if not sources or most >= asked:
            return ""
        short = f"{most / 1e9:,.1f}B tokens in {passes} passes < {asked / 1e9:,.1f}B"
        return f"; has: {short}: more episodes, or a lower target"

    def sft(self, stage: SFTStage) -> StagePlan:
        config = stage.train
        episodes = self._episodes(stage.data)
        tokens = episodes * self.machine.episode_tokens * config.epochs
        steps = max(1, round(episodes / config.batch_trajectories)) * config.epochs
        made = self._training(stage, tokens, self.machine.episode_tokens)
        return StagePlan(stage.name, stage.kind, tokens, steps, *made, note=f"{episodes:,} episodes")

    def grpo(self, stage: GRPOStage) -> StagePlan:
        config = stage.train
        episodes = config.steps * config.groups * config.group_size
        tokens = episodes * self.machine.episode_tokens
        gib, hours = self._training(stage, tokens, self.machine.episode_tokens)
        held = parameters(self.shape) if config.kl and not config.lora_rank else 0
        caches = 0 if self.machine.rollout_accelerators else self._batch() * self._cache()
        gib += (FLOAT32 * held / self._trainers(stage) + caches) / GIB
        played = config.steps * self.advice(stage).now.step_seconds / 3600
        note = f"{episodes:,} episodes; {hours:.1f} h training, with the tools' time as simulated"
        return StagePlan(stage.name, stage.kind, tokens, config.steps, gib, self._bounded(stage, played), note)

    def shop(self, stage: GRPOStage) -> Shop:
        """A GRPO stage as the simulation takes it: every turn reads and writes its share of the episode."""
        config, machine = stage.train, self.machine
        episodes = config.groups * config.group_size
        turns = self.turns
        context = machine.episode_tokens
        read = (context - self.generated) / turns * forward_flops(self.shape, context) / self._speed(1)
        return Shop(
            engines=machine.rollout_accelerators or machine.accelerators,
            shared=not machine.rollout_accelerators,
            concurrency=self.recipe.concurrency,
            episodes=episodes,
            turns=turns,
            tokens=math.ceil(self.generated / turns),
            prefill=read,
            decoding=cache(self._decoding),
            latency=self._latency(),
            training=self._work(config, episodes * context, context) / self._speed(self._trainers(stage)),
            ahead=config.ahead,
        )

    def advice(self, stage: GRPOStage) -> Advice:
        """A GRPO stage simulated as it is, and with other settings."""
        if stage.name not in self._advice:
            shop = self.shop(stage)
            self._advice[stage.name] = advise(shop, self._places(shop.engines), stage.train.group_size)
        return self._advice[stage.name]

    def said(self, stage: GRPOStage) -> list[str]:
        """The advice for a person."""
        lines = advice_lines(stage.name, self._latency(), self.advice(stage), stage.train.group_size)
        players, wanted = self.machine.rollout_accelerators, self.recipe.concurrency
        if players and wanted > (most := self._places(players)):
            why = f"concurrency {wanted:,} > {most:,} episodes whose caches have room on {players:,} accelerators"
            lines.append(f"warning: {stage.name}: {why}; lower it, or let more of them play")
        return lines

    def played(self, stage: RolloutStage | EvalStage) -> StagePlan:
        episodes = self._tasks(stage.pool) * stage.samples
        tokens = episodes * self.generated
        if getattr(stage, "agent", "") == "oracle":
            return StagePlan(stage.name, stage.kind, note=f"{episodes:,} episodes by the oracle")
        gib = (FLOAT32 * parameters(self.shape) + self._batch() * self._cache()) / GIB
        hours = self._playing_hours(episodes) + self._tool_hours(episodes)
        return StagePlan(stage.name, stage.kind, tokens, None, gib, hours, f"{episodes:,} episodes")

    def _training(self, stage: Any, tokens: int, context: int) -> tuple[float, float]:
        """GiB of one accelerator, and hours."""
        hours = self._work(stage.train, tokens, context) / self._speed(self._trainers(stage)) / 3600
        return self._training_bytes(stage, stage.train.microbatch_tokens) / GIB, self._bounded(stage, hours)

    def _training_bytes(self, stage: Any, tokens: int) -> float:
        """Bytes of one accelerator: its share of the states, and the activations of a microbatch."""
        size = training_bytes(self.shape, tokens, **_memory(stage))
        return size["states"] / self._trainers(stage) + size["activations"]

    def _trainers(self, stage: Any) -> int:
        """Accelerators that share a stage's training: those that only play have no part in it."""
        players = self.machine.rollout_accelerators if isinstance(stage, GRPOStage) else 0
        return self.machine.accelerators - players

    def _places(self, engines: int) -> int:
        """Episodes whose caches have room beside the weights."""
        room = self.machine.gib * GIB - FLOAT32 * parameters(self.shape)
        return max(0, math.floor(room / self._cache())) * engines

    def _work(self, config: Any, tokens: int, context: int) -> float:
        """Operations to learn from so many tokens."""
        lora, again = bool(config.lora_rank), config.recompute
        return tokens * training_flops(self.shape, context, lora=lora, recompute=again)

    def _playing_hours(self, episodes: int) -> float:
        steps = episodes * self.generated / (self._batch() * self.machine.accelerators)
        prefill = episodes * self.machine.episode_tokens * forward_flops(self.shape, self.machine.episode_tokens)
        return (steps * self._decoding(self._batch()) + prefill / self._speed()) / 3600

    def _tool_hours(self, episodes: int) -> float:
        """As if engines stood still meanwhile: every place takes its turns one after the other."""
        rounds = math.ceil(episodes / self.recipe.concurrency)
        return rounds * self.turns * self._latency().mean / 3600

    def _latency(self) -> Latency:
        return Latency(self.machine.tool_seconds, self.machine.tool_p99)

    def _decoding(self, sequences: int) -> float:
        """Seconds of a decoding step: it reads the weights and all caches once, and computes a token for each."""
        read = FLOAT32 * parameters(self.shape) + sequences * self._cache()
        computed = sequences * forward_flops(self.shape, self.machine.episode_tokens)
        return max(read / (self.machine.bandwidth * 1e12), computed / self._speed(1))

    def _speed(self, accelerators: int | None = None) -> float:
        """Operations a second of so many accelerators, by default of all."""
        return (accelerators or self.machine.accelerators) * self.machine.tflops * 1e12 * self.machine.utilisation

    def _batch(self) -> int:
        """Episodes one accelerator decodes at once."""
        return max(1, self.recipe.concurrency // self.machine.accelerators)

    def _cache(self) -> int:
        return kv_bytes(self.shape) * self.machine.episode_tokens

    def _bounded(self, stage: Any, hours: float) -> float:
        seconds = stage.train.seconds
        return min(hours, seconds / 3600) if seconds else hours

    def _tasks(self, name: str) -> int:
        return self.recipe.pools[name].count

    def _episodes(self, names: list[str]) -> int:
        """Episodes of rollout stages, also by way of stages that choose among them."""
        stages: dict[str, Any] = {stage.name: stage for stage in self.recipe.stages}
        found = [stages[name] for name in names]
        own: list[int] = [self._tasks(one.pool) * one.samples for one in found if one.kind == "rollout"]
        return sum(own) + sum(self._episodes(one.data) for one in found if one.kind != "rollout")


def _memory(stage: Any) -> dict[str, Any]:
    """The settings of a training stage that decide its memory."""
    config = stage.train
    return {"lora_rank": config.lora_rank, "recompute": config.recompute, "precision": config.precision}


def _headline(recipe: Recipe, total: int, active: int) -> str:
    machine = recipe.plan
    used = "" if active == total else f", {active / 1e9:.2f}B active"
    speed = f"{machine.tflops:g} TFLOPS at {machine.utilisation:.0%}, {machine.bandwidth:g} TB/s"
    place = f"accelerators: {machine.accelerators} of {machine.gib:g} GiB, {speed}"
    return f"{recipe.model.base}: {total / 1e9:.2f}B parameters{used}; {place}"


def _table(stages: list[StagePlan], price: float | None) -> list[str]:
    lines = [f"{'stage':<14} {'kind':<8} {'tokens':>9} {'steps':>9} {'GiB':>7} {'hours':>9}  note"]
    for one in stages:
        gib = "-" if one.gib is None else f"{one.gib:.1f}"
        hours = "-" if one.hours is None else f"{one.hours:.2f}"
        steps = "-" if one.steps is None else f"{one.steps:,}"
        lines.append(f"{one.name:<14} {one.kind:<8} {_short(one.tokens):>9} {steps:>9} {gib:>7} {hours:>9}  {one.note}")
    total = sum(one.hours or 0.0 for one in stages)
    cost = "" if price is None else f" and {price:,.2f} in money"
    return [*lines, f"all stages: at most {total:.2f} hours{cost}; the formulas are in docs/planning.md"]


def _warnings(recipe: Recipe, stages: list[StagePlan]) -> list[str]:
    room = recipe.plan.gib
    remedy = "use more of them, lora_rank, recompute, or a smaller microbatch_tokens"
    lines = [
        f"warning: {one.name}: {one.gib:.1f} GiB > {room:g} GiB of one accelerator; {remedy}{_at_most(one)}"
        for one in stages
        if one.gib is not None and one.gib > room
    ]
    if recipe.plan.accelerators > 1:
        lines.append(
            "note: training is sharded under torchrun; this version plays on one accelerator, so that takes longer"
        )
    return lines


def _at_most(stage: StagePlan) -> str:
    return f" (at most {stage.most_tokens:,}: a document is computed by one accelerator)" if stage.most_tokens else ""


def _short(number: int | None) -> str:
    """A count with three digits, `12.3B`."""
    if number is None:
        return "-"
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)
