"""Are these the calls that a task asks for? BFCL's rules for Python calls, on calls that are parsed already.

A task states its answer as calls in which every parameter has a list of values that are all right; `""` among them says
that the parameter may be left out. The rules, as BFCL v4 publishes them ("AST evaluation"):

- As many calls as the answer has, in any order; each call of the answer takes the first call that fits it.
- Every required parameter is given; none that the answer does not know; none is left out unless `""` allows it.
- A value has the type that the function's document states (a whole number may stand for a `float`, a list for a
  `tuple`), or else the type of the answer's own values, which it must then equal.
- Texts are compared without case, spaces and the characters `,./-_*^`, with one kind of quotes: also in a list, and as
  the values of an object. All else is equal or it is not.
- An object's values have lists of right values of their own. Lists of objects are compared in order.

The package's own checker can't be imported without every vendor's library; a test holds this one against its rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_TYPES: dict[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_IGNORED = re.compile(r"[ ,./\-_*^]")

Arguments = Mapping[str, Any]
Answer = Mapping[str, Mapping[str, Sequence[Any]]]
"""One call: the function's name, and for each parameter the values that are right."""


def wrong_calls(
    calls: Sequence[tuple[str, Arguments]], functions: Sequence[Mapping[str, Any]], answer: Sequence[Answer]
) -> str:
    """What is wrong with calls, in one line; "" if nothing is.

    Args:
        calls: names, as the functions' documents spell them, and arguments.
        functions: the documents.
        answer: the calls asked for.
    """
    if len(calls) != len(answer):
        return f"{len(calls)} calls where {len(answer)} are right"
    left = list(calls)
    for expected in answer:
        ((name, right),) = expected.items()
        parameters = next(one["parameters"] for one in functions if one["name"] == name)
        faults = [_wrong_call(call, name, right, parameters) for call in left]
        if "" not in faults:
            return faults[0] if len(faults) == 1 else f"no call fits {name}: {'; '.join(faults)}"
        del left[faults.index("")]
    return ""


def _wrong_call(
    call: tuple[str, Arguments], name: str, right: Mapping[str, Sequence[Any]], parameters: Mapping[str, Any]
) -> str:
    called, arguments = call
    if called != name:
        return f"calls {called or 'no tool'}, not {name}"
    for parameter in parameters["required"]:
        if parameter not in arguments:
            return f"{name}: {parameter} is required"
    for parameter, value in arguments.items():
        if parameter not in parameters["properties"] or parameter not in right:
            return f"{name}: no {parameter} is asked for"
        if not _fits(value, parameters["properties"][parameter], right[parameter]):
            return f"{name}: {parameter} is wrong"
    left_out = [one for one in right if one not in arguments and "" not in right[one]]
    return f"{name}: {left_out[0]} may not be left out" if left_out else ""


def _fits(value: Any, schema: Mapping[str, Any], right: Sequence[Any]) -> bool:
    """Whether a value has the stated type and is one of those that are right."""
    kind = schema["type"]
    stated = _TYPES[kind]
    found = float if kind == "float" and type(value) is int else type(value)
    own = _type_of(right)
    if found is not stated:
        return found is own and value in right
    inner = _TYPES[schema["items"]["type"]] if kind in ("array", "tuple") else None
    if inner is not None and not any(_items_fit(value, one, inner) for one in right):
        return False
    if own not in (None, stated):
        return value in right
    return _equal(value, right, inner)


def _items_fit(values: Sequence[Any], right: Any, inner: type) -> bool:
    """Whether the items of a list have the stated type, or that of a right list's items."""
    return not isinstance(right, list) or all(type(one) in (inner, _type_of(right)) for one in values)


def _type_of(right: Sequence[Any]) -> type | None:
    return next((type(one) for one in right if one != ""), None)


def _equal(value: Any, right: Sequence[Any], inner: type | None) -> bool:
    if isinstance(value, str):
        return _plain(value) in [_plain(one) for one in right if isinstance(one, str)]
    if isinstance(value, dict):
        return any(_same_object(value, one) for one in right if one != "")
    if isinstance(value, list):
        # `""` among the right values, the parameter left out, is as good as a list without items
        lists = [list(one) for one in right]
        if inner is dict:
            return any(_same_objects(value, one) for one in lists)
        return [_plain(one) for one in value] in [[_plain(item) for item in one] for one in lists]
    return value in right


def _same_objects(values: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(values) == len(right) and all(
        isinstance(one, dict) and _same_object(one, expected) for one, expected in zip(values, right, strict=True)
    )


def _same_object(value: Mapping[str, Any], right: Mapping[str, Sequence[Any]]) -> bool:
    return all(
        key in right and _plain(one) in [_plain(allowed) for allowed in right[key]] for key, one in value.items()
    ) and all(key in value or "" in allowed for key, allowed in right.items())


def _plain(value: Any) -> Any:
    """A text without what makes no difference; anything else as it is."""
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value
