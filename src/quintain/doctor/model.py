"""Does what a model reads and writes survive its tokens, and does the recipe fit this machine?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quintain.agents.model import ModelAgent
from quintain.doctor.world import Finding, played
from quintain.harness.loop import Harness
from quintain.inference.models import ModelFacts
from quintain.interface.dialects.base import Dialect
from quintain.interface.dialects.compare import compare_with_template
from quintain.interface.episode import Episode
from quintain.interface.generation import Generation, Load, Sampling
from quintain.interface.messages import Action
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset
from quintain.recipe import CPTStage, GRPOStage, Recipe, SFTStage
from quintain.training.examples import episode_examples

GIBI = 2**30
TRAINING_BYTES = 16
"""Per parameter: float32 weights, gradient and AdamW's two moments. Activations come on top and are not counted."""

_PROBED_TASKS = 4


class GoldEngine:
    """Generates what a perfect model would: the tokens of each gold episode's actions, turn by turn."""

    version = 0
    mismatch = 0.0

    def __init__(self, gold: Sequence[Episode], dialect: Dialect) -> None:
        self._dialect = dialect
        self._left = {one.id: [turn.action for turn in one.turns] for one in gold}

    async def generate(self, ids: Sequence[int], *, session: str, group: str, sampling: Sampling) -> Generation:
        """The next action's tokens."""
        written = tuple(self._dialect.write(self._left[session].pop(0)))
        zeros = (0.0,) * len(written)
        return Generation(written, zeros, zeros, "stop")

    async def release(self, session: str) -> None:
        """Nothing to forget."""

    async def sleep(self) -> None:
        """It holds nothing."""

    def load(self) -> Load:
        """It has nothing to do."""
        return Load()

    async def update(self, weights: Any, *, version: int | None = None) -> int:
        """It has no weights."""
        return 0

    def close(self) -> None:
        """It holds nothing."""


class ModelExam:
    """Plays the gold episodes again as tokens of a model.

    Args:
        harness: of the recipe.
        tasks: of the gold episodes.
        gold: the oracle's successful episodes.
        dialect: of the recipe, with the model's tokenizer.
        facts: what is known of the model without its weights.
    """

    def __init__(
        self,
        harness: Harness,
        tasks: Sequence[Task],
        gold: Sequence[Episode],
        dialect: Dialect,
        facts: ModelFacts,
    ) -> None:
        self._gold = sorted(gold, key=lambda episode: episode.id)
        self._dialect = dialect
        self._facts = facts
        agent = ModelAgent(GoldEngine(gold, dialect), dialect, Sampling(max_tokens=10**6), name="gold")
        self.episodes = sorted(played(harness, tasks, agent), key=lambda episode: episode.id)

    @property
    def longest(self) -> int:
        """Tokens of the longest gold episode."""
        return max((len(segment.ids) for one in self.episodes for segment in one.segments), default=0)

    @property
    def mean_tokens(self) -> float:
        """Tokens of a gold episode."""
        return sum(len(segment.ids) for one in self.episodes for segment in one.segments) / max(1, len(self.episodes))

    def calls_fire(self) -> Finding:
        """Written as tokens and parsed back, the gold calls run and lead to the same success."""
        calls = sum(len(one.calls()) for one in self.episodes)
        wrong = [one for one in self.episodes if not one.success]
        if wrong:
            first = next((turn.action for turn in wrong[0].turns if turn.action.error), None)
            cause = f"{first.error.kind}: {first.text[:60]!r}" if first and first.error else str(wrong[0].outcome)
            return Finding("fail", f"{len(wrong)} of {len(self.episodes)} gold episodes fail as tokens ({cause})")
        return Finding("ok", f"{calls} calls of {len(self.episodes)} episodes written as tokens, parsed and run")

    def round_trip(self) -> Finding:
        """Every gold action reads back from its tokens as it was."""
        pairs = list(zip(self._gold, self.episodes, strict=True))
        turns = [
            (before.action, after.action)
            for gold, one in pairs
            for before, after in zip(gold.turns, one.turns, strict=False)
        ]
        changed = [before for before, after in turns if _meaning(before) != _meaning(after)]
        if changed:
            text = f"{len(changed)} of {len(turns)} actions change; the first: {_meaning(changed[0])}"
            return Finding("fail", text[:160])
        return Finding("ok", f"{len(turns)} actions read back as written in dialect {self._dialect.id!r}")

    def mask(self) -> Finding:
        """The loss covers something, and the token that ends a turn."""
        examples = [example for one in self.episodes for example in episode_examples(one, window_turns=10**6)]
        loss = sum(example.loss_tokens for example in examples)
        ends = sum(
            1
            for example in examples
            for token, weight in zip(example.ids, example.weights, strict=True)
            if weight and token in self._dialect.stop
        )
        turns = sum(len(one.turns) for one in self.episodes)
        total = sum(len(example.ids) for example in examples)
        state = "ok" if loss and ends == turns else "fail"
        return Finding(state, f"{loss} of {total} tokens carry loss; {ends} end tokens in {turns} turns")

    def template(self, tokenizer: Any, toolset: Callable[[str], Toolset]) -> Finding:
        """Where the dialect leaves the model's own chat template; no fault, but worth knowing."""
        if not getattr(tokenizer, "chat_template", None):
            return Finding("skip", "the tokenizer has no chat template to compare with")
        one = self._gold[0]
        found = compare_with_template(self._dialect, tokenizer, one.messages, toolset(one.world))
        return Finding("ok", "as the model's chat template" if found is None else str(found).replace("\n", " ")[:150])

    def context(self, budgets: Mapping[str, int]) -> Finding:
        """The gold episodes fit the model's context and their world's budget of tokens."""
        most = dict.fromkeys(budgets, 0)
        for one in self.episodes:
            most[one.world] = max(most[one.world], one.usage.tokens)
        room = self._facts.context
        fits = (room is None or self.longest <= room) and all(most[name] <= budgets[name] for name in budgets)
        text = f"longest gold episode {self.longest} tokens, context {room or '?'}; most generated "
        labels = {name: f" in {name}" if len(budgets) > 1 else "" for name in budgets}
        text += "; ".join(f"{most[name]}, budget {budgets[name]}{labels[name]}" for name in budgets)
        return Finding("ok" if fits else "fail", text)


def contexts(recipe: Recipe, positions: int) -> Finding:
    """Every stage of pre-training finds positions for its context, before an earlier one has taken its hours.

    Args:
        recipe: with such stages.
        positions: of the base model.

    Raises:
        InputError: a context is longer than what the model has by then.
    """
    known: dict[str, tuple[int, int | None]] = {"base": (positions, None)}
    found: list[str] = []
    for stage in recipe.stages:
        if not isinstance(stage, CPTStage | SFTStage | GRPOStage):
            continue
        room, unscaled = known[stage.start]  # YaRN counts from the positions before the first scaling
        if isinstance(stage, CPTStage):
            rope, original = stage.train.rope, unscaled or room
            room = stage.train.positions(room, original)
            unscaled = original if rope is not None and rope.yarn is not None else unscaled
            found.append(f"{stage.name} {stage.train.context} of {room}")
        known[stage.name] = room, unscaled
    return Finding("ok", f"{', '.join(found)} positions")


def memory(recipe: Recipe, facts: ModelFacts) -> Finding:
    """Weights, and for training gradient and moments, against the memory that is free."""
    trained = any(
        stage.kind in ("cpt", "sft", "grpo") and not getattr(stage.train, "lora_rank", 0) for stage in recipe.stages
    )
    need = facts.parameters * (TRAINING_BYTES if trained else 4) / GIBI
    free = _free_bytes() / GIBI
    text = (
        f"{facts.parameters / 1e6:.3g}M parameters{', trained,' if trained else ''} need {need:.1f} GiB and activations"
    )
    return Finding("ok" if need < free else "fail", f"{text}; {free:.1f} GiB are free")


def _free_bytes() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["MemAvailable"].split()[0]) * 1024


def least_minutes(recipe: Recipe, facts: ModelFacts, pools: dict[str, int], tokens: float) -> float:
    """A lower bound of the run: arithmetic alone, at the speed of a matrix product here.

    Reading a token takes 2 operations a parameter, training on it 6 (Kaplan et al. 2020, arXiv 2001.08361, section
    2.1). Stages with a bound of their own (`seconds`) count no more than that.

    Args:
        recipe: of the run.
        facts: of the base model.
        pools: number of tasks by pool.
        tokens: of one episode.
    """
    speed = _operations_per_second()
    played = {stage.name: pools[stage.pool] for stage in recipe.stages if stage.kind == "rollout"}
    seconds = 0.0
    for stage in recipe.stages:
        work, bound = 0.0, float("inf")
        if stage.kind == "eval" and stage.endpoint is None:
            work = 2 * pools[stage.pool] * stage.samples
        elif stage.kind == "sft":
            work = 6 * stage.train.epochs * sum(played.get(name, 0) for name in stage.data)
            bound = stage.train.seconds or bound
        elif stage.kind == "grpo":
            work = 8 * stage.train.steps * stage.train.groups * stage.train.group_size
            bound = stage.train.seconds or bound
        seconds += min(bound, work * tokens * facts.parameters / speed)
    return seconds / 60


def _operations_per_second() -> float:
    import torch

    size = 512
    matrix = torch.randn(size, size)
    fastest = float("inf")  # the one that nothing else on the machine got in the way of
    for _ in range(40):
        began = time.perf_counter()
        matrix @ matrix
        fastest = min(fastest, time.perf_counter() - began)
    return 2 * size**3 / fastest


def groups_vary(harness: Harness, stage: GRPOStage, agent: ModelAgent, tasks: Sequence[Task]) -> Finding:
    """Groups of a GRPO stage's start model hold successes and failures: otherwise there is nothing to learn."""
    few = tasks[:_PROBED_TASKS]
    episodes = played(harness, few, agent, samples=stage.train.group_size)
    groups = [{one.success for one in episodes if one.scored and one.task_id == task.id} for task in few]
    varied = sum(len(group) > 1 for group in groups)
    wins = sum(one.success for one in episodes)
    text = f"{varied} of {len(few)} groups of {stage.train.group_size} vary; {wins} of {len(episodes)} episodes succeed"
    return Finding("ok" if varied else "fail", text)


def _meaning(action: Action) -> tuple[Any, ...]:
    return (action.thought, [(call.tool, call.arguments) for call in action.calls], action.answer)
