"""The functions of a Python module as a world's tools."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import ClassVar, Literal

from quintain.interface.errors import InputError
from quintain.interface.tools import Toolset, tool
from quintain.worlds.bridges.world import BridgedWorld


class FunctionsWorld(BridgedWorld):
    """The public functions of a module; tasks come from a file and are judged as `BridgedWorld` says.

    What the module keeps in its own variables is shared by all episodes: put such state back in a `reset` of your own.

    Attributes:
        module: the module's name, as `import` takes it.
    """

    name: ClassVar[str] = "functions"
    snapshots: ClassVar[Literal["exact", "replay", "none"]] = "replay"
    module: ClassVar[str] = ""

    def toolset(self) -> Toolset:
        """The module's functions.

        Raises:
            InputError: there is no such module, it has no function, or a parameter has no annotation.
        """
        return functions_of(import_module(self.module))


def functions_of(module: ModuleType) -> Toolset:
    """Every public function that a module defines, with its docstring and annotations; `@tool` adds what it says.

    Raises:
        InputError: there is none, or a parameter has no annotation.
    """
    found = [
        one
        for name, one in vars(module).items()
        if inspect.isfunction(one) and one.__module__ == module.__name__ and not name.startswith("_")
    ]
    if not found:
        raise InputError(f"module {module.__name__!r} defines no public function")
    return Toolset.of(*(one if hasattr(one, "__quintain_tool__") else tool(one) for one in found))
