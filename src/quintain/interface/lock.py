"""`tools.lock`: the interface an agent was trained on, and whether the tools still keep to it.

It stores every tool's full specification. Many tools declare no result schema (`-> dict`, most MCP servers), so
it also stores the shape of their results on recorded probe calls, which `check_lock` runs again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quintain.interface.canonical import digest
from quintain.interface.errors import InputError, InterfaceDrift, describe
from quintain.interface.shapes import Shape, differences, shape_of_schema, shape_of_value
from quintain.interface.tools import Toolset

LOCK_SCHEMA = 2
"""1 holds one world, 2 several; each is written where it is enough."""
_KEYS = {1: {"digest", "probes", "schema", "tools", "toolset", "world"}, 2: {"digest", "schema", "worlds"}}

Execute = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Runs one call of a tool and returns its JSON result; raises what the tool raises."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A call whose result shows what a tool's results look like."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Observed:
    """A probe and the shape of its result."""

    probe: Probe
    shape: Shape


@dataclass(frozen=True, slots=True)
class Lock:
    """The interface as it was recorded.

    Attributes:
        world: name of the world.
        toolset: digest of the toolset.
        tools: specifications, sorted by name.
        observed: probes with the shapes of their results.
    """

    world: str
    toolset: str
    tools: tuple[dict[str, Any], ...]
    observed: tuple[Observed, ...]

    @property
    def unwatched(self) -> list[str]:
        """Tools whose results could change unnoticed: no exact result schema, no probe."""
        probed = {one.probe.tool for one in self.observed}
        names = (str(spec["name"]) for spec in self.tools if shape_of_schema(spec["result"]).vague)
        return [name for name in names if name not in probed]


@dataclass(frozen=True, slots=True)
class Difference:
    """One change of the interface.

    Attributes:
        tool: name of the tool ("" for the world itself).
        change: the change in words.
    """

    tool: str
    change: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.change}" if self.tool else self.change


def probe_from_json(record: Any, where: str) -> Probe:
    """Reads `{"tool": ..., "arguments": {...}}`.

    Raises:
        InputError: a key is unknown, missing or of the wrong type.
    """
    if not isinstance(record, dict) or set(record) != {"tool", "arguments"}:
        raise InputError(f'{where}: a probe is {{"tool": ..., "arguments": {{...}}}}, found {str(record)[:60]}')
    if not isinstance(record["tool"], str) or not isinstance(record["arguments"], dict):
        raise InputError(f"{where}: 'tool' must be text and 'arguments' an object")
    return Probe(record["tool"], record["arguments"])


async def record(toolset: Toolset, world: str, probes: Sequence[Probe], execute: Execute) -> Lock:
    """Runs the probes and records the interface of a world.

    Raises:
        InputError: a probe names no tool, its arguments do not fit, or its call fails.
    """
    observed = []
    for number, probe in enumerate(probes, start=1):
        problem = toolset.check(probe.tool, probe.arguments)
        if problem is not None:
            raise InputError(f"probe {number}: {problem.message}")
        shape = await _observe(probe, execute)
        if isinstance(shape, Difference):
            raise InputError(f"probe {number}: {shape}")
        observed.append(Observed(probe, shape))
    return Lock(world, toolset.digest, tuple(toolset.specs()), tuple(observed))


def write_lock(path: Path, locks: Sequence[Lock]) -> None:
    """Writes the interfaces of one world or of several."""
    worlds = [_to_json(one) for one in locks]
    content = {"schema": 1, **worlds[0]} if len(worlds) == 1 else {"schema": 2, "worlds": worlds}
    text = json.dumps(content | {"digest": digest(content)}, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def read_lock(path: Path) -> list[Lock]:
    """Reads a lock file: a lock for every world in it.

    Raises:
        InputError: it is missing, not JSON, of a newer schema, or was changed by hand.
    """
    again = "write it again with `quintain tools lock`"
    if not path.is_file():
        raise InputError(f"{path}: no such lock file; {again}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}); {again}") from None
    if not isinstance(content, dict) or not isinstance(content.get("schema"), int):
        raise InputError(f"{path}: no lock file (it has no 'schema' number); {again}")
    if content["schema"] > LOCK_SCHEMA:
        raise InputError(f"{path}: lock schema {content['schema']} is newer than {LOCK_SCHEMA}; update quintain")
    rest = {key: value for key, value in content.items() if key != "digest"}
    if set(content) != _KEYS.get(content["schema"]) or content["digest"] != _digest(rest):
        raise InputError(f"{path}: its content does not fit its digest, so it was edited by hand; {again}")
    return [_lock(one) for one in content.get("worlds", [content])]


async def check_lock(lock: Lock, toolset: Toolset, world: str, execute: Execute) -> list[Difference]:
    """How the present interface differs from the recorded one: specifications first, then probe results."""
    found = [] if world == lock.world else [Difference("", f"world changed from {lock.world!r} to {world!r}")]
    found += compare_specs(lock.tools, toolset.specs())
    for one in lock.observed:
        # a probe that no longer fits belongs to a tool whose removal or new parameters are reported already
        if toolset.check(one.probe.tool, one.probe.arguments) is None:
            found += await _replay(one, execute)
    return list(dict.fromkeys(found))


def compare_specs(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """How the specifications `new` differ from `old`; empty only if the toolset digests agree."""
    before = {str(spec["name"]): spec for spec in old}
    after = {str(spec["name"]): spec for spec in new}
    found = [Difference(name, "tool removed") for name in before if name not in after]
    found += [Difference(name, "tool added") for name in after if name not in before]
    for name in before:
        if name in after and digest(before[name]) != digest(after[name]):
            found += _compare_spec(name, before[name], after[name])
    return found


def drift(found: Sequence[Difference], recipe: str) -> InterfaceDrift:
    """The error that stops a command: the differences in words and how to go on."""
    return InterfaceDrift(
        f"the interface differs from the recorded one: {'; '.join(map(str, found))}. "
        f"To go on with the new tools: `quintain tools lock {recipe}`, then measure the agent again in a new run folder"
    )


def _compare_spec(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    changes = [] if old["description"] == new["description"] else ["description changed"]
    changes += differences(shape_of_schema(old["parameters"]), shape_of_schema(new["parameters"]), "parameter")
    if (old["result"] is None) != (new["result"] is None):
        changes.append(f"result schema {'added' if old['result'] is None else 'removed'}")
    else:
        changes += differences(shape_of_schema(old["result"]), shape_of_schema(new["result"]), "result field")
    # a schema can change in ways a shape does not show, such as how alternatives are nested
    changes = changes or ["the text of its schemas changed"]
    return [Difference(name, change) for change in changes]


async def _replay(one: Observed, execute: Execute) -> list[Difference]:
    shape = await _observe(one.probe, execute)
    if isinstance(shape, Difference):
        return [shape]
    return [Difference(one.probe.tool, change) for change in differences(one.shape, shape, "result field")]


async def _observe(probe: Probe, execute: Execute) -> Shape | Difference:
    try:
        return shape_of_value(json.loads(json.dumps(await execute(probe.tool, probe.arguments))))
    except Exception as error:  # a tool is the user's code and may raise anything
        reason = " ".join(describe(error).split())
        return Difference(probe.tool, f"call with {json.dumps(probe.arguments, ensure_ascii=False)} fails: {reason}")


def _to_json(lock: Lock) -> dict[str, Any]:
    probes = [
        {"tool": one.probe.tool, "arguments": one.probe.arguments, "shape": one.shape.to_schema()}
        for one in lock.observed
    ]
    return {
        "world": lock.world,
        "toolset": lock.toolset,
        "tools": list(lock.tools),
        "probes": probes,
    }


def _lock(record: dict[str, Any]) -> Lock:
    return Lock(record["world"], record["toolset"], tuple(record["tools"]), tuple(map(_observed, record["probes"])))


def _observed(record: dict[str, Any]) -> Observed:
    return Observed(Probe(record["tool"], record["arguments"]), shape_of_schema(record["shape"]))


def _digest(value: Any) -> str:
    """The digest, or "" for hand-written values that have none (an integer beyond 2**53)."""
    try:
        return digest(value)
    except ValueError:
        return ""
