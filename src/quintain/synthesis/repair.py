"""Format repair: malformed calls are collected by kind and turned into well-formed ones that fit the tool's schema.

A repair guesses what was meant from what was written: never from the task, never from a solution. It fits the tool's
schema or there is none. The malformed turn itself stays as it was and never carries loss.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import json_repair

from quintain.interface.dialects import strict_json
from quintain.interface.episode import Episode
from quintain.interface.messages import Action, Call, Turn
from quintain.interface.tools import Tool, Toolset
from quintain.synthesis.recovery import Point

MalformedKind = Literal[
    "empty",  # nothing was written
    "cut",  # the turn hit its token limit
    "unclosed",  # a call was opened and never closed
    "json",  # the call is no valid JSON
    "shape",  # valid JSON, but no tool with arguments
    "prose",  # text after or between calls
    "unknown_tool",  # no tool of that name
    "parameter_names",  # a parameter is missing, or one does not exist
    "types",  # a value of the wrong type
    "too_many_calls",  # more calls than a turn may hold
]

_BARE = re.compile(r"(?<![\w.-])([\w.-]+)\s*[({]")
_LINE = re.compile(r"^\s*([\w-]+)\s*[:=]\s*(\S.*?)\s*$")
_CALLED = re.compile(r"(?<![\w.-])([\w.-]+)\s*(\([^()]*\))")

_NAME_KEYS = ("name", "tool", "function", "tool_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "kwargs", "action_input")
_WORDS: dict[str, bool] = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Malformed:
    """One malformed turn.

    Attributes:
        episode: id of its episode.
        turn: its index.
        kind: which rule it broke.
        text: what was written; calls as JSON.
        repaired: the call that was meant; None if that can't be told.
    """

    episode: str
    turn: int
    kind: MalformedKind
    text: str
    repaired: Action | None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        calls = (
            [{"tool": one.tool, "arguments": one.arguments} for one in self.repaired.calls] if self.repaired else None
        )
        return {"episode": self.episode, "turn": self.turn, "kind": self.kind, "text": self.text, "repaired": calls}


def malformed_turns(episode: Episode, toolset: Toolset, most_calls: int | None = None) -> list[Malformed]:
    """Every malformed turn of an episode, with what it should have been.

    Args:
        episode: any.
        toolset: of its world.
        most_calls: calls a turn may hold; None for any number.
    """
    found = []
    for number, turn in enumerate(episode.turns):
        kind = _kind(turn, toolset, most_calls)
        if kind is not None:
            text = turn.action.text or json.dumps([[one.tool, one.arguments] for one in turn.action.calls])
            repaired = _repaired(turn.action, toolset, most_calls)
            found.append(Malformed(episode.id, number, kind, text, repaired))
    return found


def before_too_many_calls(episodes: Iterable[Episode], malformed: Iterable[Malformed]) -> Iterator[Point]:
    """Where to go on from instead of the first turn of an episode that holds too many calls, with those it may hold.

    Nothing failed after such a turn: it makes room for its repair.

    Args:
        episodes: any.
        malformed: their malformed turns.
    """
    first: dict[str, Malformed] = {}
    for one in malformed:
        if one.kind == "too_many_calls" and one.repaired:
            first.setdefault(one.episode, one)
    for episode in episodes:
        if episode.id in first:
            found = first[episode.id]
            yield Point(episode, found.turn, found.kind, found.repaired, label="m")


def _kind(turn: Turn, toolset: Toolset, most_calls: int | None) -> MalformedKind | None:
    if turn.action.error is not None:
        kind = turn.action.error.kind
        return "types" if kind == "arguments" else kind
    for call, observation in zip(turn.action.calls, turn.observations, strict=True):
        if observation.error == "format":
            return _kind_of_call(call, toolset)
    too_many = most_calls is not None and len(turn.action.calls) > most_calls
    return "too_many_calls" if too_many else None


def _kind_of_call(call: Call, toolset: Toolset) -> MalformedKind:
    if call.tool not in toolset:
        return "unknown_tool"
    parameters = toolset[call.tool].parameters
    names = set(parameters.get("properties", ()))
    right = set(call.arguments) <= names and set(parameters.get("required", ())) <= set(call.arguments)
    return "types" if right else "parameter_names"


def _repaired(action: Action, toolset: Toolset, most_calls: int | None) -> Action | None:
    pairs = (
        [(one.tool, one.arguments) for one in action.calls] if action.calls else list(read_calls(action.text, toolset))
    )
    calls = [fitted for tool, arguments in pairs if (fitted := fit(tool, arguments, toolset)) is not None]
    if not calls or (action.calls and len(calls) < len(pairs)):
        return None
    chosen = calls[:most_calls]
    numbered = tuple(Call(str(number), tool, arguments) for number, (tool, arguments) in enumerate(chosen))
    return Action(thought=action.thought, calls=numbered)


def read_calls(text: str, toolset: Toolset) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tools and arguments a malformed text seems to mean, the first form that gives any.

    Forms: JSON with name and arguments, however broken; `tool {...}`; `tool(argument="value")`; a tool's name with
    `name: value` lines after it.
    """
    for form in (_from_json, _from_named_json, _from_code, _from_lines):
        found = list(form(text, toolset))
        if found:
            yield from found
            return


def _from_json(text: str, toolset: Toolset) -> Iterator[tuple[str, dict[str, Any]]]:
    start = min((place for mark in "{[" if (place := text.find(mark)) >= 0), default=-1)
    value = _read_json(text[start:]) if start >= 0 else None
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            inner = item.get("function")
            yield from _from_object(inner if isinstance(inner, dict) else item)


def _from_object(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str)), None)
    arguments = next((item[key] for key in _ARGUMENT_KEYS if key in item), None)
    if isinstance(arguments, str):  # JSON within JSON, as some APIs write it
        arguments = _read_json(arguments)
    if name is None and len(item) == 1:
        ((name, arguments),) = item.items()
    if name is not None and isinstance(arguments, dict):
        yield name, arguments


def _read_json(text: str) -> Any:
    """What a text means as JSON, however broken; None where it is nested too deep to be told."""
    try:
        return json_repair.loads(text)
    except (ValueError, RecursionError):
        return None


def _from_named_json(text: str, toolset: Toolset) -> Iterator[tuple[str, dict[str, Any]]]:
    for found in _BARE.finditer(text):
        if text[found.end() - 1] == "{" and _name(found[1], toolset):
            value = _read_json(text[found.end() - 1 :])
            first = value[0] if isinstance(value, list) and value else value
            if isinstance(first, dict):
                yield found[1], first
                return


def _from_code(text: str, toolset: Toolset) -> Iterator[tuple[str, dict[str, Any]]]:
    for found in _CALLED.finditer(text):
        if not _name(found[1], toolset):
            continue
        tool = toolset[_name(found[1], toolset)]
        try:
            call = ast.parse("f" + found[2], mode="eval").body
            assert isinstance(call, ast.Call)
            values = [ast.literal_eval(one) for one in call.args]
            named = {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg}
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # all that a literal can do wrong
            continue
        yield found[1], dict(zip(tool.parameters.get("properties", ()), values, strict=False)) | named


def _from_lines(text: str, toolset: Toolset) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        words = re.findall(r"[\w.-]+", line)
        named = next((word for word in reversed(words) if word in toolset), None)
        if named is None:
            continue
        pairs = [found for one in lines[number + 1 :] if (found := _LINE.match(one))]
        yield named, {found[1]: found[2] for found in pairs}
        return


def fit(tool: str, arguments: Mapping[str, Any], toolset: Toolset) -> tuple[str, dict[str, Any]] | None:
    """The call with names and types as the toolset has them; None if it can't be told what was meant."""
    name = _name(tool, toolset)
    if not name:
        return None
    fitted = _fit_arguments(toolset[name], arguments)
    return (name, fitted) if _is_json(fitted) and toolset.check(name, fitted) is None else None


def _is_json(value: Any) -> bool:
    """True if every dialect can write the value."""
    try:
        strict_json.check(value)
    except strict_json.JsonError:
        return False
    return True


def _name(written: str, toolset: Toolset) -> str:
    """The tool that was meant, "" for none."""
    return _closest(written, toolset.names)


def _closest(written: str, names: list[str]) -> str:
    if written in names:
        return written
    plain = {re.sub(r"[\W_]", "", name).casefold(): name for name in names}
    found = get_close_matches(re.sub(r"[\W_]", "", written).casefold(), plain, n=1)
    return plain[found[0]] if found else ""


def _fit_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    fitted = {name: value for name, value in arguments.items() if name in properties}
    strangers = {name: value for name, value in arguments.items() if name not in properties}
    for name, value in strangers.items():
        meant = _closest(name, [one for one in properties if one not in fitted])
        if meant:
            fitted[meant] = value
    missing = [name for name in tool.parameters.get("required", ()) if name not in fitted]
    unplaced = [value for value in strangers.values() if value not in fitted.values()]
    if len(missing) == len(unplaced) == 1:
        fitted[missing[0]] = unplaced[0]
    return {name: _coerce(value, properties[name]) for name, value in fitted.items()}


def _coerce(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value as the type the schema wants, where that says the same; else the value as it is."""
    wanted = schema.get("type")
    if wanted == "string" and isinstance(value, bool | int | float):
        return json.dumps(value)
    if wanted == "array" and not isinstance(value, list):
        return [_coerce(value, schema.get("items", {}))]
    if wanted == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if wanted in ("integer", "number", "boolean") and isinstance(value, str):
        return _read(value.strip(), wanted)
    return value


def _read(text: str, wanted: str) -> Any:
    if wanted == "boolean":
        return _WORDS.get(text.casefold(), text)
    number = text.replace(",", "")
    if re.fullmatch(r"-?\d+", number):
        return int(number)
    return float(number) if wanted == "number" and re.fullmatch(r"-?\d*\.\d+", number) else text
