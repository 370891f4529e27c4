"""What a call of the world `code` costs over running the same program bare, with 16 episodes at once.

    python benchmarks/code_calls.py --out benchmarks/results/code_calls.json

Both sides run the same program the same number of times, `--episodes` at once on the cores the process may use. *Bare*
is `python -I FILE` in a folder; *call* is the tool `run`, from its arguments to its observation: files laid out,
program run, files read back. Sides alternate; each figure is the median of the calls of a round, then over the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from support.results import write_result

from quintain.worlds.code import Code, generate

PROGRAM = "import csv, json, sys\nprint(sum(n * n for n in range(20000)), json.dumps(sys.argv))\n"
Call = Callable[[], Awaitable[None]]


async def timed(calls: list[Call], count: int) -> list[float]:
    """Milliseconds of every call; each of the given callers makes `count` of them, all callers at once."""

    async def one(call: Call) -> list[float]:
        durations = []
        for _ in range(count):
            begun = time.perf_counter()
            await call()
            durations.append(1000 * (time.perf_counter() - begun))
        return durations

    return [duration for durations in await asyncio.gather(*map(one, calls)) for duration in durations]


def bare(folder: Path) -> Call:
    """Runs the program by a new interpreter."""

    async def call() -> None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "program.py", cwd=folder, stdout=pipe, stderr=pipe
        )
        await process.communicate()
        assert process.returncode == 0

    return call


def tool(world: Code) -> Call:
    """Runs the program by the world's tool."""

    async def call() -> None:
        seen = await world.run("program.py")
        assert seen.startswith("2666466670000"), seen

    return call


async def measure(episodes: int, count: int, rounds: int) -> dict[str, list[float]]:
    """Median milliseconds of each round, bare and by the tool."""
    worlds = [Code() for _ in range(episodes)]
    for world, task in zip(worlds, generate("eval", episodes, 1, ("en",), ("program",)), strict=True):
        world.reset(task)
        world.write("program.py", PROGRAM)
    found: dict[str, list[float]] = {"bare": [], "call": []}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "program.py").write_text(PROGRAM)
        await timed([tool(world) for world in worlds], 1)  # starts the sandboxes
        for _ in range(rounds):
            found["bare"].append(statistics.median(await timed([bare(Path(folder))] * episodes, count)))
            found["call"].append(statistics.median(await timed([tool(world) for world in worlds], count)))
    for world in worlds:
        await world.end_programs()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=16)
    parser.add_argument("--count", type=int, default=20, help="calls of each episode in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    rounds = asyncio.run(measure(options.episodes, options.count, options.rounds))
    overhead = [call - plain for call, plain in zip(rounds["call"], rounds["bare"], strict=True)]
    rows = {**rounds, "overhead": overhead}
    cores = len(os.sched_getaffinity(0))
    print(f"{options.episodes} episodes at once on {cores} cores, {options.rounds} rounds of {options.count} calls")
    print(f"{'':12}{'median':>10}{'lowest':>10}{'highest':>10}  ms a call")
    for name, values in rows.items():
        print(f"{name:12}{statistics.median(values):>10.1f}{min(values):>10.1f}{max(values):>10.1f}")
    if options.out is not None:
        write_result(options.out, {"episodes": options.episodes, "count": options.count, "rounds": rows})


if __name__ == "__main__":
    main()
