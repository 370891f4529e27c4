"""pass@1, pass@k and pass^k of one task's trials.

A task has `n` scored trials of which `c` succeeded. Infra errors are no trials: they are left out here and
counted by the summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

from quintain.interface.episode import Episode
from quintain.interface.errors import InputError


@dataclass(frozen=True, slots=True)
class Trials:
    """The scored trials of one task.

    Attributes:
        task: id of the task.
        cluster: cluster of the task; its own id where it has none.
        n: scored trials.
        c: successful ones.
    """

    task: str
    cluster: str
    n: int
    c: int

    def __post_init__(self) -> None:
        if not 0 <= self.c <= self.n:
            raise ValueError(f"task {self.task!r}: {self.c} successes in {self.n} trials")


def trials_by_task(episodes: Iterable[Episode]) -> list[Trials]:
    """Counts the scored trials of every task, in the order in which tasks first appear.

    A task whose trials were all infra errors has no scored trial and does not appear.
    """
    counts: dict[str, list[int]] = {}
    clusters: dict[str, str] = {}
    for episode in episodes:
        if not episode.scored:
            continue
        count = counts.setdefault(episode.task_id, [0, 0])
        count[0] += 1
        count[1] += episode.success
        clusters.setdefault(episode.task_id, episode.cluster or episode.task_id)
    return [Trials(task, clusters[task], n, c) for task, (n, c) in counts.items()]


def avg_at_k(trials: Sequence[Trials]) -> list[float]:
    """Share of successful trials `c / n` of each task `[tasks]`; its mean over tasks is pass@1.

    Each task weighs the same however many of its trials were scored.
    """
    _require(trials, 1)
    return [task.c / task.n for task in trials]


def pass_at_k(trials: Sequence[Trials], k: int) -> list[float]:
    """Probability that at least one of `k` trials succeeds, for each task `[tasks]`.

    The unbiased estimator `1 - C(n - c, k) / C(n, k)` of Chen et al. 2021, "Evaluating Large Language Models
    Trained on Code" (arXiv 2107.03374, equation 1), in exact integer arithmetic.

    Raises:
        InputError: a task has fewer than `k` scored trials, or `k` is below 1.
    """
    _require(trials, k)
    return [1 - comb(task.n - task.c, k) / comb(task.n, k) for task in trials]


def pass_hat_k(trials: Sequence[Trials], k: int) -> list[float]:
    """Probability that all of `k` trials succeed, pass^k, for each task `[tasks]`.

    The unbiased estimator `C(c, k) / C(n, k)` of Yao et al. 2024, "tau-bench" (arXiv 2406.12045).

    Raises:
        InputError: a task has fewer than `k` scored trials, or `k` is below 1.
    """
    _require(trials, k)
    return [comb(task.c, k) / comb(task.n, k) for task in trials]


def _require(trials: Sequence[Trials], k: int) -> None:
    if k < 1:
        raise InputError(f"k = {k}: pass@k and pass^k need k >= 1")
    short = [task for task in trials if task.n < k]
    if short:
        least = min(short, key=lambda task: task.n)
        raise InputError(
            f"k = {k} needs {k} scored trials of every task, but {len(short)} of {len(trials)} tasks have fewer "
            f"(task {least.task!r} has {least.n}); run more trials or lower k"
        )
