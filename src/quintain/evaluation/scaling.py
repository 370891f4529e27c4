"""How a score grows with training tokens: two laws, the largest point held out, silence where there is too little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from quintain.interface.errors import InputError

LEAST_POINTS = 5
"""Different amounts of tokens a fit needs: each law has three parameters, and one point is held out."""

DRAWS = 200
"""Bootstrap draws of the points."""


@dataclass(frozen=True, slots=True)
class Law:
    """One law, fitted.

    Attributes:
        name: `logarithm` is `a + b ln(1 + D / D0)`, `power` is `a - b (1 + D / D1)^-c`; `D1` is the least above 0.
        parameters: `a`, `b` and the logarithm of `D0 / D1` or of `c`.
        predicted: score at the largest amount, from the smaller ones alone.
        low: lower end of its 95 % percentile interval over bootstrap draws of the points.
        high: upper end.
        error: predicted minus measured at the largest amount.
    """

    name: str
    parameters: tuple[float, ...]
    predicted: float
    low: float
    high: float
    error: float

    def to_json(self) -> dict[str, Any]:
        """For a report."""
        return asdict(self)


Curve = Callable[[np.ndarray, np.ndarray], np.ndarray]


def fit_scaling(tokens: Sequence[float], scores: Sequence[float], seed: int = 0) -> list[Law]:
    """Fits both laws to all amounts but the largest, and predicts that one.

    Args:
        tokens: of training, one for each point; 0 is a model without it.
        scores: measured.
        seed: of the bootstrap.

    Raises:
        InputError: fewer than `LEAST_POINTS` different amounts of tokens.
    """
    amounts = sorted(set(tokens))
    if len(amounts) < LEAST_POINTS:
        raise InputError(
            f"a fit of score against tokens needs {LEAST_POINTS} different amounts of tokens, found {len(amounts)}"
        )
    x, y = np.asarray(tokens, dtype=float), np.asarray(scores, dtype=float)
    scale = min(amount for amount in amounts if amount > 0)
    known = x < amounts[-1]
    measured = float(y[~known].mean())
    points = (x[known] / scale, y[known], amounts[-1] / scale, measured, seed)
    return [_law(name, curve, start, *points) for name, curve, start in _LAWS]


def _logarithm(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.asarray(p[0] + p[1] * np.log1p(x / np.exp(p[2])))


def _power(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.asarray(p[0] - p[1] * (1 + x) ** -np.exp(p[2]))


_LAWS: tuple[tuple[str, Curve, tuple[float, float, float]], ...] = (
    ("logarithm", _logarithm, (0.0, 0.1, 0.0)),
    ("power", _power, (0.5, 0.5, 0.0)),
)
"""The third parameter is a logarithm, so that scale and exponent stay positive."""


def _law(
    name: str,
    curve: Curve,
    start: tuple[float, float, float],
    x: np.ndarray,
    y: np.ndarray,
    largest: float,
    measured: float,
    seed: int,
) -> Law:
    fitted = _fit(curve, start, x, y)
    predicted = float(curve(fitted, np.asarray(largest)))
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(DRAWS):
        chosen = rng.integers(0, len(x), len(x))
        drawn.append(float(curve(_fit(curve, fitted, x[chosen], y[chosen]), np.asarray(largest))))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Law(name, tuple(map(float, fitted)), predicted, float(low), float(high), predicted - measured)


def _fit(curve: Curve, start: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found = least_squares(lambda p: curve(p, x) - y, np.asarray(start, dtype=float), bounds=(-10.0, 10.0))
    return np.asarray(found.x)
