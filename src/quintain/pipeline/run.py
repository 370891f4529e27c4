"""Runs a recipe: a folder for the run, one folder per stage, finished stages skipped by fingerprint."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel

from quintain.curation.review import said_of
from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.interface.files import files_under, replacing
from quintain.interface.reading import JOURNAL
from quintain.interface.words import encodable
from quintain.pipeline.curate import sources
from quintain.pipeline.following import followed
from quintain.pipeline.workshop import LOCK, Workshop
from quintain.progress import log_to, say
from quintain.recipe import CurateStage, Recipe, recipe_from_table
from quintain.synthesis.teacher import own_prompts

MANIFEST = "manifest.json"
LOG = "log.txt"
"""What was said while the run was under way, with the time."""
RECIPE = "recipe.json"
"""The recipe as it ran, defaults filled in and scaled, and the folder its paths are relative to."""

StageFunction = Callable[[Workshop, Any, Path], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Finished:
    """A stage that is done: its manifest, as read from its folder."""

    name: str
    kind: str
    fingerprint: str
    seconds: float
    result: dict[str, Any]


def run_recipe(
    recipe: Recipe,
    text: str,
    home: Path,
    folder: Path,
    stages: dict[str, StageFunction],
    accept_drift: bool = False,
) -> list[Finished]:
    """Runs every stage that is not finished yet.

    Args:
        recipe: what to run.
        text: the recipe's file, kept in the run's folder.
        home: the folder its paths are relative to.
        folder: of the run; made if missing, resumed if not.
        stages: what each kind of stage does.
        accept_drift: go on with models that were trained on another interface.

    Raises:
        InputError: another process works in the folder, or a stage finds its input wrong.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a run needs a folder, give another --out")
    folder.mkdir(parents=True, exist_ok=True)
    with only_user_of(folder), log_to(folder / LOG), followed(folder, recipe.name, recipe.metrics_to):
        write_text(folder / "recipe.toml", text)
        write_json(folder / RECIPE, {"home": str(home), "recipe": recipe.model_dump(mode="json")})
        workshop = Workshop(recipe, home, folder, accept_drift)
        workshop.check_lock()
        workshop.pools.save(folder)
        done: list[Finished] = []
        for stage in recipe.stages:
            fingerprint = _fingerprint(workshop, stage, done)
            done.append(_run_stage(workshop, stage, fingerprint, stages[stage.kind]))
        return done


def done_before(recipe: Recipe, home: Path, folder: Path) -> list[Finished]:
    """The stages that `run_recipe` would find done, with the same arguments."""
    workshop = Workshop(recipe, home, folder)
    done: list[Finished] = []
    for stage in recipe.stages:
        found = read_manifest(folder / stage.name)
        if found is not None and _is_done(found, _fingerprint(workshop, stage, done)):
            done.append(_finished(found))
    return done


def _fingerprint(workshop: Workshop, stage: Any, done: list[Finished]) -> str:
    """Digest of everything a stage's result depends on: its keys, the interface, and the stages before it.

    Keys that are not set are left out: one that a later version adds makes nothing done undone.
    """
    inputs = {one.name: one.fingerprint for one in done if one.name in _references(stage)}
    return digest(
        {
            "stage": stage.model_dump(mode="json", exclude_none=True),
            "inputs": inputs,
            "model": workshop.recipe.model.model_dump(mode="json", exclude_none=True),
            "world": _worlds(workshop),
            "budget": workshop.recipe.budget.model_dump(mode="json", exclude_none=True),
            "faults": _named(workshop.recipe.faults, getattr(stage, "faults", None)),
            "program": _named(workshop.recipe.programs, getattr(stage, "program", None)),
            "program_files": _program_files(workshop, stage),
            "corrections": _corrections(workshop.home, stage),
            **_judgements(workshop, stage),
            "pools": [workshop.pool_digest(name) for name in _pools(stage)],
            "seed": workshop.recipe.seed,
            "digests": workshop.digest_table(),
            **_texts(workshop, stage),
            **_prompts(workshop.home, stage),
            **{str(path): _import_digest(workshop.home / path) for path in getattr(stage, "imports", ())},
        }
    )


def _worlds(workshop: Workshop) -> Any:
    sections = [one.section.model_dump(mode="json", exclude_none=True) for one in workshop.worlds.values()]
    return sections if len(sections) > 1 else sections[0]


def _named(sections: Mapping[str, BaseModel], name: str | None) -> dict[str, Any] | None:
    return sections[name].model_dump(mode="json", exclude_none=True) if name else None


def _program_files(workshop: Workshop, stage: Any) -> dict[str, str]:
    """Digests of the files beside the recipe that a stage's program names: another text is another agent."""
    name = getattr(stage, "program", None)
    if name is None:
        return {}
    section = workshop.recipe.programs[name]
    module = (section.function or "").partition(":")[0].replace(".", "/")
    paths = [workshop.home / one for one in (f"{module}.py", *section.command)]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def _texts(workshop: Workshop, stage: Any) -> dict[str, Any]:
    """Name, size and time of every text file a stage reads: a corpus may be too large to be read for a digest."""
    named = [workshop.home / one for key in ("text", "documents") for one in getattr(stage, key, ())]
    files = sorted(file for path in named for file in files_under(path) if file.is_file())
    found = [[encodable(str(file)), file.stat().st_size, str(file.stat().st_mtime_ns)] for file in files]
    return {"texts": found} if named else {}


def _prompts(home: Path, stage: Any) -> dict[str, Any]:
    """The user's own prompts of a stage's teacher and judge: another prompt is another sample."""
    folders = [one.prompts for one in (getattr(stage, "teacher", None), getattr(stage, "judge", None)) if one]
    texts = [own_prompts(home / one) for one in folders if one]
    return {"prompts": texts} if texts else {}


def _import_digest(folder: Path) -> str:
    path = folder / JOURNAL
    if not path.is_file():
        raise InputError(f"no import in {folder}: it has no {JOURNAL}; `quintain import FILE --out {folder}` makes one")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _corrections(home: Path, stage: Any) -> str | None:
    path = getattr(stage, "corrections", None)
    return (home / path).read_text(encoding="utf-8", errors="replace") if path else None


def _judgements(workshop: Workshop, stage: Any) -> dict[str, Any]:
    """What people said of the episodes that a curate stage chooses from."""
    if not isinstance(stage, CurateStage):
        return {}
    folders = sources(workshop, stage)
    said = [[name, one.episode, one.flag] for name, path in folders.items() for one in said_of(path).values()]
    return {"judgements": sorted(said)} if said else {}


def _pools(stage: Any) -> list[str]:
    return [name for key in ("pool", "validation") if (name := getattr(stage, key, None))]


def _references(stage: Any) -> set[str]:
    named = {getattr(stage, key) for key in ("agent", "start", "model", "replay") if hasattr(stage, key)}
    return named | set(getattr(stage, "data", ()))


def _run_stage(workshop: Workshop, stage: Any, fingerprint: str, work: StageFunction) -> Finished:
    folder = workshop.folder / stage.name
    found = read_manifest(folder)
    if found is not None and _is_done(found, fingerprint):
        say(f"{stage.name}: done before")
        return _finished(found)
    if found is not None and found["fingerprint"] != fingerprint:
        _set_aside(folder)
        found = None
    folder.mkdir(parents=True, exist_ok=True)
    before = found["seconds"] if found else 0.0
    manifest = {
        "name": stage.name,
        "kind": stage.kind,
        "status": "running",
        "fingerprint": fingerprint,
        "stage": stage.model_dump(mode="json"),
        "versions": workshop.versions(),
        "seed": workshop.recipe.seed,
        "seconds": before,
        "result": {},
    }
    write_json(folder / MANIFEST, manifest)
    say(f"{stage.name}: {stage.kind} ...")
    began = time.monotonic()
    try:
        result = work(workshop, stage, folder)
        if (folder / "model").is_dir():  # a model knows the tools it was trained with
            write_text(folder / "model" / LOCK, workshop.lock_path().read_text(encoding="utf-8"))
    finally:
        manifest["seconds"] = before + time.monotonic() - began
        write_json(folder / MANIFEST, manifest)
    manifest |= {"status": "done", "result": result, "digests": workshop.digest_table()}
    write_json(folder / MANIFEST, manifest)
    drop_checkpoints(folder)
    say(f"{stage.name}: {result.get('line', 'done')} ({manifest['seconds']:.0f} s)")
    return _finished(manifest)


def drop_checkpoints(folder: Path) -> None:
    """Removes what a training stage resumes and rolls back from: several times its model, of no use once it is done."""
    for name in ("checkpoints", "good"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _is_done(manifest: dict[str, Any], fingerprint: str) -> bool:
    return bool(manifest["fingerprint"] == fingerprint and manifest["status"] == "done")


def _finished(manifest: dict[str, Any]) -> Finished:
    return Finished(
        manifest["name"], manifest["kind"], manifest["fingerprint"], manifest["seconds"], manifest["result"]
    )


def finished(folder: Path) -> list[Finished]:
    """The finished stages of a run, in its recipe's order.

    Raises:
        InputError: the folder holds no run, or a manifest is damaged.
    """
    recipe, _ = read_recipe(folder)
    manifests = (read_manifest(folder / stage.name) for stage in recipe.stages)
    return [_finished(one) for one in manifests if one is not None and one["status"] == "done"]


def read_recipe(folder: Path) -> tuple[Recipe, Path]:
    """The recipe a run's folder was made with, and the folder its paths are relative to.

    Raises:
        InputError: the folder holds no run.
    """
    path = folder / RECIPE
    if not path.is_file():
        raise InputError(f"{folder} is no run: it has no {RECIPE}")
    record = _read_record(path, ("recipe", "home"), "run the recipe again")
    return recipe_from_table(record["recipe"], str(path)), Path(record["home"])


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a stage's folder; None if there is none.

    Raises:
        InputError: it is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    return _read_record(
        path, ("name", "kind", "status", "fingerprint", "seconds", "result"), "remove the folder to run the stage again"
    )


def _read_record(path: Path, keys: tuple[str, ...], remedy: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, or no text
        raise InputError(f"{path}: damaged ({error}); {remedy}") from None
    missing = [key for key in keys if not isinstance(record, dict) or key not in record]
    if missing:
        raise InputError(f"{path}: damaged (no {missing[0]!r}); {remedy}")
    return record


def _set_aside(folder: Path) -> None:
    """Keeps what an older recipe made under another name: nothing is lost."""
    number = 1
    while (aside := folder.with_name(f"{folder.name}.old{number}")).exists():
        number += 1
    shutil.move(folder, aside)
    say(f"{folder.name}: the recipe changed; the earlier result is kept in {aside.name}")


@contextmanager
def only_user_of(folder: Path) -> Iterator[None]:
    """Keeps other processes out of a run's folder.

    Raises:
        InputError: another one works in it.
    """
    file: IO[str] = (folder / ".lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        raise InputError(f"{folder} is in use by process {file.read().strip() or '?'}") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    try:
        yield
    finally:
        file.close()


def write_json(path: Path, value: Any) -> None:
    """Writes JSON in one step, so that a reader sees the old file or the new one."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file in one step, on disk when it returns; half characters, which a model may send, become `?`."""
    with replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))
