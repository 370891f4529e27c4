"""What is wrong with a recipe, in one line that names the key and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError


def numbers(value: Any, key: str = "") -> Iterator[tuple[str, int | float]]:
    """Every number of a parsed recipe with its key."""
    if isinstance(value, int | float):
        yield key.removeprefix("."), value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from numbers(item, f"{key}.{name}")


def explain(error: ValidationError, recipe: type[BaseModel]) -> str:
    """The first mistake.

    Args:
        error: what pydantic found.
        recipe: the model of the whole file.
    """
    first = error.errors()[0]
    (any_stage,) = get_args(recipe.model_fields["stages"].annotation)
    kinds = get_args(get_args(any_stage)[0])
    tags = {get_args(kind.model_fields["kind"].annotation)[0]: kind for kind in kinds}
    place = [part for index, part in enumerate(first["loc"]) if not _is_tag(first["loc"], index, tags)]
    key = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}; allowed: {', '.join(_allowed(recipe, any_stage, first['loc'][:-1], tags))}"
    if first["type"] == "missing":
        return f"missing key {key!r}"
    if first["type"].startswith("union_tag"):
        found = first["input"].get("kind") if isinstance(first["input"], dict) else first["input"]
        return f"{key}.kind: must be one of {', '.join(tags)}, found {found!r}"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return f"{key}: {message}" if key else message
    return f"{key}: {message[0].lower()}{message[1:]}, found {first['input']!r}"


def _is_tag(location: tuple[int | str, ...], index: int, tags: dict[str, Any]) -> bool:
    """pydantic puts the kind of a stage into the location: `stages.0.sft.train`."""
    return index == 2 and location[0] == "stages" and location[index] in tags


def _allowed(owner: Any, any_stage: Any, location: tuple[int | str, ...], tags: dict[str, Any]) -> list[str]:
    """Keys of the table at `location`."""
    for part in location:
        if part in tags and owner is any_stage:
            owner = tags[str(part)]
        elif isinstance(owner, type) and issubclass(owner, BaseModel):
            owner = owner.model_fields[str(part)].annotation
        else:
            owner = get_args(owner)[-1]  # an item of a list or dict
        if NoneType in get_args(owner):
            owner = get_args(owner)[0]
    return list(owner.model_fields) if isinstance(owner, type) and issubclass(owner, BaseModel) else []
