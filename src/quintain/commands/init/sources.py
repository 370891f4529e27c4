"""What a new project is made from: nothing, an MCP server, a module's functions, an OpenAPI file, documents."""

from __future__ import annotations

import importlib
import json
import os
import random
import shlex
import sys
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from quintain.commands.init.project import Draft, free_place, write_project
from quintain.commands.init.tools import tool_tasks
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task
from quintain.recipe.user_code import somebodys_code

SEED = 1
_ITEMS = ("tea", "bread", "soap", "honey", "rice", "salt", "a pen", "a cup", "a lamp", "a brush")
_PLACES = [
    f"{first} {second}"
    for first in ("Mill", "Oak", "River", "North", "Stone")
    for second in ("Lane", "Gate", "Yard", "Row")
]
"""Where each shop stands: its tasks say so, and no task of one reads like a task of another."""
_OWN_TASKS = (
    "These first tasks only name a call and ask for what it returns; an answer that changes with the day goes stale. "
    "Write tasks as your users would ask them: a `prompt`, the `answer`, and in `setup` the `calls` that must be made "
    '(`{"tool": ..., "arguments": ...}`) and the `plan` that a model may imitate. `doctor` and `run` make calls, at '
    "random too: point the tools at a copy of what you can't afford to lose."
)

_OWN_SERVERS = (
    "every episode starts a server of its own ({seconds:.1f} s here), for not every tool is annotated as read-only: if "
    "no call changes anything, add `stateless = true` to [world.options] in recipe.toml, and all episodes share one"
)


def own(path: Path) -> dict[str, Any]:
    """A project whose world, a small shop, the user replaces."""
    names = free_place(path)
    shops = [_shop(names.folder, number, place) for number, place in enumerate(_PLACES)]
    held_out = shops[::3]
    draft = Draft(
        "own",
        [task for shop in shops if shop not in held_out for task in shop],
        "A world of your own: a shop's price list, to be replaced.",
        improve="Change the world's tools and its rule, then write tasks to match: one JSON object a line.",
        held_out=list(chain.from_iterable(held_out)),
        content="shops",
    )
    return write_project(path, names, draft, str(path))


def from_mcp(path: Path, command: str) -> dict[str, Any]:
    """A project on an MCP server.

    Args:
        path: of the project.
        command: that starts the server, or its URL.

    Raises:
        InputError: the server can't be used, or the project can't be written.
    """
    from quintain.worlds.bridges.mcp import MCPWorld

    names = free_place(path)
    options = _server(command)
    world = type(names.world, (MCPWorld,), {"name": names.folder})
    began = time.perf_counter()
    stateless = all(one.read_only for one in world(**options).toolset())
    seconds = time.perf_counter() - began
    options |= {"stateless": True} if stateless else {}
    destructive = world(**options).destructive
    made = tool_tasks(lambda: world(**options), SEED, lambda tool: tool.name not in destructive)
    draft = Draft(
        "mcp",
        made.tasks,
        f"The tools of the MCP server `{command}` as a world.",
        options=options,
        recipe={"concurrency": 8 if stateless else 4},  # otherwise every episode has a server of its own
        improve=_OWN_TASKS,
        notes=(*made.notes, *([] if stateless else [_OWN_SERVERS.format(seconds=seconds)])),
    )
    return write_project(path, names, draft, f"{path} --from-mcp {shlex.quote(command)}")


def from_functions(path: Path, module: str) -> dict[str, Any]:
    """A project on the functions of a Python module.

    Args:
        path: of the project.
        module: its name, or the path of its file.

    Raises:
        InputError: there is no such module, or its functions can't be tools.
    """
    from quintain.worlds.bridges.functions import FunctionsWorld

    names = free_place(path)
    name, home = _module(module)
    with somebodys_code(f"module {name!r}: import"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise InputError(f"--from-functions {module}: {error}") from None
    world: Any = type(names.world, (FunctionsWorld,), {"name": names.folder, "module": name})
    inside = os.path.relpath(home, path.absolute()) if home else ""
    lines = f"import sys\nfrom pathlib import Path\n\nsys.path.insert(0, str(Path(__file__).parent / {inside!r}))\n\n"
    made = tool_tasks(world, SEED, lambda tool: True)
    draft = Draft(
        "functions",
        made.tasks,
        f"The functions of the module `{name}` as a world.",
        words={"source": name, "path": lines if home else ""},
        improve=_OWN_TASKS,
        notes=made.notes,
    )
    return write_project(path, names, draft, f"{path} --from-functions {shlex.quote(module)}")


def from_openapi(path: Path, file: Path) -> dict[str, Any]:
    """A project on an HTTP API.

    Args:
        path: of the project.
        file: its OpenAPI description, which is copied.

    Raises:
        InputError: the description can't be used.
    """
    from quintain.worlds.bridges.openapi import Api, OpenAPIWorld

    names = free_place(path)
    document = Api(file).document
    world: Any = type(names.world, (OpenAPIWorld,), {"name": names.folder})
    made = tool_tasks(lambda: world(file=str(file)), SEED, lambda tool: tool.read_only)
    draft = Draft(
        "openapi",
        made.tasks,
        f"The API that `{file.name}` describes as a world.",
        files={"openapi.json": json.dumps(document, ensure_ascii=False, indent=1) + "\n"},
        improve=f"{_OWN_TASKS} A key goes into the recipe's `[world.options]`: "
        '`headers = { Authorization = "Bearer $MY_KEY" }`.',
        notes=made.notes,
    )
    return write_project(path, names, draft, f"{path} --from-openapi {shlex.quote(str(file))}")


def from_docs(path: Path, folder: Path) -> dict[str, Any]:
    """A project on a folder of documents, which stay where they are.

    Args:
        path: of the project.
        folder: the documents.

    Raises:
        InputError: nothing in it can be read or asked about.
    """
    from quintain.commands.init.documents import document_tasks
    from quintain.worlds.desk.readers import read_collection

    names = free_place(path)
    collection = read_collection(folder)
    learnt, held_out = document_tasks(names.folder, collection, SEED)
    draft = Draft(
        "documents",
        learnt,
        f"Questions about the {len(collection)} documents of `{folder}`.",
        words={"source": os.path.relpath(folder.absolute(), path.absolute())},
        held_out=held_out,
        content=f"of {len(collection)} documents" + ("" if held_out else ", which are learnt from too"),
        recipe={"dialect": "lines", "turns": 14},  # a small model copies names best in running text
        improve="Add questions as your users ask them: a `prompt`, the `answer`, and in `setup` the `documents` that "
        "must be opened; what is there already shows how.",
    )
    return write_project(path, names, draft, f"{path} --from-docs {shlex.quote(str(folder))}")


SOURCES: dict[str, Callable[[Path, Any], dict[str, Any]]] = {
    "mcp": from_mcp,
    "functions": from_functions,
    "openapi": from_openapi,
    "docs": from_docs,
}


def _server(command: str) -> dict[str, Any]:
    """Options of the world; files are named in full, for the project may be run from elsewhere."""
    if command.startswith(("http://", "https://")):
        return {"url": command}
    try:
        first, *args = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--from-mcp {command!r}: give the command that starts the server ({error})") from None
    return {"command": first, "args": [str(Path(one).absolute()) if Path(one).is_file() else one for one in args]}


def _module(reference: str) -> tuple[str, Path | None]:
    """A module's name, and the folder to find it in; None if it is installed."""
    file = Path(reference)
    if file.suffix == ".py":
        if not file.is_file():
            raise InputError(f"--from-functions: no such file: {file}")
        name, home = file.stem, file.absolute().parent
    else:
        name, home = reference, Path.cwd()
        first = home / reference.split(".")[0]
        if not (first.is_dir() or first.with_suffix(".py").is_file()):
            return name, None
    if str(home) not in sys.path:
        sys.path.insert(0, str(home))
    return name, home


def _shop(world: str, number: int, place: str) -> list[Task]:
    """Three tasks about one shop: two look-ups and a sum."""
    draw = random.Random(f"shop {number}")
    items = draw.sample(_ITEMS, 6)
    prices = {item: draw.randrange(20, 2000) for item in items}
    tasks = []
    for at, chosen in enumerate((items[:1], items[1:2], items[2:4])):
        together = " together" if len(chosen) > 1 else ""
        prompt = f"How many cents in {place}: {' and '.join(chosen)}{together}?"
        setup = {"prices": prices, "items": chosen}
        answer = str(sum(prices[item] for item in chosen))
        template = "sum" if together else "price"
        tasks.append(Task(f"shop{number}-{at}", world, prompt, setup, answer, f"shop{number}", template, ("lang:en",)))
    return tasks
