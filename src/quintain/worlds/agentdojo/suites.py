"""Reads AgentDojo's suites (Debenedetti et al. 2024) from the installed package. Nothing of it is copied into Quintain.

The package is installed without its dependencies, which are every vendor's client library. Its suites and attacks
import a few modules of `agentdojo.agent_pipeline`, whose `__init__` imports all of those clients: while the suites
load, an empty package with the same path stands in for it, and so only what they use is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from quintain.interface.errors import InputError

VERSION = "v1.2.2"
"""Of the benchmark: the tasks as AgentDojo corrected them last."""
INSTALL = "pip install 'quintain[agentdojo]' && pip install --no-deps agentdojo"

_PIPELINE = "agentdojo.agent_pipeline"
_CLIENT = f"{_PIPELINE}.llms.google_llm"  # the module that runs tools takes one constant from there


@cache
def suites() -> dict[str, Any]:
    """The suites by name: `workspace`, `travel`, `banking`, `slack`.

    Raises:
        InputError: the package or one it needs is not installed.
    """
    with _without_clients():
        from agentdojo.task_suite.load_suites import get_suites

        found: dict[str, Any] = dict(get_suites(VERSION))
    return found


def attacked(suite: str, attack: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Every user task with every injection task of a suite.

    Args:
        suite: its name.
        attack: one of AgentDojo's attacks with a fixed wording, such as `important_instructions_no_names`.

    Yields:
        ids of user task and injection task, and the texts the attack puts into the environment by placeholder.

    Raises:
        InputError: there is no such attack.
    """
    one = suites()[suite]
    made = _attack(attack)(one, SimpleNamespace(name="local"))
    for user_id, user in one.user_tasks.items():
        for injection_id, injection in one.injection_tasks.items():
            yield user_id, injection_id, dict(made.attack(user, injection))


def environment(suite: str, task: str, injections: dict[str, str]) -> Any:
    """A fresh environment in the state a user task begins with; nobody else holds any of it."""
    one = suites()[suite]
    loaded = _loaded(suite, tuple(sorted(injections.items()))).model_copy(deep=True)
    return one.user_tasks[task].init_environment(loaded)


@lru_cache(maxsize=64)  # reading the YAML files takes 0.1 s
def _loaded(suite: str, injections: tuple[tuple[str, str], ...]) -> Any:
    return suites()[suite].load_and_inject_default_environment(dict(injections))


def _attack(name: str) -> Any:
    suites()
    with _without_clients():
        from agentdojo.attacks import FixedJailbreakAttack
        from agentdojo.attacks.attack_registry import ATTACKS
    fixed = {one: kind for one, kind in ATTACKS.items() if issubclass(kind, FixedJailbreakAttack)}
    if name not in fixed:
        raise InputError(f"agentdojo has no attack {name!r} with a fixed wording; there are {', '.join(sorted(fixed))}")
    return fixed[name]


@contextmanager
def _without_clients() -> Iterator[None]:
    """Lets modules of `agentdojo` be imported that need no model, without the packages of models' vendors."""
    stand_ins = {name: ModuleType(name) for name in (_PIPELINE, _CLIENT) if name not in sys.modules}
    if _PIPELINE in stand_ins:
        stand_ins[_PIPELINE].__path__ = [str(_folder() / "agent_pipeline")]
    if _CLIENT in stand_ins:
        vars(stand_ins[_CLIENT])["EMPTY_FUNCTION_NAME"] = ""
    sys.modules.update(stand_ins)
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(f"the world agentdojo needs the package agentdojo: {INSTALL} ({error})") from None
    finally:
        for name in stand_ins:
            del sys.modules[name]


def _folder() -> Path:
    found = find_spec("agentdojo")
    if found is None or not found.submodule_search_locations:
        raise InputError(f"the world agentdojo needs the package agentdojo: {INSTALL}")
    return Path(found.submodule_search_locations[0])
