"""Code and tasks of the user's own: imported, run and checked so that whatever is wrong is one line that says where."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quintain.harness.world import World
from quintain.interface.canonical import canonical_json
from quintain.interface.errors import InputError, QuintainError, describe
from quintain.interface.tasks import Task, task_from_json


@contextmanager
def somebodys_code(what: str) -> Iterator[None]:
    """Runs code of the user's own: whatever it raises becomes one line that says where.

    Raises:
        InputError: the code raised.
    """
    try:
        yield
    except QuintainError:
        raise
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        raise InputError(" ".join(f"{what} fails: {describe(error)} ({place})".split())) from error


def load_world(reference: str, home: Path) -> type[World]:
    """Imports a world's class from `module:Class`; `home` is searched first.

    Raises:
        InputError: there is no such module or class, or it is no world.
    """
    found = _load("world", reference, "must be spelled module:Class", home)
    if not (isinstance(found, type) and issubclass(found, World)):
        raise InputError(f"world {reference!r}: {reference.partition(':')[0]} has no World of that name")
    return found


def load_function(reference: str, home: Path) -> Callable[..., Awaitable[Any]]:
    """Imports a program's async function from `module:function`; `home` is searched first.

    Raises:
        InputError: there is no such module or function, or it would block: it is not async.
    """
    found = _load("program", reference, "must be spelled module:function", home)
    if not inspect.iscoroutinefunction(found):
        raise InputError(f"program {reference!r} must be an async function; give one that blocks as `command`")
    function: Callable[..., Awaitable[Any]] = found
    return function


def _load(what: str, reference: str, form: str, home: Path) -> object:
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise InputError(f"{what} {reference!r} {form}")
    if str(home) not in sys.path:
        sys.path.insert(0, str(home))
    with somebodys_code(f"{what} {reference!r}: import"):
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            own = module_name.startswith("quintain.worlds.") and module_name != error.name
            remedy = "pip install 'quintain[quickstart]'" if own else "is it installed, or beside the recipe?"
            raise InputError(f"{what} {reference!r}: {error}; {remedy}") from None
    return getattr(module, name, None)


def check_tasks(tasks: Sequence[Task], where: str, worlds: Collection[str]) -> None:
    """Refuses what is no task of these worlds, ids that occur twice, an answer left out, and what has no JSON form.

    Raises:
        InputError: names the first such task.
    """
    seen: set[str] = set()
    for task in tasks:
        if not isinstance(task, Task):
            raise InputError(f"{where}: must hold Tasks, found {type(task).__name__}")
        if task.world not in worlds:
            known = " or ".join(map(repr, worlds))
            raise InputError(f"{where}: task {task.id!r} is of world {task.world!r}, not {known}")
        if task.id in seen:
            raise InputError(f"{where}: two tasks have the id {task.id!r}; ids must differ")
        seen.add(task.id)
        with somebodys_code(f"{where}: task {task.id!r}"):
            canonical_json(task_from_json(task.to_json(), f"{where}: task {task.id!r}").to_json())
    _check_answers(tasks, where)


def _check_answers(tasks: Sequence[Task], where: str) -> None:
    """Tasks of one template are judged alike: if one has an answer, none may lack it."""
    answered = {(task.world, task.template) for task in tasks if task.answer is not None and task.template}
    for task in tasks:
        if task.answer is None and (task.world, task.template) in answered:
            raise InputError(
                f"{where}: task {task.id!r} has no answer, and other tasks of its template {task.template!r} have one; "
                "add it, or give the task another template"
            )
