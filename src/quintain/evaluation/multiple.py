"""Many comparisons at once: one small p-value among twenty is what chance gives."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values `[tests]`, in the given order: below 0.05 holds for the whole family at 5 %.

    Holm 1979, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of Statistics 6):
    the i-th smallest of m is multiplied by m - i + 1, and none may be smaller than one before it. It needs no
    independence of the tests.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
