"""Runs the calls of one action and turns whatever happens into observations."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from pydantic import ValidationError

from quintain.harness.threads import off_loop, on_loop
from quintain.interface.episode import Budget
from quintain.interface.errors import FormatError, InfraError, ToolErrorKind, describe
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation
from quintain.interface.tools import ResultError, Tool, Toolset
from quintain.interface.words import encodable

MESSAGE_CHARACTERS = 300
"""Error messages of tools are cut here: an exception's text may be a whole page."""


class CallTimeout(Exception):
    """A call was abandoned: its instance may be half-changed and must be replaced."""

    def __init__(self, observation: Observation) -> None:
        super().__init__(observation.content)
        self.observation = observation


def format_observation(error: FormatError, call_id: str = FORMAT_CALL_ID, tool: str = "") -> Observation:
    """What the agent reads after a text that could not be understood."""
    text = f"Format error ({error.kind}): {error.message}"
    return Observation(call_id, tool, text, error="format", format_kind=error.kind)


def error_observation(call: Call, kind: ToolErrorKind, message: str, seconds: float = 0.0) -> Observation:
    """What the agent reads after a call that failed."""
    line = encodable(" ".join(message.split()))
    if len(line) > MESSAGE_CHARACTERS:
        line = line[: MESSAGE_CHARACTERS - 3] + "..."
    return Observation(call.id, call.tool, f"Error ({kind}): {line}", error=kind, seconds=seconds)


async def run_call(call: Call, toolset: Toolset, budget: Budget) -> Observation:
    """Runs one call.

    Raises:
        InfraError: the world broke.
        CallTimeout: the call ran past `budget.call_seconds` and was abandoned.
    """
    wrong = toolset.check(call.tool, call.arguments)
    if wrong is not None:
        return format_observation(wrong, call.id, call.tool)
    one = toolset[call.tool]
    began = time.perf_counter()
    try:
        value, content = await _invoke(one, call, budget.call_seconds)
    except InfraError:
        raise
    except ResultError as error:
        return error_observation(call, "result_type", str(error), time.perf_counter() - began)
    except Exception as error:
        spent = time.perf_counter() - began
        if isinstance(error, TimeoutError) and spent >= budget.call_seconds:  # not one the tool raised itself
            text = f"{call.tool} ran past {budget.call_seconds:g} s and was abandoned"
            raise CallTimeout(error_observation(call, "timeout", text, spent)) from None
        return error_observation(call, "exception", describe(error), spent)
    spent = time.perf_counter() - began
    size = len(content.encode())
    if size > budget.observation_bytes:
        text = f"result of {size} bytes > {budget.observation_bytes} allowed; ask for less"
        return error_observation(call, "too_large", text, spent)
    return Observation(call.id, call.tool, content, value, seconds=spent)


async def _invoke(one: Tool, call: Call, seconds: float) -> tuple[Any, str]:
    function = one.function
    assert function is not None, f"tool {one.name!r} is known by its schema alone"
    keywords = keywords_of(one, call.arguments)
    if asyncio.iscoroutinefunction(function):
        return _render(one, await on_loop(lambda: function(**keywords), seconds))
    result: tuple[Any, str] = await off_loop(lambda: _render(one, function(**keywords)), seconds)
    return result


def keywords_of(one: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Validated JSON arguments as the function's Python values.

    Raises:
        ValueError: a value fits the schema and still does not convert (an impossible date); one line.
    """
    try:
        return one.keywords(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _render(one: Tool, result: Any) -> tuple[Any, str]:
    """The validated JSON and the text the agent reads: strings as they are, all else as JSON."""
    value = one.to_json(result)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value, encodable(text)


def parallel(action: Action, toolset: Toolset) -> bool:
    """True if every call of the action is declared read-only, so that they may run at once."""
    return len(action.calls) > 1 and all(call.tool in toolset and toolset[call.tool].read_only for call in action.calls)
