"""How long a newcomer waits for nothing: `import quintain` and `quintain --help`, each in a fresh process.

    python benchmarks/startup.py --out startup.json

Medians over the runs, the interpreter's own start included, in wall seconds and in seconds of the processor, which a
busy machine leaves as they are. The files are in the page cache and byte code is there, as after the first start.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from support.results import write_result

STARTS = {
    "python": ([sys.executable, "-c", "pass"], None),
    "import quintain": ([sys.executable, "-c", "import quintain"], 0.3),
    "quintain --help": ([sys.executable, "-m", "quintain", "--help"], 0.5),
}


def start(command: list[str]) -> tuple[float, float]:
    """Wall seconds and processor seconds of one process."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    wall, after = time.perf_counter() - began, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("startup.json"))
    options = parser.parse_args()
    rows = []
    for name, (command, target) in STARTS.items():
        start(command)
        found = [start(command) for _ in range(options.runs)]
        wall, used = (statistics.median(column) for column in zip(*found, strict=True))
        rows.append({"what": name, "wall_s": wall, "processor_s": used, "target_s": target})
    print(f"{'':<18}{'wall s':>9}{'processor s':>13}{'target s':>10}")
    for row in rows:
        print(f"{row['what']:<18}{row['wall_s']:>9.3f}{row['processor_s']:>13.3f}{row['target_s'] or '':>10}")
    write_result(options.out, {"rows": rows, "runs": options.runs})


if __name__ == "__main__":
    main()
