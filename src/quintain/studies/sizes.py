"""A study of several models: the same grid for each, side by side by size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quintain.evaluation.study import Row
from quintain.pipeline.run import write_json, write_text


def file_name(model: str) -> str:
    """A model's reference as the name of a folder.

    >>> file_name("random:8x256"), file_name("owner/name")
    ('random-8x256', 'owner-name')
    """
    return re.sub(r"[^\w.-]+", "-", model).strip("-.")


def write_sizes(rows: Mapping[str, Sequence[Row]], parameters: Mapping[str, int], folder: Path) -> dict[str, Any]:
    """Writes `sizes.md` and `sizes.json`; returns the record, with the lines for a person.

    Args:
        rows: of each model's study; the first setting is what its others are compared with.
        parameters: of each model.
        folder: of all of them.
    """
    models = sorted(rows, key=lambda model: parameters[model])
    lines = [
        "| model | parameters | setting | seeds | pass@1 | difference from the first |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_line(model, parameters[model], row) for model in models for row in rows[model]]
    record = {
        "models": [
            {"model": model, "parameters": parameters[model], "rows": [row.to_json() for row in rows[model]]}
            for model in models
        ]
    }
    write_json(folder / "sizes.json", record)
    write_text(folder / "sizes.md", "\n".join(["# By size of the model", "", *lines]) + "\n")
    return {**record, "lines": [*lines, f"table: {folder / 'sizes.md'}; each model's own beside it"]}


def _line(model: str, parameters: int, row: Row) -> str:
    score, difference = row.estimates["pass1"], row.differences.get("pass1")
    rate = f"{score.value:.3f} [{score.low:.3f}, {score.high:.3f}]" if score else "-"
    one = difference.estimate if difference else None
    change = f"{one.value:+.3f} [{one.low:+.3f}, {one.high:+.3f}]" if one else "-"
    return f"| {model} | {parameters / 1e6:.1f} M | {row.group} | {row.seeds} | {rate} | {change} |"
