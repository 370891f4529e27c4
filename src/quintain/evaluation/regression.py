"""Is a checkpoint worse than its baseline by more than a margin, and could this evaluation have told?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from scipy import stats

from quintain.evaluation.intervals import LEVEL, Estimate
from quintain.evaluation.summary import Comparison
from quintain.interface.errors import InputError

POWER = 0.80
"""How often a drop of the minimum detectable size is found."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a paired comparison says of a margin.

    Attributes:
        comparison: baseline before, checkpoint after.
        margin: largest loss of pass@1 that is put up with.
        standing: `worse` (the whole interval of the difference lies below minus the margin), `not_worse` (the whole
            interval lies above it) or `undecided` (the margin lies inside).
        detectable: smallest true loss that this many tasks and clusters find in 80 of 100 evaluations, as judged from
            the width of the interval; above 1 none is.
    """

    comparison: Comparison
    margin: float
    standing: Literal["worse", "not_worse", "undecided"]
    detectable: float

    @property
    def passed(self) -> bool:
        """False only for a loss beyond the margin that chance does not explain."""
        return self.standing != "worse"

    def lines(self) -> list[str]:
        """What a person reads."""
        one, estimate = self.comparison, self.comparison.difference.estimate
        words = {
            "worse": f"worse than the baseline by more than {self.margin:g}",
            "not_worse": f"not worse than the baseline by more than {self.margin:g}",
            "undecided": f"undecided: a loss beyond {self.margin:g} is neither shown nor ruled out",
        }
        found = "no loss" if self.detectable > 1 else f"a true loss of {self.detectable:.3f} or more"
        return [
            f"baseline    pass@1 {_shown(one.before)}",
            f"checkpoint  pass@1 {_shown(one.after)}",
            f"difference  {estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}], "
            f"p = {one.difference.p_value:.4f} (sign flips)",
            f"paired      {one.tasks} tasks in {estimate.clusters} clusters ({one.left_out} scored in one only)",
            f"test        one-sided at {(1 - LEVEL) / 2:.1%}: worse if all of the 95 % interval ({estimate.method}) "
            f"lies below -{self.margin:g}",
            f"power       {found} would be found in {POWER:.0%} of evaluations of this size",
            f"verdict     {words[self.standing]}",
        ]

    def to_json(self) -> dict[str, Any]:
        """A JSON object with fixed keys."""
        return {**asdict(self), "passed": self.passed}


def gate(comparison: Comparison, margin: float) -> Gate:
    """Holds a paired comparison against a margin.

    The minimum detectable loss is the margin plus `(t(0.975) + t(0.80)) / t(0.975)` times the half-width of the
    interval, Student's t with clusters - 1 degrees of freedom: the usual sum of the quantiles of level and power
    (Bloom 1995, "Minimum Detectable Effects", Evaluation Review 19), with the standard error read off the interval.

    Raises:
        InputError: the margin is not from 0 to below 1.
    """
    if not 0 <= margin < 1:
        raise InputError(f"margin {margin:g}: must be at least 0 and below 1, a share of pass@1 such as 0.03")
    estimate = comparison.difference.estimate
    standing: Literal["worse", "not_worse", "undecided"] = "undecided"
    if estimate.high < -margin:
        standing = "worse"
    elif estimate.low > -margin:
        standing = "not_worse"
    freedom = max(1, estimate.clusters - 1)
    level, power = stats.t.ppf([(1 + LEVEL) / 2, POWER], freedom)
    detectable = margin + (estimate.high - estimate.low) / 2 * float(1 + power / level)
    return Gate(comparison, margin, standing, detectable)


def _shown(one: Estimate) -> str:
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
