"""The commands `import`, `curate` and `export`: trajectories from and for other programs."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from quintain.commands.inspecting import export_inspect
from quintain.curation.config import CurationConfig
from quintain.curation.contamination import Scanner
from quintain.curation.curate import curate
from quintain.curation.exporting import export
from quintain.curation.importing import import_files, imported_toolset
from quintain.curation.items import read_items
from quintain.curation.leak_index import LeakIndex
from quintain.interface.errors import InputError
from quintain.interface.tools import Toolset
from quintain.pipeline.run import RECIPE, read_recipe
from quintain.pipeline.workshop import Workshop


def import_trajectories(files: Sequence[Path], form: str, out: Path, verdict: str | None, strict: bool) -> str:
    """Reads trajectories into a folder; returns what was done in one line."""
    success = None if verdict is None else verdict == "success"
    return f"{out}: {import_files(files, form, out, success=success, strict=strict).line()}"


def curate_folders(folders: Sequence[Path], settings: Sequence[str], out: Path) -> str:
    """Chooses what is learnt from folders of episodes; returns what was done in one line.

    Args:
        folders: stages or imports.
        settings: `key=value`, the value as in a recipe.
        out: for the lessons.

    Raises:
        InputError: a setting is wrong, episodes are of a sealed pool, or nothing is left.
    """
    text = "\n".join(one.replace("=", " = ", 1) for one in settings)
    try:
        config = CurationConfig.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        known = ", ".join(CurationConfig.model_fields)
        raise InputError(f"--set {' '.join(settings)}: {_first(error)}; keys: {known}, texts in quotes") from None
    texts = chain.from_iterable(read_items(one, (".jsonl",)) for one in folders)
    for found in Scanner(LeakIndex({})).scan(texts):  # without pools, canaries alone are found
        raise found.refusal("curate")
    return f"{out}: {curate({str(one): one for one in folders}, config, out).line()}"


def _first(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg'][0].lower()}{found['msg'][1:]}"


def export_trajectories(folder: Path, form: str, out: Path) -> str:
    """Writes the episodes or lessons of a folder, or an evaluation for Inspect; returns what was done in one line."""
    if form == "inspect":
        return export_inspect(folder, out)
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
        toolsets = _world_toolsets(run) if (run / RECIPE).is_file() else []
        found = next((one for one in toolsets if not digest or one.digest == digest), None)
    if found is None:
        raise InputError(
            f"{home}: the tools its episodes were made with (digest {digest[:15]}...) are not there any more"
        )
    return found


@cache
def _world_toolsets(run: Path) -> list[Toolset]:
    recipe, home = read_recipe(run)
    return [one.toolset() for one in Workshop(recipe, home, run).worlds.values()]
