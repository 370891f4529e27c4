"""The curate stage, and the training examples of what it chose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quintain.curation.curate import CURATION, curated
from quintain.curation.curate import curate as choose
from quintain.interface.dialects.base import Dialect
from quintain.interface.example import Example
from quintain.interface.tools import Toolset
from quintain.progress import progress
from quintain.recipe import CurateStage
from quintain.workshop import Workshop


def curate(workshop: Workshop, stage: CurateStage, folder: Path) -> dict[str, Any]:
    """Chooses what is learnt from rollouts and imports."""
    sources = {name: workshop.folder / name for name in stage.data}
    sources |= {str(path): workshop.home / path for path in stage.imports}
    with progress(stage.name, total=None, unit="episodes") as advance:
        counts = choose(sources, stage.mix, folder, advance)
    return {**counts.to_json(), "line": counts.line()}


def is_curated(folder: Path) -> bool:
    """True for the folder of a curate stage."""
    return (folder / CURATION).is_file()


def lesson_examples(folder: Path, dialect: Dialect, toolset: Toolset) -> Iterator[Example]:
    """Training examples of a curated folder.

    Args:
        folder: of a curate stage.
        dialect: renders what has no tokens.
        toolset: of the run's world.
    """
    from quintain.training.examples import lesson_example

    for _, episode, lessons in curated(folder):
        for lesson in lessons:
            example = lesson_example(episode, lesson, dialect=dialect, toolset=toolset, source="sft:curated")
            if example is not None:
                yield example
