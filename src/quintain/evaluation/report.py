"""The report of a run: `report.json` for programs and one self-contained `report.html` for people.

The page asks for nothing over the network, and nothing that a model, tool or document wrote can run in it:
the data are JSON in which `<`, `>` and `&` are escaped, the script sets text only, never markup, and a
content security policy admits this one script by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from quintain.evaluation.frontier import Point, frontier
from quintain.evaluation.multiple import holm
from quintain.evaluation.summary import Comparison, EvalSummary
from quintain.evaluation.trajectories import (
    EMBED_LIMIT,
    DecodeTokens,
    SampledEpisode,
    Vocabulary,
    choose,
    episode_json,
    spot_check,
)

SCHEMA_VERSION = 1
"""Raised when a key of `report.json` changes its meaning or goes away; new keys do not raise it."""

_CURVE_POINTS = 1_000  # rows of one stage's metrics that the page embeds; report.json keeps all
_SCRIPTS = (
    "base.js",
    "charts.js",
    "sections.js",
    "recovery.js",
    "frontier.js",
    "lineage.js",
    "episode.js",
    "viewer.js",
)


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage of a run.

    Attributes:
        name: unique in the run.
        kind: `base`, `cpt`, `sft`, `grpo`, ...
        evaluation: of the policy after this stage; None if it was not evaluated.
        metrics: rows `{step, loss, tokens, seconds, ...}` of its training, in order; `tokens` and `seconds` so far.
        seconds: wall seconds of the stage.
        notes: lines for a person.
        audit: of an evaluation: what training and tools gave away, distance to training, openings of a sealed pool.
        inputs: what it was made from, as (kind, name); kinds are `pool`, `model`, `file` and `stage`.
    """

    name: str
    kind: str
    evaluation: EvalSummary | None = None
    metrics: Sequence[Mapping[str, Any]] = ()
    seconds: float = 0.0
    notes: Sequence[str] = ()
    audit: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class StageComparison:
    """Paired comparison of the evaluations of two stages, by their names; of one world's tasks, or of all ("")."""

    before: str
    after: str
    result: Comparison
    world: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing the run was to reach; `met` is None where it could not be measured."""

    name: str
    target: str
    reached: str
    met: bool | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything a report is made of.

    Attributes:
        title: heading of the page.
        stages: in the order in which they ran.
        comparisons: paired comparisons between stages.
        episodes: sampled episodes; at most `EMBED_LIMIT` are embedded, see `trajectories.choose`.
        decode_tokens: token ids to texts, one each; None leaves the token view out.
        targets: what was to be reached.
        recipe: text of the recipe.
        machine: what it ran on.
        versions: versions of software and model, digests of data and interface.
        notes: lines for a person.
    """

    title: str
    stages: Sequence[StageReport] = ()
    comparisons: Sequence[StageComparison] = ()
    episodes: Sequence[SampledEpisode] = ()
    decode_tokens: DecodeTokens | None = None
    targets: Sequence[Target] = ()
    recipe: str = ""
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def write_report(run_dir: Path, data: ReportData) -> tuple[Path, Path]:
    """Writes `report.json` and `report.html` into a run's folder, each in one step.

    Returns:
        the two paths.
    """
    record = report_json(data)
    text = json.dumps(record, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    run_dir.mkdir(parents=True, exist_ok=True)
    paths = run_dir / "report.json", run_dir / "report.html"
    _replace(paths[0], text)
    _replace(paths[1], report_html(data, record))
    return paths


def report_json(data: ReportData) -> dict[str, Any]:
    """The report as a JSON object; numbers that are not finite are null.

    Keys: `schema_version`; `title`; `stages`, a list of `{name, kind, seconds, notes, audit, evaluation, metrics}`
    where `evaluation` is null or an `EvalSummary` by its attribute names, and `metrics` the rows of training;
    `comparisons`, a list of `{before, after, world, tasks, left_out, before_pass1, after_pass1, difference, p_value,
    p_value_holm}`, the last adjusted for their number; `frontier`, by unit of cost (`calls`, `tokens`, `price` an
    episode), the evaluated stages that no other beats on success and cost, cheapest first;
    `targets`, a list of `{name, target, reached, met, note}`; `machine`, `versions`, `recipe`, `notes`;
    `episodes`, `{sampled, embedded, limit}`.
    """
    record = {
        "schema_version": SCHEMA_VERSION,
        "title": data.title,
        "stages": [_stage_json(stage) for stage in data.stages],
        "comparisons": _comparisons_json(data.comparisons),
        "frontier": _frontier_json(data.stages),
        "targets": [
            {"name": one.name, "target": one.target, "reached": one.reached, "met": one.met, "note": one.note}
            for one in data.targets
        ],
        "machine": dict(data.machine),
        "versions": dict(data.versions),
        "recipe": data.recipe,
        "notes": list(data.notes),
        "episodes": {
            "sampled": len(data.episodes),
            "embedded": min(len(data.episodes), EMBED_LIMIT),
            "limit": EMBED_LIMIT,
        },
    }
    cleaned: dict[str, Any] = _finite(record)
    return cleaned


def report_html(data: ReportData, record: Mapping[str, Any]) -> str:
    """The page.

    Args:
        data: what the report is made of.
        record: `report_json(data)`.
    """
    vocabulary = Vocabulary()
    samples = choose(data.episodes)
    evaluated = [stage.name for stage in data.stages if stage.evaluation is not None]
    page = {
        **record,
        "stages": [{**stage, "metrics": _thin(stage["metrics"])} for stage in record["stages"]],
        "trajectories": [episode_json(sample, vocabulary, data.decode_tokens) for sample in samples],
        "spot_check": spot_check(samples, evaluated[-1]) if evaluated else [],
        "vocabulary": vocabulary.texts,
    }
    script = "".join(page_file(name) for name in _SCRIPTS)
    return html_page(data.title, page_file("report.css"), script, page)


def html_page(title: str, style: str, script: str, page: Any, connect: str = "'none'") -> str:
    """A page whose script and style are its own and alone may run.

    Args:
        title: of the page.
        style: CSS.
        script: JavaScript; it draws what `page` holds.
        page: JSON, found in the element `data`; numbers that are not finite become null.
        connect: what the script may ask for, as a content security policy says it.
    """
    parts = {
        "title": html.escape(title),
        "policy": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'",
        "style": style,
        "script": script,
        "data": _embed(_finite(page)),
    }
    # One pass, so that a placeholder inside the data stays text.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page_file("report.html"))


def _stage_json(stage: StageReport) -> dict[str, Any]:
    return {
        "name": stage.name,
        "kind": stage.kind,
        "seconds": stage.seconds,
        "notes": list(stage.notes),
        "audit": dict(stage.audit),
        "inputs": [{"kind": kind, "name": name} for kind, name in stage.inputs],
        "evaluation": stage.evaluation.to_json() if stage.evaluation else None,
        "metrics": [dict(row) for row in stage.metrics],
    }


def _frontier_json(stages: Sequence[StageReport]) -> dict[str, list[str]]:
    """Stages on the frontier of success and cost, by unit of cost; units that nobody spent are left out."""
    measured = [(one.name, one.evaluation) for one in stages if one.evaluation]
    found = {}
    for unit in ("calls", "tokens", "price"):
        points = [
            Point(name, one.pass1.value, getattr(one.cost, f"mean_{unit}") or 0.0)
            for name, one in measured
            if one.pass1 is not None
        ]
        if any(point.cost for point in points):
            found[unit] = [point.name for point in frontier(points)]
    return found


def _comparisons_json(comparisons: Sequence[StageComparison]) -> list[dict[str, Any]]:
    adjusted = holm([one.result.difference.p_value for one in comparisons])
    return [_comparison_json(one) | {"p_value_holm": p} for one, p in zip(comparisons, adjusted, strict=True)]


def _comparison_json(one: StageComparison) -> dict[str, Any]:
    result = one.result.to_json()
    return {
        "before": one.before,
        "after": one.after,
        "world": one.world,
        "tasks": result["tasks"],
        "left_out": result["left_out"],
        "before_pass1": result["before"],
        "after_pass1": result["after"],
        "difference": result["difference"]["estimate"],
        "p_value": result["difference"]["p_value"],
    }


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity; both become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _thin(rows: Sequence[Any]) -> list[Any]:
    """Every n-th row and the last one, at most about `_CURVE_POINTS`."""
    step = max(1, math.ceil(len(rows) / _CURVE_POINTS))
    kept = list(rows[::step])
    return kept if not rows or kept[-1] is rows[-1] else [*kept, rows[-1]]


def _embed(value: Any) -> str:
    """JSON that is inert inside a script element: without `<`, `>`, `&`, and in ASCII (lone surrogates included)."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page_file(name: str) -> str:
    """A file of the page: style, script or frame."""
    return resources.files("quintain.evaluation").joinpath("page", name).read_text(encoding="utf-8")


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(text.encode("utf-8", errors="replace"))
    os.replace(partial, path)
