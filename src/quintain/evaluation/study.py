"""The result of a study: every setting's rates with intervals, and its difference from the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from xml.sax.saxutils import escape

from quintain.evaluation.intervals import Difference, Estimate
from quintain.evaluation.recovery import recovery_difference, recovery_of
from quintain.evaluation.summary import compare, summarise
from quintain.interface.episode import Episode

MEASURES = ("pass1", "recovery", "repeat")
"""Success; recovery of struck episodes; repeats of failed calls (less is better)."""

_TITLES = {"pass1": "pass@1", "recovery": "recovery rate", "repeat": "repeat rate"}
_WIDTH, _LEFT, _PANEL, _GAP, _ROW, _TOP = 900, 190, 210, 24, 26, 40


@dataclass(frozen=True, slots=True)
class Row:
    """One setting.

    Attributes:
        group: its name.
        seeds: how many were trained.
        estimates: by measure, over the episodes of all seeds, tasks first; None where there was nothing to rate.
        by_seed: the values of the single seeds, by measure.
        differences: from the first setting, paired by task; none for the first itself.
        data: what it was trained on, in words: a share that was asked for may be more than there was.
    """

    group: str
    seeds: int
    estimates: Mapping[str, Estimate | None]
    by_seed: Mapping[str, Sequence[float | None]]
    differences: Mapping[str, Difference]
    data: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def rows_of(groups: Mapping[str, Sequence[Sequence[Episode]]], data: Mapping[str, str]) -> list[Row]:
    """A row for each setting.

    Args:
        groups: evaluations by the setting's name, one list of episodes for each seed; the first is what the others
            are compared with.
        data: what each setting was trained on, in words.
    """
    pooled = {name: [episode for one in evaluations for episode in one] for name, evaluations in groups.items()}
    first = next(iter(pooled.values()), [])
    rows: list[Row] = []
    for name, evaluations in groups.items():
        seeds = [_estimates(one) for one in evaluations]
        rows.append(
            Row(
                group=name,
                seeds=len(evaluations),
                estimates=_estimates(pooled[name]),
                by_seed={measure: [_value(one[measure]) for one in seeds] for measure in MEASURES},
                differences=_differences(first, pooled[name]) if rows else {},
                data=data.get(name, ""),
            )
        )
    return rows


def _estimates(episodes: Sequence[Episode]) -> dict[str, Estimate | None]:
    found = recovery_of([episode for episode in episodes if episode.scored])
    pass1 = summarise(episodes, planned=len(episodes)).pass1
    return {"pass1": pass1, "recovery": found.struck.recovery, "repeat": found.repeat}


def _value(estimate: Estimate | None) -> float | None:
    return estimate.value if estimate else None


def _differences(before: Sequence[Episode], after: Sequence[Episode]) -> dict[str, Difference]:
    recovery = recovery_difference(before, after)
    found = {"pass1": compare(before, after).difference}
    return found | ({"recovery": recovery} if recovery else {})


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    head = ["setting", "data", "seeds", *(_TITLES[one] for one in MEASURES), "recovery, difference from the first"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        cells = [_cell(row.estimates[measure], row.by_seed[measure]) for measure in MEASURES]
        lines.append([row.group, row.data or "-", str(row.seeds), *cells, _difference(row.differences.get("recovery"))])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(estimate: Estimate | None, seeds: Sequence[float | None]) -> str:
    if estimate is None:
        return "-"
    known = [value for value in seeds if value is not None]
    spread = f"; seeds {min(known):.2f} to {max(known):.2f}" if len(known) > 1 else ""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]{spread}"


def _difference(found: Difference | None) -> str:
    if found is None:
        return "-"
    one = found.estimate
    return f"{one.value:+.2f} [{one.low:+.2f}, {one.high:+.2f}], p = {found.p_value:.3f}"


def plot(rows: Sequence[Row]) -> str:
    """The rows as an SVG: a panel for each measure, a line for each setting, 95 % intervals as whiskers."""
    height = _TOP + _ROW * len(rows) + 20
    parts = [_text(8, _TOP + _ROW * number + 5, row.group) for number, row in enumerate(rows)]
    for place, measure in enumerate(MEASURES):
        left = _LEFT + place * (_PANEL + _GAP)
        parts.append(_text(left, 18, _TITLES[measure]))
        parts += _axis(left, height)
        parts += [_mark(left, _TOP + _ROW * number, row.estimates[measure]) for number, row in enumerate(rows)]
    size = f'width="{_WIDTH}" height="{height}" style="font: 13px sans-serif; background: #fff"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>\n'


def _axis(left: int, height: int) -> list[str]:
    places = {tick: left + tick * _PANEL for tick in (0, 0.5, 1)}
    return [
        f'<line x1="{x}" x2="{x}" y1="26" y2="{height - 18}" stroke="#ddd"/>' + _text(x - 8, height - 4, f"{tick:g}")
        for tick, x in places.items()
    ]


def _mark(left: int, y: int, estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    low, value, high = (round(left + one * _PANEL, 1) for one in (estimate.low, estimate.value, estimate.high))
    line = f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke="#245" stroke-width="2"/>'
    return line + f'<circle cx="{value}" cy="{y}" r="5" fill="#245"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y}">{escape(text)}</text>'
