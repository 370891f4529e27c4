"""The curate stage, and the training examples of what it chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from quintain.curation.curate import CURATION, curated
from quintain.curation.curate import curate as choose
from quintain.curation.importing import imported_toolset
from quintain.interface.dialects.base import Dialect
from quintain.interface.example import Example
from quintain.interface.tools import Toolset
from quintain.pipeline.workshop import Workshop
from quintain.progress import progress, say
from quintain.recipe import CurateStage


def curate(workshop: Workshop, stage: CurateStage, folder: Path) -> dict[str, Any]:
    """Chooses what is learnt from rollouts and imports."""
    with progress(stage.name, total=None, unit="episodes") as advance:
        counts = choose(sources(workshop, stage), stage.mix, folder, advance)
    return {**counts.to_json(), "line": counts.line()}


def sources(workshop: Workshop, stage: CurateStage) -> dict[str, Path]:
    """Folders of the episodes it chooses from, by name."""
    own = {name: workshop.folder / name for name in stage.data}
    return own | {str(path): workshop.home / path for path in stage.imports}


def is_curated(folder: Path) -> bool:
    """True for the folder of a curate stage."""
    return (folder / CURATION).is_file()


def lesson_examples(folder: Path, dialect: Dialect, toolset: Callable[[str], Toolset]) -> Iterator[Example]:
    """Training examples of a curated folder.

    Args:
        folder: of a curate stage.
        dialect: renders what has no tokens.
        toolset: of the run's own worlds, by name; imported episodes bring theirs.
    """
    from quintain.training.examples import lesson_example

    unwritten: list[str] = []
    for home, episode, lessons in curated(folder):
        own = imported_toolset(home, episode.digests.toolset)
        tools = toolset(episode.world) if own is None else own
        for lesson in lessons:
            try:
                example = lesson_example(episode, lesson, dialect=dialect, toolset=tools, source="sft:curated")
            except ValueError as error:  # text of others that would not read back as it is
                unwritten.append(f"episode {episode.id}: {error}")
                continue
            if example is not None:
                yield example
    if unwritten:
        say(f"{len(unwritten)} lesson{'s' * (len(unwritten) > 1)} left out, the first: {unwritten[0]}")
