"""The GRPO stage: play groups of tasks, learn from them once, play on with the new weights."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quintain.interface.episode import Episode
from quintain.interface.errors import InfraError
from quintain.interface.example import Example
from quintain.interface.generation import Engine
from quintain.machine import give_back_memory
from quintain.pipeline.engines import make_engine
from quintain.pipeline.fleets import Published, make_fleet, trainable
from quintain.pipeline.gathering import Gathering
from quintain.pipeline.practice import Practice
from quintain.pipeline.run import write_text
from quintain.pipeline.sheet import sheet
from quintain.pipeline.workshop import Policy, Workshop
from quintain.progress import progress, say
from quintain.recipe import GRPOStage
from quintain.training import checkpoint
from quintain.training.advantage import Group
from quintain.training.checkpoint import Position, atomic_folder
from quintain.training.config import SUMMARY
from quintain.training.curriculum import Curriculum, outcomes_of
from quintain.training.experience import group_examples
from quintain.training.grpo import GRPOObjective
from quintain.training.guard import Alarm, Guard
from quintain.training.loop import DivergenceError, MetricsLog, Trainer
from quintain.training.lora import merge
from quintain.training.monitors import Row, behaviour_monitors, group_monitors
from quintain.training.rows import METRICS, read_rows
from quintain.training.staleness import oldest_usable, oldest_version, reusable

GOOD = 2
"""Good checkpoints kept besides the start."""


def grpo(workshop: Workshop, stage: GRPOStage, folder: Path) -> dict[str, Any]:
    """Reinforcement learning from a model's own episodes; resumes an interrupted run from `folder`.

    Leaves `metrics.jsonl` (a row per step), `outcomes.jsonl` (episodes and successes by task, a row per step),
    `rollouts/` and `validation/` (a journal per step), `sheets/`, `checkpoints/`, `good/` and `model/`.
    With adapters the saved model has them merged into its weights.

    Raises:
        InfraError: five steps in a row had more broken than scored episodes; running again goes on.
    """
    start = workshop.take_policy(stage.start)
    model = trainable(start.model, stage)
    policy = Policy(model, start.tokenizer, start.dialect)
    engine = _engine(workshop, stage, policy)
    run = _Run(workshop, stage, folder, policy, engine)
    try:
        run.resume()
        run.learn()
        run.trainer.finish()
    finally:
        run.gathering.close()
        engine.close()
    trained = merge(model) if stage.train.lora_rank else model
    with atomic_folder(folder / "model") as scratch:
        trained.save_pretrained(scratch)
        start.tokenizer.save_pretrained(scratch)
        summary = {
            "steps": run.position.step,
            "digests": [asdict(one) for one in workshop.digests().values()],
            "config": stage.train.model_dump(),
        }
        (scratch / SUMMARY).write_text(json.dumps(summary))
    workshop.keep_policy(stage.name, Policy(trained, start.tokenizer, start.dialect))
    return run.summary()


def _engine(workshop: Workshop, stage: GRPOStage, policy: Policy) -> Engine | Published:
    """What the policy plays with: an engine of its own, or workers that are sent its weights."""
    if workshop.recipe.cluster is None:
        return make_engine(workshop.recipe, policy)
    return Published(make_fleet(workshop, stage), policy.model)


class _Run:
    """One run. All of its state is in the checkpoints, the rows written so far and the journals."""

    def __init__(
        self, workshop: Workshop, stage: GRPOStage, folder: Path, policy: Policy, engine: Engine | Published
    ) -> None:
        self.config = config = stage.train
        self.folder = folder
        self.engine = engine
        self.tokenizer = policy.tokenizer
        self.practice = Practice(workshop, stage, policy, engine)
        self.validation = workshop.pool(stage.validation) if stage.validation else []
        self.guard = Guard(config.guard)
        curriculum = Curriculum(workshop.pool(stage.pool), config.group_size, workshop.recipe.seed)
        self.gathering = Gathering(self.practice, curriculum, config, folder)
        self.objective = GRPOObjective(
            config.clip_low, config.clip_high, config.ratio_cap, config.off_policy_limit, config.kl
        )
        self.trainer = Trainer(policy.model, self.objective, config, reference=bool(config.kl))
        self.trainer.exclusively = self._between_generations
        self.position = Position()
        self.load = engine.load()
        self.recent: list[list[Group]] = []
        self.rows: list[dict[str, Any]] = []
        self.played: dict[int, float] = {}
        self.mended = 0
        self.ended = ""
        self.broken = ""

    def resume(self) -> None:
        """Takes the position of the newest checkpoint; what was played after it is read, not played again."""
        found = checkpoint.latest(self.folder / "checkpoints")
        if found is not None:
            self.position = self.trainer.restore(found)
        else:
            self._save()
        step = self.position.step
        rows = read_rows(self.folder / METRICS)
        self.played = {row["step"]: row["rollout_seconds"] for row in rows[step:]}
        self.log = MetricsLog(self.folder / METRICS, step)
        self.outcomes = MetricsLog(self.folder / "outcomes.jsonl", step)
        self.rows = rows[:step]
        for row in self.rows:
            self.guard.observe(row)
            if "rolled_back_to" in row:
                self.guard.rolled_back(row["rolled_back_to"])
                self.mended = row["version"]
            self.ended = row.get("ended", "")
        for number, row in enumerate(read_rows(self.folder / "outcomes.jsonl"), 1):
            self.gathering.observe(number, {task: (n, c) for task, (n, c) in row.items()})
        if self.rows and self.rows[-1]["version"]:
            self._between_generations(lambda: None, self.rows[-1]["version"])  # this engine has seen no update yet
        self._remember_groups()

    def learn(self) -> None:
        """Steps until the steps or the seconds are used up, or the guard ends the run."""
        config = self.config
        saved_at = self.position.seconds
        with progress("GRPO", total=config.seconds or config.steps, unit="s" if config.seconds else "steps") as advance:
            while not self._over():
                before = self.position.seconds
                row = self._step(self.position.step + 1)
                advance(self.position.seconds - before if config.seconds else 1, _status(row))
                due = self.position.seconds - saved_at >= config.checkpoint_seconds
                if due or "rolled_back_to" in row or self.ended or self.broken:
                    self._save()
                    saved_at = self.position.seconds
                if self.broken:
                    raise InfraError(f"step {row['step']}: {self.broken}")

    def summary(self) -> dict[str, Any]:
        """What the manifest says of the run."""
        successes = [row["success"] for row in self.rows if "success" in row]
        first, last = (_mean(successes[:5]), _mean(successes[-5:])) if successes else (0.0, 0.0)
        warnings = Counter(name for row in self.rows for name in row.get("warnings", []))
        line = f"{len(self.rows)} of {self.config.steps} steps, success of played tasks {first:.3f} -> {last:.3f}"
        line += f"; rolled back {self.guard.rollbacks} times" if self.guard.rollbacks else ""
        line += f"; warnings: {', '.join(f'{name} ({count})' for name, count in warnings.items())}" if warnings else ""
        return {
            "steps": len(self.rows),
            "training_seconds": self.position.seconds,
            "episodes": sum(row["episodes"] for row in self.rows),
            "infra": sum(row["infra"] for row in self.rows),
            "skipped_updates": sum(row.get("not_finite", 0) for row in self.rows),
            "rollbacks": self.guard.rollbacks,
            "warnings": dict(warnings),
            "ended": self.ended,
            "line": f"{line}; {self.ended}" if self.ended else line,
        }

    def _over(self) -> bool:
        config, at = self.config, self.position
        mean = at.seconds / at.step if at.step else 0.0
        late = config.seconds is not None and at.step > 0 and at.seconds + mean > config.seconds
        return bool(self.ended) or at.step >= config.steps or late

    def _step(self, number: int) -> dict[str, Any]:
        began = time.monotonic()
        groups = self.gathering.take(number)
        if not self.config.ahead:
            self.gathering.run(self.engine.sleep())
        give_back_memory()  # the engine's, before training needs its own
        seconds = max(time.monotonic() - began, self.played.get(number, 0.0))
        scored = [episode for group in groups for episode in group.episodes]
        row: dict[str, Any] = {"step": number, **group_monitors(groups)}
        row |= behaviour_monitors(scored, self._count_tokens)
        began = time.monotonic()
        # In one order, whichever tasks were drawn first: sums are then the same when groups come from journals.
        kept = sorted((one for one in groups if one.kept and self._usable(one)), key=lambda one: one.task_id)
        row |= self._update(number, kept)
        give_back_memory()
        training = time.monotonic() - began
        self.position = Position(number, self.position.seconds + seconds + training)
        row |= {"rollout_seconds": seconds, "training_seconds": training, "seconds": self.position.seconds}
        row |= self._idle_shares(seconds, training)
        row["kl_weight"] = self.objective.kl
        if number % self.config.validate_every == 0:
            row |= self._validate(number, scored)
        self._judge(row)
        row |= {"probe_mismatch": self.engine.mismatch} if self.engine.mismatch else {}
        row |= {"version": self.engine.version} | ({"ended": self.ended} if self.ended else {})
        outcomes = outcomes_of(scored)
        self.gathering.observe(number, outcomes)
        self.outcomes.write(dict(outcomes))
        self.log.write(row)
        self.rows.append(row)
        return row

    def _update(self, number: int, kept: list[Group]) -> Row:
        """One optimiser step on the kept groups and the recent ones that may join them."""
        config = self.config
        if not kept:
            return {}
        older = [group for groups in reversed(self.recent) for group in groups]
        stale = older[: reusable(len(kept), config.fresh_share)]
        learnt = (*kept, *stale)
        examples = [example for group in learnt for example in self._examples(group)]
        staleness = self.engine.version - min(map(oldest_version, learnt))
        warm = max(1, round(config.warmup * config.steps))
        scale = 0.5**self.guard.rollbacks
        self.objective.kl = config.kl / scale
        self._keep(kept)
        try:
            metrics = self.trainer.step(examples, min(1.0, number / warm) * scale)
        except DivergenceError as error:
            say(f"step {number}: {error}; the update is skipped")
            return {"not_finite": 1}
        if staleness:
            del metrics["mismatch"]  # older weights disagree by nature
        return {**metrics, "stale_groups": len(stale), "staleness": staleness}

    def _usable(self, group: Group) -> bool:
        """Whether none of a group was played by weights that a rollback has taken back."""
        return oldest_version(group) >= self.mended

    def _examples(self, group: Group) -> list[Example]:
        config = self.config
        return group_examples(
            group, self.engine.version, kind=config.advantage, bound=config.max_staleness, rule=config.stale
        )

    def _keep(self, kept: list[Group]) -> None:
        """Remembers groups for as long as they are usable."""
        steps = oldest_usable(self.config.max_staleness, self.config.stale) if self.config.fresh_share < 1 else 0
        self.recent = [*self.recent, kept][-steps:] if steps else []

    def _remember_groups(self) -> None:
        """Reads the groups that may still be reused back from their journals."""
        if self.config.fresh_share == 1:
            return
        since = max((row["step"] for row in self.rows if "rolled_back_to" in row), default=0)
        for step in range(since + 1, self.position.step + 1):
            played = self.practice.read(self.folder / "rollouts" / f"step-{step:06d}")
            kept = [group for group in self.gathering.groups(played) if group.kept and self._usable(group)]
            if kept:
                self._keep(kept)

    def _validate(self, number: int, played: list[Episode]) -> Row:
        """Plays the validation pool, and writes a sheet of trajectories for a person to read."""
        path = self.folder / "sheets" / f"step-{number:06d}.md"
        path.parent.mkdir(exist_ok=True)
        if not self.validation:
            write_text(path, sheet(played, f"Step {number}, training tasks"))
            return {}
        episodes = self.gathering.run(self._play_validation(number))
        write_text(path, sheet(episodes, f"Step {number}, validation tasks"))
        scored = [episode.success for episode in episodes if episode.scored]
        return {"validation_success": _mean(scored)} if scored else {}

    async def _play_validation(self, number: int) -> list[Episode]:
        async with self.practice.session(self.folder / "validation" / f"step-{number:06d}", 0) as session:
            return await session.play(self.validation, 1)

    def _judge(self, row: dict[str, Any]) -> None:
        """Lets the guard see the row, and does what it says."""
        before = self.guard.warnings
        alarm = self.guard.observe(row)
        if self.guard.warnings:
            row["warnings"] = list(self.guard.warnings)
        if fresh := sorted(set(self.guard.warnings) - set(before)):
            say(f"step {row['step']}: warning: {', '.join(fresh)}")
        if alarm is None:
            return
        if alarm.ruling == "no_world":
            self.broken = f"{alarm.why}; more episodes broke than were scored: mend the tools and run again"
        elif alarm.ruling == "finish":
            self.ended = f"finished early: all tasks are mastered ({alarm.why})"
        else:
            row["rolled_back_to"] = self._roll_back(alarm)

    def _roll_back(self, alarm: Alarm) -> int:
        """Restores the last good checkpoint; a run that is stopped ends with it too."""
        # Row S was played by the weights of step S - 1, so those of S - 2 are the last that are known to be good.
        good = checkpoint.complete(self.folder / "good")
        target = [path for path in good if _step_of(path) <= max(0, alarm.since - 2)][-1]
        for path in good:
            if _step_of(path) > _step_of(target):
                shutil.rmtree(path)
        self._between_generations(lambda: self.trainer.restore(target))
        self.mended = self.engine.version
        self.recent = []
        done = f"{alarm.why}; back to the weights of step {_step_of(target)}"
        if alarm.ruling == "stop":
            self.ended = f"stopped by the guard: {done}"
        self.guard.rolled_back(_step_of(target))
        rate = self.config.learning_rate * 0.5**self.guard.rollbacks
        kl = self.config.kl * 2**self.guard.rollbacks
        say(self.ended or f"{done}; KL {kl:g}, learning rate {rate:g} from here on")
        return _step_of(target)

    def _between_generations(self, change: Callable[[], object], version: int | None = None) -> None:
        """Changes the weights while nothing is generated with them; tokens carry a new version from then on."""
        self.gathering.run(self.engine.update(change, version=version))

    def _idle_shares(self, waited: float, trained: float) -> Row:
        """Shares of the time in which the trainer waited for episodes, and the engines for something to compute."""
        before, self.load = self.load, self.engine.load()
        spent = self.load.since(before)
        return {"trainer_idle": waited / (waited + trained)} | ({"engine_idle": spent.idle} if spent.up else {})

    def _save(self) -> None:
        """A checkpoint, and the same as a good one where nothing warns; files are linked, not copied."""
        made = self.trainer.save(self.folder / "checkpoints", self.position)
        if not self.guard.healthy:
            return
        good = self.folder / "good"
        shutil.rmtree(good / made.name, ignore_errors=True)
        shutil.copytree(made, good / made.name, copy_function=os.link)
        for old in checkpoint.complete(good)[1:-GOOD]:
            shutil.rmtree(old)

    def _count_tokens(self, text: str) -> int:
        return len(self.tokenizer(text, add_special_tokens=False).input_ids)


def _step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _status(row: dict[str, Any]) -> str:
    return f"step {row['step']}  success {row.get('success', 0.0):.2f}  kept {row['kept_groups']}/{row['groups']}"
