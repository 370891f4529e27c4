"""The verdict on a file an agent wrote: run in a fresh sandbox, compared on the host.

What the file should give never enters the sandbox, so code under judgement has nothing to forge: it can send out
values, and they are right or wrong.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, Final

from quintain.harness.sandbox import Limits, Program, ProgramResult, Sandbox
from quintain.interface.errors import InfraError

LIMITS: Final = Limits(seconds=8.0, cpu_seconds=8.0, memory_bytes=256 << 20, output_bytes=1 << 20)
TOLERANCE: Final = 1e-9
"""Relative, for floats: another order of the same sum is as right."""


class SandboxBroken(Exception):
    """A file under judgement ran, and the sandbox did not survive it: its doing, if it comes back."""


async def _run(sandbox: Sandbox, program: Program) -> ProgramResult:
    try:
        return await sandbox.run(program)
    except InfraError as error:
        raise SandboxBroken(str(error)) from None


async def failed_cases(sandbox: Sandbox, target: str, text: bytes, answer: dict[str, Any]) -> list[str]:
    """The hidden calls that a module answers wrongly.

    Args:
        sandbox: a fresh one.
        target: name of the module's file.
        text: the agent's file.
        answer: `module`, and `cases` of expression and encoded value.

    Raises:
        SandboxBroken: the file broke the sandbox.
    """
    await sandbox.write(target, text)
    calls = [expression for expression, _ in answer["cases"]]
    request = json.dumps({"module": answer["module"], "calls": calls}).encode()
    result = await _run(sandbox, Program(source=f"{_evaluator()}\nmain()\n", stdin=request, limits=LIMITS))
    values = _values(result.stdout, len(calls))
    return [
        expression
        for (expression, expected), value in zip(answer["cases"], values, strict=True)
        if not same(value, expected)
    ]


@cache
def _evaluator() -> str:
    return Path(__file__).with_name("evaluate.py").read_text(encoding="utf-8")


def _values(data: bytes, count: int) -> list[Any]:
    """The reported values; all None if the report is missing or is none."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        values = None
    return values if isinstance(values, list) and len(values) == count else [None] * count


def same(value: Any, expected: Any) -> bool:
    """True if two encoded values are equal, floats up to `TOLERANCE`."""
    if isinstance(expected, list) and isinstance(value, list):
        if len(value) != len(expected):
            return False
        if expected[:1] == ["float"]:
            return value[:1] == ["float"] and _near(value[1], expected[1])
        return all(map(same, value, expected))
    return type(value) is type(expected) and bool(value == expected)


def _near(value: Any, expected: str) -> bool:
    try:
        return math.isclose(float.fromhex(value), float.fromhex(expected), rel_tol=TOLERANCE, abs_tol=1e-12)
    except (TypeError, ValueError, OverflowError):
        return False


async def trial_fault(sandbox: Sandbox, target: str, text: bytes, trial: dict[str, Any]) -> str:
    """What is wrong with the files that a program makes of a table it may not have seen; empty if nothing is.

    Args:
        sandbox: a fresh one.
        target: name of the program's file.
        text: the agent's file.
        trial: `input` (name), `data` (its text), and the `result` and `plot` that should come out.

    Raises:
        SandboxBroken: the program broke the sandbox.
    """
    await sandbox.write(target, text)
    await sandbox.write(trial["input"], trial["data"].encode())
    await _run(sandbox, Program(source=_START.format(target=target, input=trial["input"]), limits=LIMITS))
    result, plot = [await _json(sandbox, name) for name in ("result.json", "plot.json")]
    return _result_fault(result, trial["result"]) or _plot_fault(plot, trial["plot"])


_START = """
import runpy, sys
sys.argv = [{target!r}, {input!r}]
runpy.run_path({target!r}, run_name="__main__")
"""


async def _json(sandbox: Sandbox, name: str) -> Any:
    """What a JSON file of the scratch folder holds; None if it is no such file."""
    try:
        return json.loads(await sandbox.read(name))
    except (OSError, ValueError, RecursionError):
        return None


def _result_fault(found: Any, expected: dict[str, float]) -> str:
    if not isinstance(found, dict):
        return "result.json is missing or no object"
    if set(found) != set(expected):
        return f"result.json has other groups: {len(found)} for {len(expected)}"
    wrong = [name for name in expected if not _number(found[name], expected[name])]
    return f"result.json: wrong for {len(wrong)} of {len(expected)} groups" if wrong else ""


def _number(found: Any, expected: float) -> bool:
    """True for the number, or for it rounded to two decimals or more."""
    plain = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 1e300
    return (
        plain and abs(found - expected) <= 0.0050001 and math.isclose(found, expected, rel_tol=1e-3, abs_tol=0.0050001)
    )


def _plot_fault(found: Any, expected: dict[str, Any]) -> str:
    """Why a Vega-Lite specification does not show the expected bars, lines or points."""
    if not isinstance(found, dict):
        return "plot.json is missing or no object"
    mark = found.get("mark")
    kind = mark.get("type") if isinstance(mark, dict) else mark
    if kind != expected["mark"]:
        return f"plot.json: mark is {str(kind)[:20]!r}, not {expected['mark']!r}"
    fields = [_field(found, axis) for axis in ("x", "y")]
    data = found.get("data")
    rows = data.get("values") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or None in fields:
        return "plot.json: needs data.values with rows, and a field for x and for y"
    points = [(row.get(fields[0]), row.get(fields[1])) for row in rows]
    right = {str(name): value for name, value in expected["values"].items()}
    if len(points) != len(right) or {str(name) for name, _ in points} != set(right):
        return f"plot.json: shows {len(points)} points for {len(right)}"
    wrong = [name for name, value in points if not _number(value, right[str(name)])]
    return f"plot.json: wrong for {len(wrong)} points" if wrong else ""


def _field(specification: dict[str, Any], axis: str) -> str | None:
    encoding = specification.get("encoding")
    channel = encoding.get(axis) if isinstance(encoding, dict) else None
    field = channel.get("field") if isinstance(channel, dict) else None
    return field if isinstance(field, str) else None
