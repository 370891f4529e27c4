"""GRPO for an hour under trouble: does every episode come out once, and do memory and file handles stay flat?

    python benchmarks/soak.py --minutes 60 --out soak.json

For three fifths of the time a run on a tiny random model is troubled at random moments: killed (SIGKILL), its engine
closed, its disk filled; each time the same command is run again. Its world fails now and then of itself. For the rest
it runs undisturbed while memory and file handles are sampled. Then, by the journals on the left and the rows of
metrics on the right,

    episodes planned = scored + infra + pending

no episode has ended twice, and none is missing that had ended before a trouble. The disk that is filled is a small
tmpfs, which takes root to mount; without, that trouble is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import linear_regression
from typing import Any

from rich.console import Console
from rich.table import Table
from support.long_tail import make_model
from support.results import write_result

from quintain.harness.journal import read_records
from quintain.training.rows import METRICS, read_rows
from quintain.training.rules import RULES

PROGRAM = Path(__file__).parent / "support" / "soaked.py"
DISK = "1g"
GROUPS, GROUP_SIZE = 4, 8
TROUBLED = 0.6
"""Share of the time; the rest is for measuring."""
QUIET = 5.0
"""Most seconds between the run's first new row and the next trouble."""
PATIENCE = 120.0
"""Seconds within which a run without disk or engine must have ended by itself."""
SAMPLE = 2.0
"""Seconds between two looks at memory and handles."""

RECIPE = """
name = "soak"
concurrency = 32

[model]
base = "{model}"

[world]
world = "soaked:Shaky"

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, disk(Path(name) / "disk") as small:
        soak = Soak(Path(name), Path(name) / "disk", small, random.Random(options.seed))
        try:
            soak.trouble(options.minutes * 60 * TROUBLED)
            samples = soak.watch(options.minutes * 60 * (1 - TROUBLED))
        finally:
            soak.kill()
        counts = soak.counts()
    slopes = {name: slope(samples, name) for name in ("mib", "handles")}
    result = {
        "minutes": options.minutes,
        "troubles": dict(soak.troubles),
        "counts": asdict(counts),
        "reconciled": counts.reconciled,
        "per_hour": slopes,
        "undisturbed_seconds": samples[-1].seconds - samples[0].seconds,
        "at_the_end": {"mib": samples[-1].mib, "handles": samples[-1].handles},
    }
    table = Table("", "")
    for name, value in (*soak.troubles.items(), *asdict(counts).items()):
        table.add_row(name, f"{value:,}")
    table.add_row("memory", f"{samples[-1].mib:.0f} MiB, {slopes['mib']:+.1f} MiB an hour")
    table.add_row("file handles", f"{samples[-1].handles}, {slopes['handles']:+.1f} an hour")
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


@dataclass(frozen=True)
class Sample:
    """What the run's process holds."""

    seconds: float
    mib: float
    handles: int

    @classmethod
    def of(cls, pid: int) -> Sample:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return cls(time.monotonic(), resident / 2**20, len(os.listdir(f"/proc/{pid}/fd")))


def slope(samples: list[Sample], name: str) -> float:
    """Change an hour of the second half: the first fills caches."""
    late = samples[len(samples) // 2 :]
    return linear_regression([one.seconds / 3600 for one in late], [getattr(one, name) for one in late]).slope


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


class Soak:
    """One run and its troubles.

    Args:
        place: for recipe and model.
        disk: where the run lies.
        small: whether that can be filled.
        draw: of moments and troubles.

    Attributes:
        troubles: how many there were of each kind, and with which code the run ended.
    """

    def __init__(self, place: Path, disk: Path, small: bool, draw: random.Random) -> None:
        self.troubles: Counter[str] = Counter()
        self._disk = disk
        self._folder = disk / "run" / "grpo"
        self._kinds = [self.kill, self.close_engine, *([self.fill_disk] if small else [])]
        self._draw = draw
        self._ended: dict[Path, set[str]] = {}
        recipe, off = place / "soak.toml", json.dumps([rule.name for rule in RULES])
        model = make_model(place / "model", 32)
        recipe.write_text(RECIPE.format(model=model, groups=GROUPS, size=GROUP_SIZE, off=off))
        self._command = [sys.executable, str(PROGRAM), str(recipe), str(disk / "run")]
        self._begin()

    def trouble(self, seconds: float) -> None:
        """Troubles the run for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._wait_for_a_row()
            time.sleep(self._draw.uniform(0, QUIET))
            self._remember()
            kind = self._draw.choice(self._kinds)
            kind()
            self.troubles[f"{kind.__name__}, code {self._process.wait()}"] += 1
            self._begin()

    def watch(self, seconds: float) -> list[Sample]:
        """Leaves the run alone for so long, looks at it, and ends it."""
        self._wait_for_a_row()
        samples, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(SAMPLE)
            samples.append(Sample.of(self._process.pid))
        self._remember()
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        return samples

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close_engine(self) -> None:
        self._process.send_signal(signal.SIGUSR1)
        self._process.wait(PATIENCE)

    def fill_disk(self) -> None:
        filler = self._disk / "filler"
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(self._disk).free)
        self._process.wait(PATIENCE)
        filler.unlink()

    def counts(self) -> Counts:
        """Every step's journal against the rows of metrics."""
        counts = Counts()
        rows = {row["step"]: row for row in read_rows(self._folder / METRICS)}
        for folder in self._journals():
            records = list(read_records(folder / "journal.jsonl"))
            begun = {one["episode"] for one in records if one["kind"] == "start"}
            ends = {one["episode"]: one["verdict"] is not None for one in records if one["kind"] == "end"}
            counts.twice += sum(one["kind"] == "end" for one in records) - len(ends)
            counts.lost += len(self._ended.get(folder, set()) - ends.keys())
            counts.add(begun, list(ends.values()), rows.get(int(folder.name.removeprefix("step-"))))
        return counts

    def _begin(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def _wait_for_a_row(self) -> None:
        """Until the run has got on; a resumed one first writes its rows anew."""
        size = None
        while self._process.poll() is None:
            time.sleep(0.1)
            before, size = size, self._size()
            if before is not None and size > before:
                return
        raise SystemExit(f"soak.py: the run ended by itself with code {self._process.returncode}")

    def _size(self) -> int:
        path = self._folder / METRICS
        return path.stat().st_size if path.exists() else 0

    def _journals(self) -> list[Path]:
        return sorted(path.parent for path in self._folder.glob("rollouts/*/journal.jsonl"))

    def _remember(self) -> None:
        """Notes who has ended, in the steps that may still be under way."""
        for folder in self._journals()[-4:]:
            records = read_records(folder / "journal.jsonl")
            ended = {one["episode"] for one in records if one["kind"] == "end"}
            self._ended.setdefault(folder, set()).update(ended)


if __name__ == "__main__":
    main()
