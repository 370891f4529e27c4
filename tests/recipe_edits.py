"""Changes to a recipe's file, as a person would make them."""

from __future__ import annotations

from pathlib import Path


def edit(path: Path, old: str, new: str) -> None:
    """Replaces a text that must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def set_stages(path: Path, stages: str) -> None:
    """Puts other stages in place of a recipe's."""
    text = path.read_text()
    path.write_text(text[: text.index("[[stages]]")] + stages)
