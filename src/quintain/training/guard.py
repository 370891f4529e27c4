"""The guard: warns, rolls a run back to its last good checkpoint, and ends it, always saying why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from quintain.training.monitors import Row
from quintain.training.rules import RULES, Rule

MASTERED = 0.95
"""Success from which equal rewards mean that nothing is left to learn, not that the policy has collapsed."""

Ruling = Literal["roll_back", "finish", "stop", "no_world"]


class GuardConfig(BaseModel):
    """What the guard does.

    Attributes:
        rollbacks: how often a run is rolled back before it is ended. Two: a third collapse has another cause
            than the learning rate.
        off: rules to leave out, by name; for a world in which healthy runs break them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rollbacks: int = Field(default=2, ge=0)
    off: tuple[str, ...] = ()

    @field_validator("off")
    @classmethod
    def _known_rules(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        known = [rule.name for rule in RULES]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"no rule {unknown[0]!r}; rules: {', '.join(known)}")
        return names


@dataclass(frozen=True, slots=True)
class Alarm:
    """A rule that has been broken for too long.

    Attributes:
        rule: its name.
        since: first step of the run of broken ones; a good checkpoint is older.
        ruling: `roll_back`; `stop` if there is nothing to go back to, or the rollbacks are used up; `finish` if
            equal rewards mean that all tasks are mastered; `no_world` if most episodes failed by infrastructure,
            which no weights can mend.
        why: one line for a person.
    """

    rule: str
    since: int
    ruling: Ruling
    why: str


class Guard:
    """Judges a run row by row. Its state is a fold over the rows, so a resumed run rebuilds it from `metrics.jsonl`.

    Args:
        config: settings.
    """

    def __init__(self, config: GuardConfig) -> None:
        self._config = config
        self._rules = [rule for rule in RULES if rule.name not in config.off]
        self._rows: list[Row] = []
        self._rolled_back_at = 0
        self.rollbacks = 0
        self.warnings: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """No rule warns: a checkpoint taken now is a good one."""
        return not self.warnings

    def observe(self, row: Row) -> Alarm | None:
        """Takes a step's monitors (with `step`); returns the alarm that has to be acted on, if there is one."""
        self._rows.append(row)
        runs = [(rule, run) for rule in self._rules if (run := self._run(rule))]
        self.warnings = tuple(rule.name for rule, run in runs if len(run) >= rule.warn)
        broken = [(rule, run) for rule, run in runs if rule.act and len(run) >= rule.act]
        if not broken:
            return None
        rule, run = min(broken, key=lambda pair: pair[1][0]["step"])
        return Alarm(rule.name, int(run[0]["step"]), self._ruling(rule, run), self._why(rule, run))

    def rolled_back(self, step: int) -> None:
        """The weights are those of `step` again: what came after it is no longer the run's past."""
        last = int(self._rows[-1]["step"])
        self._rows = [row for row in self._rows if row["step"] <= step]
        self._rolled_back_at = last
        self.rollbacks += 1
        self.warnings = ()

    def _run(self, rule: Rule) -> list[Row]:
        """The rows in a row, up to the last one, that break a rule; rows of which it can't be said are skipped."""
        run: list[Row] = []
        for index in range(len(self._rows) - 1, -1, -1):
            if self._rows[index]["step"] <= self._rolled_back_at:
                break
            broken = rule.judge(self._rows, index)
            if broken:
                run.insert(0, self._rows[index])
            elif broken is not None or not run:
                break
        return run

    def _ruling(self, rule: Rule, run: Sequence[Row]) -> Ruling:
        nothing = rule.name == "no_kept_group"
        if nothing and all(row["infra"] > row["episodes"] for row in run):
            return "no_world"
        equal = nothing or rule.name == "reward_spread"
        successes = [row["success"] for row in run if "success" in row]
        if equal and successes and fmean(successes) >= MASTERED:
            return "finish"
        never_learnt = nothing and run[0] is self._rows[0]
        used_up = self.rollbacks >= self._config.rollbacks
        return "stop" if never_learnt or used_up else "roll_back"

    def _why(self, rule: Rule, run: Sequence[Row]) -> str:
        return f"{rule.because}: rule {rule.name}, steps {int(run[0]['step'])} to {int(run[-1]['step'])}"
