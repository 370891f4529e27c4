"""The commands `import` and `export`: trajectories from and for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from quintain.curation.exporting import export
from quintain.curation.importing import import_files, imported_toolset
from quintain.interface.errors import InputError
from quintain.interface.tools import Toolset
from quintain.pipeline import RECIPE, read_recipe
from quintain.workshop import Workshop


def import_trajectories(files: Sequence[Path], form: str, out: Path, verdict: str | None, strict: bool) -> str:
    """Reads trajectories into a folder; returns what was done in one line."""
    success = None if verdict is None else verdict == "success"
    return f"{out}: {import_files(files, form, out, success=success, strict=strict).line()}"


def export_trajectories(folder: Path, form: str, out: Path) -> str:
    """Writes the episodes or lessons of a folder; returns what was done in one line."""
    return f"{out}: {export(folder, form, out, tools_of).line()}"


def tools_of(home: Path, digest: str) -> Toolset:
    """The tools an episode was made with.

    Args:
        home: folder of its journal: a stage of a run, or an import.
        digest: of the toolset.

    Raises:
        InputError: neither the import nor the run's world has these tools.
    """
    found = imported_toolset(home, digest)
    if found is None:
        run = home.resolve().parent
        found = _world_toolset(run) if (run / RECIPE).is_file() else None
    if found is None or (digest and found.digest != digest):
        raise InputError(
            f"{home}: the tools its episodes were made with (digest {digest[:15]}...) are not there any more"
        )
    return found


@cache
def _world_toolset(run: Path) -> Toolset:
    recipe, home = read_recipe(run)
    return Workshop(recipe, home, run).world().toolset()
