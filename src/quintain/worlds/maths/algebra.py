"""The computer algebra of the maths world: requests to the kernel in the sandbox."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from quintain.harness.sandbox import Limits, Program
from quintain.harness.sandbox.shared import SharedSandbox

Operation = Literal["simplify", "expand", "factor", "solve", "differentiate", "integrate"]

MAX_LENGTH = 300
"""Characters of one expression."""

LIMITS = Limits(seconds=9.0, cpu_seconds=2.0, memory_bytes=256 << 20, output_bytes=1 << 16, processes=4)
"""Of one request. Processor time is what ends it, so that a busy machine gives the same results as an idle one."""

_ENDS = {"timeout": f"stopped after {LIMITS.seconds:g} s", "cpu": f"stopped after {LIMITS.cpu_seconds:g} s"}

_SPELLINGS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "²": "**2", "³": "**3"})


@cache
def _service() -> SharedSandbox:
    kernel = Path(__file__).with_name("kernel.py").read_text(encoding="utf-8")
    return SharedSandbox(imports=("sympy",), modules={"maths_kernel": f"{kernel}\nwarm_up()\n"})


_REQUEST = "import maths_kernel; maths_kernel.main()"


async def ready() -> None:
    """Starts the sandbox, so that no call pays for it.

    Raises:
        CannotConfine: this machine can't confine programs; the line says why and what helps.
        InputError: sympy is not installed.
    """
    await _service().start()


async def algebra(operation: Operation, expression: str, variable: str = "") -> str:
    """The result of one operation of computer algebra.

    Raises:
        ValueError: the expression can't be read, or the operation fails or takes too long; one line that says why.
        InfraError: the sandbox broke.
    """
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"the expression has {len(expression)} characters, at most {MAX_LENGTH} are allowed")
    text = unicodedata.normalize("NFKC", expression.translate(_SPELLINGS)).translate(_SPELLINGS)
    found = await _ask({"operation": operation, "expression": text, "variable": variable})
    if "error" in found:
        raise ValueError(found["error"])
    return str(found["result"])


async def equal(gold: dict[str, str], texts: Sequence[str]) -> list[bool]:
    """Which of the texts are an expression equal to the gold one (`kernel.same`); none, if that takes too long."""
    short = [text if len(text) <= MAX_LENGTH else "" for text in texts]
    found = await _ask({"gold": gold, "texts": short})
    verdicts: list[bool] = found.get("verdicts", [False] * len(texts))
    return verdicts


async def _ask(request: dict[str, Any]) -> dict[str, Any]:
    program = Program(source=_REQUEST, stdin=json.dumps(request).encode(), limits=LIMITS)
    done = await _service().run(program)
    if not done.ok:
        return {"error": f"too hard: {_ENDS.get(done.ended, 'it needs too much memory')}"}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
