"""The guard's rules: each says of a step whether it is broken, and for how many steps in a row that may last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from quintain.training.monitors import TEMPLATE, Row

BASELINE = 10
"""Steps whose mean a monitor is compared with (as the code of RAGEN-2 does: Wang et al. 2026, arXiv 2604.06268)."""

Judge = Callable[[Sequence[Row], int], bool | None]
"""Whether the row at an index is broken, given all rows; None if it can't be said, which breaks no run of rows."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that must not last.

    Attributes:
        name: as `guard.off` and the warnings spell it.
        judge: of a single step.
        warn: broken steps in a row after which it warns.
        act: and after which the run is rolled back; 0 for a rule that only warns.
        because: what it means, for a person.
    """

    name: str
    judge: Judge
    warn: int
    act: int
    because: str


def baseline(rows: Sequence[Row], index: int, key: str, least: int = BASELINE) -> float | None:
    """Mean of the first `BASELINE` values before the row at `index`; None while there are fewer than `least`."""
    values: list[float] = []
    for row in rows[:index]:
        if key in row:
            values.append(row[key])
            if len(values) == BASELINE:
                break
    return fmean(values) if len(values) >= least else None


def below(key: str, share: float, least: float = 0.0) -> Judge:
    """Broken below `share` of the baseline, where the baseline is more than `least`."""

    def judge(rows: Sequence[Row], index: int) -> bool | None:
        base = baseline(rows, index, key)
        if base is None or key not in rows[index] or base <= least:
            return None
        return rows[index][key] < share * base

    return judge


def above(key: str, least: float) -> Judge:
    """Broken above a bound."""

    def judge(rows: Sequence[Row], index: int) -> bool | None:
        return rows[index][key] > least if key in rows[index] else None

    return judge


def rises(key: str, least: float, times: float) -> Judge:
    """Broken above `least` and above `times` the baseline, or what there is of it: a bad start is no collapse."""

    def judge(rows: Sequence[Row], index: int) -> bool | None:
        base = baseline(rows, index, key, 1)
        if base is None or key not in rows[index]:
            return None
        return rows[index][key] > max(least, times * base)

    return judge


def halfway(key: str) -> Judge:
    """Broken beyond the middle between the baseline and 1: healthy levels of repetition differ between worlds."""

    def judge(rows: Sequence[Row], index: int) -> bool | None:
        base = baseline(rows, index, key)
        if base is None or key not in rows[index]:
            return None
        return rows[index][key] > (1.0 + base) / 2

    return judge


def spike(key: str, times: float, window: int = 20, least: int = 5) -> Judge:
    """Broken above `times` the median of the last `window` values; the median ignores earlier spikes."""

    def judge(rows: Sequence[Row], index: int) -> bool | None:
        before = [row[key] for row in rows[:index] if key in row][-window:]
        if key not in rows[index] or len(before) < least:
            return None
        return rows[index][key] > times * median(before)

    return judge


def equal(key: str, value: float) -> Judge:
    """Broken where a monitor has exactly this value."""

    def judge(rows: Sequence[Row], index: int) -> bool | None:
        return rows[index][key] == value if key in rows[index] else None

    return judge


def less(key: str, bound: float) -> Judge:
    """Broken below a bound."""

    def judge(rows: Sequence[Row], index: int) -> bool | None:
        return rows[index][key] < bound if key in rows[index] else None

    return judge


def template_falls(fall: float, window: int = 5) -> Judge:
    """Broken where one template's success has fallen by `fall` since its first steps while the mean has risen."""

    def change(rows: Sequence[Row], key: str) -> float | None:
        values = [row[key] for row in rows if key in row]
        return fmean(values[-window:]) - fmean(values[:window]) if len(values) >= 2 * window else None

    def judge(rows: Sequence[Row], index: int) -> bool | None:
        past = rows[: index + 1]
        keys = {key for row in past for key in row if key.startswith(TEMPLATE)}
        mean = change(past, "success")
        if mean is None or not keys:
            return None
        return mean > 0 and any((found := change(past, key)) is not None and found < -fall for key in keys)

    return judge


RULES = (
    Rule("reward_spread", below("reward_spread", 0.1), 3, 10, "rewards in a group hardly differ any more"),
    Rule("no_kept_group", equal("kept_groups", 0), 2, 5, "no group has anything to teach"),
    Rule("validation", less("validation_success", 0.01), 2, 5, "validation success is below 1 %"),
    Rule("gradient", spike("gradient_norm", 10.0), 1, 3, "the gradient is ten times its usual size"),
    Rule("not_finite", equal("not_finite", 1), 1, 3, "loss or gradient is no number"),
    Rule("repeated_calls", rises("repeated_calls", 0.3, 2.0), 2, 5, "the same call is made again and again"),
    Rule("repetition", halfway("repetition"), 2, 5, "turns repeat themselves word for word"),
    Rule("thinking", below("thinking_share", 0.1, 0.02), 3, 10, "thoughts have shrunk to nothing"),
    Rule("invalid_calls", rises("invalid_calls", 0.5, 2.0), 2, 5, "most calls are malformed"),
    Rule("tool_use", below("tool_use", 0.25, 0.1), 2, 5, "tools are hardly used any more"),
    Rule("truncation", rises("truncation", 0.5, 2.0), 2, 5, "most episodes run into a limit"),
    Rule("entropy_up", rises("entropy", 1.0, 3.0), 2, 5, "the policy has become noise"),
    Rule("entropy_down", below("entropy", 0.1), 5, 0, "the policy hardly explores any more"),
    Rule("pass_at_k", below("pass_at_k", 0.5), 5, 0, "fewer tasks have any success than in the beginning"),
    Rule("mismatch", above("mismatch", 0.02), 1, 0, "engine and trainer disagree about log-probabilities"),
    Rule("tool_failures", above("tool_failure_spread", 0.5), 5, 0, "rewards differ by what tools did"),
    Rule("zero_variance", above("zero_variance", 0.9), 5, 0, "almost no group teaches anything"),
    Rule("template", template_falls(0.3), 3, 0, "one template gets worse while the mean gets better"),
)
"""The stop rules of RAGEN-2's published code come first; bounds of the others are far from what healthy runs do."""
