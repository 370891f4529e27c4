"""What an evaluation says of an agent: success with intervals, cost, depth and faults.

The result is pass@1 as Avg@k, never the best of k. Infra errors have no score: they leave every denominator,
are counted, and the bounds say what pass@1 would be if all of them had failed or had passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quintain.evaluation.behaviour import Behaviour, Cost, behaviour_of, cost_of
from quintain.evaluation.bootstrap import bootstrap_interval
from quintain.evaluation.depth import GoalKeeping, goal_keeping
from quintain.evaluation.estimators import Trials, avg_at_k, pass_at_k, pass_hat_k, trials_by_task
from quintain.evaluation.intervals import Difference, Estimate, mean_interval, paired_difference
from quintain.evaluation.recovery import Recovery, recovery_of
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.tasks import tag_value

HELD_OUT_TAG = "held_out_template"
"""Tag of tasks whose template appears in no training data."""

_DEPTHS = ((8, 8), (12, 9), (16, 13), (24, 17), (32, 25), (64, 33))  # (up to, from); single turns up to 8


@dataclass(frozen=True, slots=True)
class Counts:
    """How many episodes there are of each standing.

    Attributes:
        planned: episodes that were to be run.
        scored: with a verdict.
        infra: without one, because world or engine broke.
        missing: planned and not run.
        tasks: tasks with at least one scored episode.
        clusters: clusters of those tasks.
    """

    planned: int
    scored: int
    infra: int
    missing: int
    tasks: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """pass@1 over all planned episodes if every unscored one had failed (`low`) or passed (`high`)."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Slice:
    """Success of one set of episodes.

    Attributes:
        counts: planned, scored and infra; of a part of the evaluation, `planned` is what was run.
        pass1: pass@1 as Avg@k; None without a scored episode.
        pass_k: pass@k by k (1, 2, 4, ... and the trials per task), over the tasks with k scored trials.
        pass_hat_k: pass^k by k, over the same tasks.
        bounds: pass@1 with unscored episodes as failures and as successes; None if nothing was planned.
    """

    counts: Counts
    pass1: Estimate | None
    pass_k: Mapping[int, Estimate]
    pass_hat_k: Mapping[int, Estimate]
    bounds: Bounds | None


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """Episodes that ended in one way, and how many of them succeeded."""

    episodes: int
    successes: int


@dataclass(frozen=True, slots=True)
class EvalSummary:
    """Everything the report says of one evaluation; `to_json` has stable keys.

    Attributes:
        overall: all episodes.
        bootstrap: pass@1 with an interval by another method, as a check on the first; None without a scored episode.
        by_world: by world, the family of the task.
        by_language: by `lang:` tag.
        by_template: by template.
        by_held_out: `seen` and `held_out` templates.
        by_turns: by number of turns; what was asked and what was done both grow with it.
        by_hops: by `hops:` tag, the depth of the task itself.
        by_contamination: `clean`, and `contaminated` where training or a tool's result gave the task away.
        outcomes: by outcome, a limit by its kind; unscored episodes stand under `infra_error`.
        cost: turns, calls, tokens and seconds.
        behaviour: rates of malformed, invalid, failing and repeated calls; declined right and wrong.
        recovery: what it made of injected faults, and whether it repeats calls that failed.
        goal_keeping: whether the late part of long episodes still serves the task.
    """

    overall: Slice
    bootstrap: Estimate | None
    by_world: Mapping[str, Slice]
    by_language: Mapping[str, Slice]
    by_template: Mapping[str, Slice]
    by_held_out: Mapping[str, Slice]
    by_turns: Mapping[str, Slice]
    by_hops: Mapping[str, Slice]
    by_contamination: Mapping[str, Slice]
    outcomes: Mapping[str, OutcomeCount]
    cost: Cost
    behaviour: Behaviour
    recovery: Recovery
    goal_keeping: GoalKeeping

    @property
    def pass1(self) -> Estimate | None:
        """pass@1 of all episodes."""
        return self.overall.pass1

    @property
    def counts(self) -> Counts:
        """Counts of all episodes."""
        return self.overall.counts

    def to_json(self) -> dict[str, Any]:
        """A JSON object; every key is a string, in a fixed order."""
        return {name: _string_keys(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations on the same tasks.

    Attributes:
        tasks: tasks scored in both.
        left_out: tasks scored in only one of them.
        before: pass@1 of the first on the common tasks.
        after: pass@1 of the second on them.
        difference: `after - before`, paired by task and clustered.
    """

    tasks: int
    left_out: int
    before: Estimate
    after: Estimate
    difference: Difference

    def to_json(self) -> dict[str, Any]:
        """A JSON object with fixed keys."""
        return asdict(self)


def summarise(episodes: Sequence[Episode], planned: int, contaminated: Collection[str] = ()) -> EvalSummary:
    """Summarises one evaluation.

    Args:
        episodes: all that were run, infra errors included.
        planned: how many episodes were to be run (tasks times samples).
        contaminated: ids of episodes whose task was given away.

    Raises:
        InputError: more episodes than planned.
    """
    if planned < len(episodes):
        raise InputError(f"{len(episodes)} episodes, but only {planned} were planned; is one counted twice?")
    scored = [episode for episode in episodes if episode.scored]
    trials = trials_by_task(episodes)
    clusters = [task.cluster for task in trials]
    return EvalSummary(
        overall=_slice(episodes, planned),
        bootstrap=bootstrap_interval(avg_at_k(trials), clusters) if trials else None,
        by_world=_slices(episodes, lambda episode: episode.world),
        by_language=_slices(episodes, lambda episode: tag_value(episode.tags, "lang:")),
        by_template=_slices(episodes, lambda episode: episode.template or "(none)"),
        by_held_out=_slices(episodes, lambda episode: "held_out" if HELD_OUT_TAG in episode.tags else "seen"),
        by_turns=_slices(scored, lambda episode: _depth(len(episode.turns)), order=_leading_number),
        by_hops=_slices(episodes, lambda episode: tag_value(episode.tags, "hops:"), order=_leading_number),
        by_contamination=_slices(episodes, lambda one: "contaminated" if one.id in contaminated else "clean"),
        outcomes=_outcomes(episodes),
        cost=cost_of(scored),
        behaviour=behaviour_of(scored),
        recovery=recovery_of(scored),
        goal_keeping=goal_keeping(scored),
    )


def compare(before: Iterable[Episode], after: Iterable[Episode]) -> Comparison:
    """Paired comparison of two evaluations, over the tasks that are scored in both.

    Raises:
        InputError: no task is scored in both.
    """
    first = {trials.task: trials for trials in trials_by_task(before)}
    second = {trials.task: trials for trials in trials_by_task(after)}
    common = [task for task in first if task in second]
    if not common:
        raise InputError(f"no task is scored in both evaluations ({len(first)} and {len(second)} tasks); same pool?")
    clusters = [first[task].cluster for task in common]
    old = avg_at_k([first[task] for task in common])
    new = avg_at_k([second[task] for task in common])
    return Comparison(
        tasks=len(common),
        left_out=len(first.keys() ^ second.keys()),
        before=mean_interval(old, clusters),
        after=mean_interval(new, clusters),
        difference=paired_difference(old, new, clusters),
    )


def _slice(episodes: Sequence[Episode], planned: int) -> Slice:
    trials = trials_by_task(episodes)
    scored = sum(task.n for task in trials)
    successes = sum(task.c for task in trials)
    infra = len(episodes) - scored
    missing = planned - len(episodes)
    counts = Counts(planned, scored, infra, missing, len(trials), len({task.cluster for task in trials}))
    bounds = Bounds(successes / planned, (successes + infra + missing) / planned) if planned else None
    ks = _ks(trials)
    return Slice(
        counts=counts,
        pass1=mean_interval(avg_at_k(trials), [task.cluster for task in trials]) if trials else None,
        pass_k={k: _estimate(trials, k, pass_at_k) for k in ks},
        pass_hat_k={k: _estimate(trials, k, pass_hat_k) for k in ks},
        bounds=bounds,
    )


def _estimate(trials: Sequence[Trials], k: int, estimator: Callable[[Sequence[Trials], int], list[float]]) -> Estimate:
    enough = [task for task in trials if task.n >= k]
    return mean_interval(estimator(enough, k), [task.cluster for task in enough])


def _ks(trials: Sequence[Trials]) -> list[int]:
    """1, 2, 4, ... and the largest k that at least half of the tasks have trials for."""
    if not trials:
        return []
    most = sorted(task.n for task in trials)[len(trials) // 2]
    return sorted({2**power for power in range(most.bit_length())} | {most})


def _slices(
    episodes: Sequence[Episode],
    key: Callable[[Episode], str | None],
    order: Callable[[str], Any] = str,
) -> dict[str, Slice]:
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        name = key(episode)
        if name is not None:
            groups.setdefault(name, []).append(episode)
    return {name: _slice(groups[name], len(groups[name])) for name in sorted(groups, key=order)}


def _depth(turns: int) -> str:
    if turns <= 8:
        return str(turns)
    return next((f"{first}-{last}" for last, first in _DEPTHS if first <= turns <= last), "65+")


def _leading_number(name: str) -> tuple[int, str]:
    digits = name.split("-")[0].rstrip("+")
    return (int(digits) if digits.isdigit() else 10**9, name)


def _outcomes(episodes: Sequence[Episode]) -> dict[str, OutcomeCount]:
    names = [str(episode.outcome) if episode.scored else "infra_error" for episode in episodes]
    total = Counter(names)
    successes = Counter(name for name, episode in zip(names, episodes, strict=True) if episode.success)
    return {name: OutcomeCount(count, successes[name]) for name, count in total.most_common()}


def _string_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _string_keys(item) for key, item in value.items()}
    return value
