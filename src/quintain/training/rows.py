"""Rows that a stage writes while it trains, a JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

METRICS = "metrics.jsonl"
"""In a stage's folder: a row per step."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows written so far; none of a file that is not there, and not one that a crash or a full disk cut off."""
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]
