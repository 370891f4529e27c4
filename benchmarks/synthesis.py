"""Is synthesis bounded by the teacher alone, and does the memory stay flat?

    python benchmarks/synthesis.py [--out FILE] [--largest N]

1. A simulated teacher replies after 1 second, with 256 requests in flight. It writes what the offline teacher writes,
   so that everything around it is real: memory, prompts, judging, files. First it lives in this process, then its
   replies come from a server in another one, over HTTP. Busy is the share of the teacher's 256 places that were
   taken, from its first request to the last moment at which there was work for all of them.
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
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

from support.results import write_result
from support.slow_teacher import IN_FLIGHT, Places

from quintain.endpoint.config import EndpointConfig
from quintain.endpoint.structured import Reply
from quintain.interface.sample import SampleWriter
from quintain.pipeline.fas import CACHE, MEMORY, teacher_of
from quintain.synthesis.config import FASConfig, TeacherConfig
from quintain.synthesis.documents import Document
from quintain.synthesis.fas import FirstOrder, draw
from quintain.synthesis.memory import Memory, build
from quintain.synthesis.offline.teacher import OfflineTeacher
from quintain.synthesis.teacher import Prompts, Request, Teacher
from quintain.worlds.desk import Desk

SECONDS = 1.0
MEMORIES = 700
TARGET = 0.95
TEACHER = {"in_flight": IN_FLIGHT, "teacher_seconds": SECONDS, "target": TARGET}
SLOW_TEACHER = Path(__file__).parent / "support" / "slow_teacher.py"
SIZES = (10_000, 100_000, 1_000_000)
STATEMENTS = 10
"""Statements of one entity."""


class Simulated:
    """A teacher that takes its time: renders the prompt as a real one has to, sleeps, replies as the offline one.

    Attributes:
        places: how busy it was.
        written: its replies by prompt.
    """

    def __init__(self) -> None:
        self._teacher = OfflineTeacher()
        self._prompts = Prompts()
        self.places = Places()
        self.written: dict[str, str] = {}

    async def ask(self, request: Request) -> Reply:
        prompt = self._prompts.render(request)
        self.places.take()
        await asyncio.sleep(SECONDS)
        self.places.free()
        reply = await self._teacher.ask(request)
        self.written[prompt] = reply.value.model_dump_json() if reply.value else "{}"
        return reply


def throughput() -> dict[str, Any]:
    """Synthesis with a teacher in this process, and with its replies behind HTTP."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder / MEMORY, (Document(*one, "desk") for one in Desk.corpus("train", ("en", "zh"))), Counter())
        teacher = Simulated()
        inside = synthesise(folder, nullcontext(teacher)) | teacher.places.figures()
        (folder / "replies.json").write_text(json.dumps(teacher.written), encoding="utf-8")
        return {"in_process": inside, "behind_http": behind_http(folder)}


def synthesise(folder: Path, opened: AbstractAsyncContextManager[Teacher]) -> dict[str, float]:
    """Samples that come of it, and seconds of CPU, those of a teacher in this process included."""
    config = FASConfig(memories=MEMORIES, chinese=0.4)

    async def work() -> int:
        async with opened as teacher:
            maker = FirstOrder(teacher, teacher, Desk().toolset(), config)
            with closing(Memory(folder / MEMORY)) as memory, SampleWriter(folder / "samples.jsonl") as writer:
                async for made in maker.run(draw(memory, config, Counter()), IN_FLIGHT):
                    for sample in made.kept:
                        writer.add(sample)
        return writer.count

    before = time.process_time()
    samples = asyncio.run(work())
    return {"samples": samples, "cpu_seconds": time.process_time() - before}


def behind_http(folder: Path) -> dict[str, float]:
    """The same by the way a recipe's endpoint takes: client, retries, a cache on disk."""
    server = subprocess.Popen(
        [sys.executable, SLOW_TEACHER, folder / "replies.json", str(SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        endpoint = EndpointConfig(model="simulated", url=f"http://127.0.0.1:{server.stdout.readline().strip()}/v1")
        config = TeacherConfig(endpoint=endpoint, concurrency=IN_FLIGHT)
        found = synthesise(folder, teacher_of(config, folder, folder / CACHE, 0))
        server.stdin.close()
        return found | json.loads(server.stdout.read())


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
    for way, one in found.items():
        one["cpu_ms_per_request"] = 1000 * one["cpu_seconds"] / one["requests"]
        print(
            f"teacher {way.replace('_', ' ')}: busy {one['busy']:.3f} (target {TARGET}), "
            f"{one['cpu_ms_per_request']:.2f} ms of CPU a request"
        )
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
        write_result(options.out, {"teacher": found | TEACHER, "memory": rows})


if __name__ == "__main__":
    main()
