"""Is synthesis bounded by the teacher alone, and does the memory stay flat?

    python benchmarks/synthesis.py [--out FILE] [--largest N]

1. A simulated teacher replies after 1 second, with 256 requests in flight. It writes what the offline teacher writes,
   so that everything around it is real: memory, prompts, judging, files. Busy is the share of the teacher's 256 places
   that were taken, from its first request to the last moment at which there was work for all of them.
2. The entity memory is filled with 10,000, 100,000 and 1,000,000 statements in a process each; what counts is the
   largest resident size after the imports.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from support.results import write_result

from quintain.endpoint.structured import Reply
from quintain.interface.sample import SampleWriter
from quintain.synthesis.config import FASConfig
from quintain.synthesis.documents import Document
from quintain.synthesis.fas import FirstOrder, draw
from quintain.synthesis.memory import Memory, build
from quintain.synthesis.offline.teacher import OfflineTeacher
from quintain.synthesis.teacher import Prompts, Request
from quintain.worlds.desk import Desk

IN_FLIGHT = 256
SECONDS = 1.0
MEMORIES = 700
TARGET = 0.95
SIZES = (10_000, 100_000, 1_000_000)
STATEMENTS = 10
"""Statements of one entity."""


class Simulated:
    """A teacher that takes its time: renders the prompt as a real one has to, sleeps, replies as the offline one."""

    def __init__(self) -> None:
        self._teacher = OfflineTeacher()
        self._prompts = Prompts()
        self.now = 0
        self.area = 0.0
        self.last = self.began = time.perf_counter()
        self.asked = 0
        self.full_until = self.began
        self.full_area = 0.0

    def _step(self, change: int) -> None:
        moment = time.perf_counter()
        self.area += self.now * (moment - self.last)
        self.last = moment
        self.now += change
        if self.now == IN_FLIGHT:
            self.full_until, self.full_area = moment, self.area

    async def ask(self, request: Request) -> Reply:
        self._prompts.render(request)
        self.asked += 1
        if self.asked == 1:
            self.began = self.last = time.perf_counter()
        self._step(1)
        await asyncio.sleep(SECONDS)
        self._step(-1)
        return await self._teacher.ask(request)


def throughput() -> dict[str, Any]:
    """Synthesis with the simulated teacher."""
    documents = (Document(title, text, "desk") for title, text in Desk.corpus("train", ("en", "zh")))
    teacher = Simulated()
    config = FASConfig(memories=MEMORIES, chinese=0.4)
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder) / "memory.sqlite", documents, Counter())

        async def work() -> int:
            maker = FirstOrder(teacher, teacher, Desk().toolset(), config)
            with closing(Memory(Path(folder) / "memory.sqlite")) as memory:
                with SampleWriter(Path(folder) / "samples.jsonl") as writer:
                    async for made in maker.run(draw(memory, config, Counter()), IN_FLIGHT):
                        for sample in made.kept:
                            writer.add(sample)
                return writer.count

        before = time.process_time()
        samples = asyncio.run(work())
        cpu = time.process_time() - before  # the offline teacher's own writing is part of it
    wall = teacher.full_until - teacher.began
    return {
        "in_flight": IN_FLIGHT,
        "teacher_seconds": SECONDS,
        "requests": teacher.asked,
        "samples": samples,
        "seconds_until_the_last_full_moment": wall,
        "busy": teacher.full_area / (wall * IN_FLIGHT),
        "busy_with_the_tail": teacher.area / ((teacher.last - teacher.began) * IN_FLIGHT),
        "cpu_ms_per_request": 1000 * cpu / teacher.asked,
    }


def made_up(statements: int) -> Iterator[Document]:
    """Documents with as many different statements."""
    for number in range(statements // STATEMENTS):
        lines = [f"Property {index}: {number * 7 + index} units of kind {number % 97}" for index in range(STATEMENTS)]
        yield Document(f"Thing {number}", "\n".join(lines), "benchmark")


def fill(statements: int) -> dict[str, Any]:
    """One memory of that size, then excerpts drawn from it."""
    start = _resident()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.sqlite"
        held = build(path, made_up(statements), Counter())
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        with closing(Memory(path)) as memory:
            drawn = sum(1 for _ in draw(memory, FASConfig(memories=1000, chinese=0.0), Counter()))
        excerpts = drawn / (time.perf_counter() - began)
        size = path.stat().st_size
    return {
        "statements": held["statements en"],
        "resident_mb_after_imports": start / 2**20,
        "largest_resident_mb": _resident() / 2**20,
        "statements_per_second": statements / seconds,
        "excerpts_per_second": excerpts,
        "file_mb": size / 2**20,
    }


def _resident() -> int:
    """Largest resident size of this process so far, in bytes; `ru_maxrss` would count its parent before the exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="largest number of statements")
    parser.add_argument("--fill", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill is not None:
        print(json.dumps(fill(options.fill)))
        return
    found = throughput()
    print(f"teacher busy {found['busy']:.3f} (target {TARGET}), {found['cpu_ms_per_request']:.2f} ms of CPU a request")
    rows = []
    for size in (size for size in SIZES if size <= options.largest):
        done = subprocess.run(
            [sys.executable, __file__, "--fill", str(size)], capture_output=True, text=True, check=True
        )
        rows.append(json.loads(done.stdout))
        row = rows[-1]
        print(
            f"{row['statements']:>9,} statements: {row['largest_resident_mb']:.0f} MB resident, "
            f"{row['statements_per_second']:,.0f} statements/s, {row['excerpts_per_second']:,.0f} excerpts/s"
        )
    if options.out is not None:
        write_result(options.out, {"teacher": found | {"target": TARGET}, "memory": rows})


if __name__ == "__main__":
    main()
