"""GRPO for an hour under trouble: does every episode come out once, and do memory and file handles stay flat?

    python benchmarks/soak.py --minutes 60 --out soak.json

A run on a tiny random model goes on, as chance will have it, in one process or on two workers of a Ray cluster. For
half of the time it is troubled at random moments: killed (SIGKILL), a worker killed, its engine closed, its disk
filled; where that ends it, the run is taken up again. Its world fails now and then of itself. For the other half it
runs undisturbed, first one way and then the other, while memory and file handles of all its processes are sampled.
Then, by the journals on the left and the rows of metrics on the right,

    episodes planned = scored + infra + pending

no episode has ended twice, and none is missing that had ended before a trouble. The disk that is filled is a small
tmpfs, which takes root to mount; without, that trouble is left out, as the cluster is without Ray.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import linear_regression
from typing import Any

from rich.console import Console
from rich.table import Table
from support.long_tail import make_model
from support.results import write_result

from quintain.cluster.shards import WORKERS, gather
from quintain.harness.journal import read_records
from quintain.interface.errors import InputError
from quintain.training.rows import METRICS, read_rows
from quintain.training.rules import RULES

PROGRAM = Path(__file__).parent / "support" / "soaked.py"
DISK = "1g"
GROUPS, GROUP_SIZE = 4, 8
TROUBLED = 0.5
"""Share of the time; the rest is for measuring."""
QUIET = 5.0
"""Most seconds between the run's first new row and the next trouble."""
PATIENCE = 120.0
"""Seconds within which a run without disk or engine must have ended by itself."""
STUCK = 600.0
"""A run that has written no row for so many seconds stands still."""
SAMPLE = 2.0
"""Seconds between two looks at memory and handles."""

RECIPE = """
name = "soak"
concurrency = 32

[model]
base = "{model}"

[world]
world = "shaky:Shaky"

[budget]
turns = 1
tokens = 4

[pools.train]
split = "train"
count = 64

[[stages]]
kind = "grpo"
name = "grpo"
pool = "train"
max_tokens = 4

[stages.train]
learning_rate = 1e-6
groups = {groups}
group_size = {size}
steps = 1_000_000
ahead = 1
refill = 0
validate_every = 1_000_000
checkpoint_seconds = 5.0
guard = {{ off = {off} }}
"""
CLUSTER = """
[cluster]
workers = 2
cpus_per_worker = 0.5
"""
WORKER = "ray::Worker"
"""How Ray names the process of a `Worker`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    path = os.pathsep.join(filter(None, [str(PROGRAM.parent), os.environ.get("PYTHONPATH")]))
    os.environ["PYTHONPATH"] = path  # what workers import
    with tempfile.TemporaryDirectory() as name, disk(Path(name) / "disk") as small, cluster() as address:
        soak = Soak(Path(name), Path(name) / "disk", small, address, random.Random(options.seed))
        try:
            soak.trouble(options.minutes * 60 * TROUBLED)
            share = options.minutes * 60 * (1 - TROUBLED) / len(soak.ways)
            undisturbed = {way: summary(soak.watch(way, share)) for way in soak.ways}
        finally:
            soak.kill()
        counts = soak.counts()
    result = {
        "minutes": options.minutes,
        "troubles": dict(sorted(soak.troubles.items())),
        "counts": asdict(counts),
        "reconciled": counts.reconciled,
        "undisturbed": undisturbed,
    }
    table = Table("", "")
    for name, value in (*sorted(soak.troubles.items()), *asdict(counts).items()):
        table.add_row(name, f"{value:,}")
    for way, one in undisturbed.items():
        table.add_row(f"{way}: memory", f"{one['mib']:.0f} MiB, {one['mib_per_hour']:+.1f} MiB an hour")
        table.add_row(f"{way}: file handles", f"{one['handles']:.0f}, {one['handles_per_hour']:+.1f} an hour")
    Console().print(table)
    write_result(options.out, result)
    if not counts.reconciled:
        sys.exit(1)


@contextmanager
def disk(folder: Path) -> Iterator[bool]:
    """A small disk at a folder, or a plain folder where none can be mounted; says which."""
    folder.mkdir()
    small = not subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", folder]).returncode
    try:
        yield small
    finally:
        if small:
            subprocess.run(["umount", folder], check=True)


@contextmanager
def cluster() -> Iterator[str | None]:
    """Address of a Ray cluster on this machine, or None where Ray is not installed."""
    if find_spec("ray") is None:
        yield None
        return
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "node_ip_address": "127.0.0.2", "object_store_memory": 80 * 2**20}
    made = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **node})
    try:
        yield made.address
    finally:
        made.shutdown()


def workers() -> list[int]:
    """Processes of the cluster's workers: children of its node, which is a child of this process."""
    listed = subprocess.check_output(["ps", "-eo", "pid=,ppid=,args="], text=True).splitlines()
    rows = [line.split(None, 2) for line in listed]
    ours = {pid for pid, parent, _ in rows if int(parent) == os.getpid()}
    return [int(pid) for pid, parent, name in rows if parent in ours and name.startswith(WORKER)]


@dataclass(frozen=True)
class Sample:
    """What the run's processes hold together: memory of their own, without files and Ray's store, which they share."""

    seconds: float
    mib: float
    handles: int

    @classmethod
    def of(cls, pids: list[int]) -> Sample:
        own = re.findall(r"RssAnon:\s+(\d+) kB", "".join(Path(f"/proc/{pid}/status").read_text() for pid in pids))
        handles = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
        return cls(time.monotonic(), sum(map(int, own)) / 2**10, handles)


def summary(samples: list[Sample]) -> dict[str, float]:
    """What is held at the end, and by how much it grows in an hour: slopes of the second half, the first fills caches.

    Args:
        samples: of a run that nobody disturbed.
    """
    late = samples[len(samples) // 2 :]
    hours = [one.seconds / 3600 for one in late]
    return {
        "seconds": samples[-1].seconds - samples[0].seconds,
        "mib": samples[-1].mib,
        "mib_per_hour": linear_regression(hours, [one.mib for one in late]).slope,
        "handles": samples[-1].handles,
        "handles_per_hour": linear_regression(hours, [one.handles for one in late]).slope,
    }


@dataclass
class Counts:
    """Of all steps together.

    Attributes:
        steps: rows of metrics.
        planned: episodes begun in the journals, and those of the steps under way that were not.
        scored: those with a verdict, by the rows; by the journal in a step without one.
        infra: those that ended without, likewise.
        pending: those that have not ended.
        twice: ends of episodes that had ended.
        lost: episodes that had ended before a trouble and are missing.
    """

    steps: int = 0
    planned: int = 0
    scored: int = 0
    infra: int = 0
    pending: int = 0
    twice: int = 0
    lost: int = 0

    @property
    def reconciled(self) -> bool:
        """Whether nothing is missing and nothing there twice."""
        return self.planned == self.scored + self.infra + self.pending and not self.twice and not self.lost

    def add(self, begun: set[str], ends: list[bool], row: dict[str, Any] | None) -> None:
        """Adds a step.

        Args:
            begun: its episodes.
            ends: whether each of those that ended has a verdict.
            row: its metrics.
        """
        planned = len(begun) if row else max(len(begun), GROUPS * GROUP_SIZE)
        self.steps += row is not None
        self.planned += planned
        self.pending += planned - len(ends)
        self.scored += row["episodes"] if row else sum(ends)
        self.infra += row["infra"] if row else len(ends) - sum(ends)


def ended_in(journal: Path) -> set[str]:
    """Episodes that have ended."""
    return {one["episode"] for one in read_records(journal) if one["kind"] == "end"}


class Soak:
    """One run and its troubles.

    Args:
        place: for recipes and model.
        disk: where the run lies.
        small: whether that can be filled.
        address: of the cluster; None: the run is always one process.
        draw: of moments and troubles.

    Attributes:
        ways: in which the run goes on, and what may befall it there.
        troubles: how many there were of each kind, and with which code the run ended if it did.
    """

    def __init__(self, place: Path, disk: Path, small: bool, address: str | None, draw: random.Random) -> None:
        full = [self.fill_disk] if small else []
        self.ways: dict[str, list[Callable[[], None]]] = {"one process": [self.kill, self.close_engine, *full]}
        if address is not None:
            self.ways["cluster"] = [self.kill, self.kill_worker, *full]
            os.environ["RAY_ADDRESS"] = address
        self.troubles: Counter[str] = Counter()
        self._place = place
        self._disk = disk
        self._folder = disk / "run" / "grpo"
        self._draw = draw
        self._ended: dict[Path, set[str]] = {}
        off = json.dumps([rule.name for rule in RULES])
        text = RECIPE.format(model=make_model(place / "model", 32), groups=GROUPS, size=GROUP_SIZE, off=off)
        for way, more in (("one process", ""), ("cluster", CLUSTER)):
            (place / f"{way}.toml").write_text(text + more)
        self._begin("one process")

    def trouble(self, seconds: float) -> None:
        """Troubles the run for so long, and ends it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._wait_for_a_row()
            time.sleep(self._draw.uniform(0, QUIET))
            self._remember()
            kind = self._draw.choice(self.ways[self._way])
            kind()
            ended = self._process.poll()
            code = [] if ended is None else [f"code {ended}"]
            self.troubles[", ".join([self._way, kind.__name__.replace("_", " "), *code])] += 1
            if ended is not None:
                self._begin(self._draw.choice(list(self.ways)))
        self.kill()

    def watch(self, way: str, seconds: float) -> list[Sample]:
        """Leaves the run alone for so long, looks at it, and ends it."""
        self._begin(way)
        self._wait_for_a_row()
        samples, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(SAMPLE)
            samples.append(Sample.of([self._process.pid, *workers()]))
        self._remember()
        self.kill()
        return samples

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def kill_worker(self) -> None:
        os.kill(self._draw.choice(workers()), signal.SIGKILL)

    def close_engine(self) -> None:
        self._process.send_signal(signal.SIGUSR1)
        self._process.wait(PATIENCE)

    def fill_disk(self) -> None:
        filler = self._disk / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):  # the run may be quicker with the last of it
            while True:
                file.write(bytes(2**20))
        self._process.wait(PATIENCE)
        filler.unlink()

    def counts(self) -> Counts:
        """Every step's journal against the rows of metrics."""
        counts = Counts()
        rows = {row["step"]: row for row in read_rows(self._folder / METRICS)}
        for folder in self._steps():
            gather(folder)  # as the next command would
            records = list(read_records(folder / "journal.jsonl"))
            begun = {one["episode"] for one in records if one["kind"] == "start"}
            ends = {one["episode"]: one["verdict"] is not None for one in records if one["kind"] == "end"}
            counts.twice += sum(one["kind"] == "end" for one in records) - len(ends)
            counts.lost += len(self._ended.get(folder, set()) - ends.keys())
            counts.add(begun, list(ends.values()), rows.get(int(folder.name.removeprefix("step-"))))
        return counts

    def _begin(self, way: str) -> None:
        self._way = way
        command = [sys.executable, str(PROGRAM), str(self._place / f"{way}.toml"), str(self._disk / "run")]
        with (self._place / "said.txt").open("wb") as said:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)

    def _wait_for_a_row(self) -> None:
        """Until the run has got on; a resumed one first writes its rows anew."""
        size, until = None, time.monotonic() + STUCK
        while self._process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
            before, size = size, self._size()
            if before is not None and size > before:
                return
        said = (self._place / "said.txt").read_text(errors="replace")
        raise SystemExit(f"soak.py: no row came, {self._way}, code {self._process.poll()}: {said[-2000:]}")

    def _size(self) -> int:
        path = self._folder / METRICS
        return path.stat().st_size if path.exists() else 0

    def _steps(self) -> list[Path]:
        return sorted(path.parent for path in self._folder.glob("rollouts/*/journal.jsonl"))

    def _remember(self) -> None:
        """Notes who has ended, in the steps that may still be under way, by the workers' journals as well."""
        for folder in self._steps()[-4:]:
            ended = self._ended.setdefault(folder, set())
            ended |= ended_in(folder / "journal.jsonl")
            with suppress(FileNotFoundError, InputError):  # gathered meanwhile
                for path in folder.glob(f"{WORKERS}/*/journal.jsonl"):
                    ended |= ended_in(path)


if __name__ == "__main__":
    main()
