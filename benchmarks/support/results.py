"""What a benchmark leaves: one JSON file of its figures and of the machine they are from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quintain.pipeline.reporting import machine


def write_result(path: Path, figures: Mapping[str, Any]) -> None:
    """Writes the figures, and unless they say so themselves the machine and its load, in one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"machine": {**machine(), "load_1min": os.getloadavg()[0]}, **figures}
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
