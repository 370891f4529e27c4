"""The API classes of BFCL's multi-turn tasks: made fresh, called by name, compared.

The classes are the package's own. Its way of running them is not used: it keeps the instances in module globals, where
a second attempt finds what the first one left, and hands a model's text to `eval`. Here instances belong to whoever
made them, arguments are JSON values, and the calls of the reference solutions are read as literals.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any

from quintain.worlds.bfcl.wheel import documented

MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""Module and function document of each class."""

_PLACE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_ABOUT = "Tool description: "

Apis = dict[str, Any]
"""Instances by the name of their class."""

Step = tuple[str, dict[str, Any]]
"""A call: name and arguments."""


def made(classes: Iterable[str], scenario: Mapping[str, Any], long_context: bool) -> Apis:
    """Fresh instances in the state a task begins with.

    Args:
        classes: names.
        scenario: for each class what its state is loaded from; the instances keep parts of it.
        long_context: the task is of the category that hides its facts among many others.
    """
    apis: Apis = {}
    for name in classes:
        apis[name] = _class(name)()
        if hasattr(apis[name], "_load_scenario"):  # one class has no state
            apis[name]._load_scenario(scenario.get(name, {}), long_context=long_context)
    return apis


def functions(classes: Iterable[str]) -> list[dict[str, Any]]:
    """Function documents of some classes; each describes the function, not its whole class as BFCL's does."""
    return [_brief(one) for name in classes for one in documented(MODULES[name])]


def _brief(document: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: deepcopy(document[key]) for key in ("name", "parameters")}
    if made["name"] == "close_ticket":
        # a reference solution passes a text, and BFCL holds no call against its document
        made["parameters"]["properties"]["ticket_id"]["type"] = "any"
    return made | {"description": document["description"].rpartition(_ABOUT)[2]}


def run(apis: Apis, step: Step) -> str:
    """Calls a function; returns what BFCL shows a model.

    Raises:
        Exception: whatever the function raises.
    """
    name, arguments = step
    owner = next(one for one in apis.values() if not name.startswith("_") and callable(getattr(one, name, None)))
    return shown(getattr(owner, name)(**arguments))


def shown(value: Any) -> str:
    """A result as text: texts as they are, objects as JSON where they have any."""
    if isinstance(value, dict):
        try:
            return json.dumps(value)
        except (TypeError, ValueError):  # numbers of mpmath have no JSON
            return str(value)
    return str(value)


def failed(error: Exception) -> str:
    """The response that stands for an exception."""
    return f"Error during execution: {error}"


def play(apis: Apis, steps: Iterable[Step]) -> list[str]:
    """The responses to calls, exceptions among them."""
    return [_response(apis, one) for one in steps]


def _response(apis: Apis, step: Step) -> str:
    try:
        return run(apis, step)
    except Exception as error:
        return failed(error)


def steps(written: Sequence[str], classes: Iterable[str]) -> list[Step]:
    """Calls of a reference solution, which are Python calls with literal arguments.

    Raises:
        ValueError: an argument is no literal.
    """
    owners = [_class(name) for name in classes]
    return [_step(one, owners) for one in written]


def _step(written: str, owners: Sequence[type]) -> Step:
    call = ast.parse(written, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"no plain call: {written}")
    name = call.func.id
    method = next(getattr(one, name) for one in owners if hasattr(one, name))
    names = list(inspect.signature(method).parameters)[1:]  # without `self`
    placed = {key: ast.literal_eval(value) for key, value in zip(names, call.args, strict=False)}
    return name, placed | {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


def difference(apis: Apis, expected: Apis) -> str:
    """The first public attribute that is not as expected, as `Class.attribute`; "" if all are."""
    for name, one in expected.items():
        for key, value in vars(one).items():
            if not key.startswith("_") and getattr(apis[name], key, None) != value:
                return f"{name}.{key}"
    return ""


def missing(responses: Iterable[str], expected: Iterable[str]) -> str:
    """An expected response that is not among the responses, in any order, each counted once; "" if none is missing."""
    return next((Counter(expected) - Counter(responses)).elements(), "")


def _class(name: str) -> type:
    found: type = getattr(import_module(f"{_PLACE}.{MODULES[name]}"), name)
    return found
