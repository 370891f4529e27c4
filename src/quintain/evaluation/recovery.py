"""How an agent takes trouble: whether it recovers, whether it repeats what failed, and how long it takes.

Rates are means over tasks with intervals that resample clusters, as for success. Of an agent that recovers by declining
honestly the world's verdict still says failure, so the share of honest declines stands beside the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from quintain.evaluation.intervals import Difference, Estimate, mean_interval, paired_difference
from quintain.interface.episode import Episode
from quintain.interface.failures import declined_honestly, failed_calls, faulted, recovered, steps_to_recover
from quintain.interface.faults import KINDS

LONGEST = 16
"""Turns to recover are counted up to this many: a mean with an interval needs a bound."""


@dataclass(frozen=True, slots=True)
class FaultRates:
    """How one set of struck episodes went; None where there was nothing to rate.

    Attributes:
        episodes: scored episodes that an injected fault struck.
        recovery: share of them that succeed or decline honestly.
        success: share of them that succeed.
        declined: share of them that decline after a fault that stays.
        repeat: of the failed calls in them, the share whose identical call came again though it could not help.
        steps: turns from the first fault to the first turn that got through again, among the recovered.
    """

    episodes: int
    recovery: Estimate | None
    success: Estimate | None
    declined: Estimate | None
    repeat: Estimate | None
    steps: Estimate | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """How an agent takes trouble.

    Attributes:
        struck: all episodes that an injected fault struck.
        by_kind: the same by kind of fault; an episode with two kinds stands under both.
        spared: success of the other episodes.
        repeat: as in `FaultRates`, over all episodes: tools also fail by themselves.
    """

    struck: FaultRates
    by_kind: Mapping[str, FaultRates]
    spared: Estimate | None
    repeat: Estimate | None


def recovery_of(episodes: Sequence[Episode]) -> Recovery:
    """Rates of the given (scored) episodes."""
    struck = [episode for episode in episodes if faulted(episode)]
    spared = [episode for episode in episodes if not faulted(episode)]
    by_kind = {kind: [episode for episode in struck if kind in _kinds(episode)] for kind in KINDS}
    return Recovery(
        struck=_rates(struck),
        by_kind={kind: _rates(found) for kind, found in by_kind.items() if found},
        spared=_over_tasks(spared, lambda episode: episode.success),
        repeat=_over_tasks(episodes, _repeated),
    )


def recovery_difference(before: Sequence[Episode], after: Sequence[Episode]) -> Difference | None:
    """Difference `after - before` in recovery rate over the tasks struck in both; None without such a task."""
    first, second = (
        _by_task([one for one in run if one.scored and faulted(one)], recovered) for run in (before, after)
    )
    common = [task for task in first if task in second]
    if not common:
        return None
    old, new = ([mean(found[task]) for task in common] for found in (first, second))
    return paired_difference(old, new, [cluster for _, cluster in common])


def _kinds(episode: Episode) -> set[str]:
    return {one.fault for turn in episode.turns for one in turn.observations}


def _rates(struck: Sequence[Episode]) -> FaultRates:
    back = _over_tasks([one for one in struck if recovered(one)], _steps)
    return FaultRates(
        episodes=len(struck),
        recovery=_over_tasks(struck, recovered),
        success=_over_tasks(struck, lambda episode: episode.success),
        declined=_over_tasks(struck, lambda episode: declined_honestly(episode) and not episode.success),
        repeat=_over_tasks(struck, _repeated),
        steps=back and replace(back, value=LONGEST * back.value, low=LONGEST * back.low, high=LONGEST * back.high),
    )


def _repeated(episode: Episode) -> float | None:
    calls = failed_calls(episode)
    return mean(one.repeated for one in calls) if calls else None


def _steps(episode: Episode) -> float | None:
    steps = steps_to_recover(episode)
    return None if steps is None else min(steps, LONGEST) / LONGEST


def _over_tasks(episodes: Sequence[Episode], value: Callable[[Episode], float | None]) -> Estimate | None:
    """Mean over tasks of what `value` says of their episodes."""
    by_task = _by_task(episodes, value)
    if not by_task:
        return None
    return mean_interval([mean(found) for found in by_task.values()], [cluster for _, cluster in by_task])


def _by_task(
    episodes: Sequence[Episode], value: Callable[[Episode], float | None]
) -> dict[tuple[str, str], list[float]]:
    """What `value` says of each task's episodes, by task and cluster, without those of which it says nothing."""
    by_task: dict[tuple[str, str], list[float]] = {}
    for episode in episodes:
        found = value(episode)
        if found is not None:
            by_task.setdefault((episode.task_id, episode.cluster), []).append(float(found))
    return by_task
