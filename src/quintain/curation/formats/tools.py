"""Descriptions of tools as other programs write them: the OpenAI form, bare, or as JSON text."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from quintain.curation.formats.columns import Rejected
from quintain.interface.errors import InputError
from quintain.interface.tools import Tool, Toolset


def write_tools(toolset: Toolset) -> list[dict[str, Any]]:
    """The tools in the OpenAI form."""
    return [
        {
            "type": "function",
            "function": {"name": one.name, "description": one.description, "parameters": one.parameters},
        }
        for one in toolset
    ]


def read_tools(described: Any) -> Toolset:
    """The toolset of a record; empty if it describes none.

    Args:
        described: a list of tools, or the JSON text of one, or None.

    Raises:
        Rejected: it is no such list, or a schema is not valid.
    """
    text = described if isinstance(described, str) else json.dumps(described or [], ensure_ascii=False)
    return _read(text)


@lru_cache(maxsize=1024)
def _read(text: str) -> Toolset:
    """Records of one file share their tools, and compiling schemas is slow."""
    try:
        listed = json.loads(text or "[]")
    except ValueError as error:
        raise Rejected("tools", f"'tools' is no JSON: {error}") from None
    if not isinstance(listed, list):
        raise Rejected("tools", f"'tools' must be a list, found {type(listed).__name__}")
    try:
        return Toolset([_tool(one) for one in listed])
    except InputError as error:
        raise Rejected("tools", str(error)) from None


def _tool(one: Any) -> Tool:
    found = one.get("function", one) if isinstance(one, dict) else one
    if not isinstance(found, dict) or not isinstance(found.get("name"), str) or not found["name"]:
        raise Rejected("tools", f"a tool needs a name, found {one!r:.80}")
    parameters = found.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(parameters, dict):
        raise Rejected("tools", f"{found['name']}: 'parameters' must be an object, found {type(parameters).__name__}")
    description = found.get("description") or ""
    if not isinstance(description, str):
        raise Rejected("tools", f"{found['name']}: 'description' must be text, found {type(description).__name__}")
    return Tool(found["name"], description, parameters)
