"""What a sandbox costs: starting one, and a call into a warm one, beside the same program run bare.

    python benchmarks/sandbox.py --out sandbox.json

Each figure is the median over the runs' medians, in milliseconds; the spread is the lowest and highest run.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from support.results import write_result

from quintain.harness.sandbox import Bubblewrap, Program, Sandbox, Unconfined

SMALL = "print(sum(i * i for i in range(1000)))"
NUMPY = "import numpy; print(numpy.arange(1000).sum())"
PAUSE = 0.02  # seconds an agent would at least think between two calls
Action = Callable[[], Awaitable[object]]


async def milliseconds(action: Action, count: int, pause: float = 0.0) -> float:
    """Median duration of `count` runs, with a pause before each."""
    durations = []
    for _ in range(count):
        await asyncio.sleep(pause)
        begun = time.perf_counter()
        await action()
        durations.append(1000 * (time.perf_counter() - begun))
    return statistics.median(durations)


async def bare(source: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", source, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    await process.communicate()
    assert process.returncode == 0


async def new_sandbox(imports: tuple[str, ...], opened: list[Bubblewrap]) -> None:
    opened.append(Bubblewrap(imports=imports))
    await opened[-1].start()


async def call(box: Sandbox, program: Program) -> None:
    result = await box.run(program)
    assert result.ok, result


async def one_run(count: int) -> dict[str, float]:
    warm, numpy, unconfined = Bubblewrap(), Bubblewrap(imports=("numpy",)), Unconfined()
    small, with_numpy = Program(source=SMALL), Program(source=NUMPY)
    opened: list[Bubblewrap] = [warm, numpy]
    for box, program in ((warm, small), (numpy, with_numpy), (unconfined, small)):
        await call(box, program)
    rows = {
        "bare: python -c": await milliseconds(lambda: bare(SMALL), count),
        "bare: python -c, numpy": await milliseconds(lambda: bare(NUMPY), max(3, count // 4)),
        "new sandbox": await milliseconds(lambda: new_sandbox((), opened), max(3, count // 2)),
        "new sandbox, numpy imported": await milliseconds(lambda: new_sandbox(("numpy",), opened), 3),
        "warm call": await milliseconds(lambda: call(warm, small), count, PAUSE),
        "warm call, back to back": await milliseconds(lambda: call(warm, small), count),
        "warm call, numpy": await milliseconds(lambda: call(numpy, with_numpy), count, PAUSE),
        "warm call, argv": await milliseconds(lambda: call(warm, Program(argv=("true",))), count, PAUSE),
        "warm call, unconfined": await milliseconds(lambda: call(unconfined, small), count, PAUSE),
    }
    await asyncio.gather(unconfined.close(), *(box.close() for box in opened))
    return rows


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--count", type=int, default=20, help="measurements of one kind in one run")
    options = parser.parse_args()
    runs = [await one_run(options.count) for _ in range(options.runs)]
    table = {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        table[name] = {"median_ms": statistics.median(values), "low_ms": min(values), "high_ms": max(values)}
    print(f"{'':30}{'median':>10}{'lowest':>10}{'highest':>10}  ms")
    for name, row in table.items():
        print(f"{name:30}{row['median_ms']:>10.1f}{row['low_ms']:>10.1f}{row['high_ms']:>10.1f}")
    if options.out is not None:
        write_result(options.out, {"runs": options.runs, "rows": table})


if __name__ == "__main__":
    asyncio.run(main())
