"""A hundred SIGKILLs at random moments: is an episode lost, is one played to its end twice?

    python benchmarks/kills.py --out kills.json

A program that plays many short episodes, whose world fails now and then, is killed and begun again until it has been
killed so often; then it may end. Episodes are counted by the journal as it grows, and once more when all have ended.
Each counts its own calls, so that a turn that was lost or done twice makes it fail. (`soak.py` kills whole runs.)
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from support.results import write_result

from quintain.cluster.shards import Shard
from quintain.harness.journal import read_records

PROGRAM = Path(__file__).parent / "support" / "counted.py"
PER_KILL = 30
"""Planned episodes for every kill: more than end between two of them."""
LATEST = 0.4
"""Most seconds between the first new end of an episode and the kill."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    count = options.kills * PER_KILL
    with tempfile.TemporaryDirectory() as name:
        journal = Path(name)
        ended = killed([sys.executable, str(PROGRAM), name, str(count)], journal, options)
        records = [one for one in read_records(journal / "journal.jsonl") if one["kind"] == "end"]
    ends = Counter(one["episode"] for one in records)
    verdicts = [one["verdict"] for one in records]
    result = {
        "kills": options.kills,
        "planned": count,
        "ended_before_the_last_kill": len(ended),
        "ended": len(ends),
        "lost": len(ended - ends.keys()) + count - len(ends),
        "twice": sum(times - 1 for times in ends.values()),
        "infra": verdicts.count(None),
        "wrong": sum(one is not None and not one["success"] for one in verdicts),
    }
    print(result)
    write_result(options.out, result)
    if result["lost"] or result["twice"] or result["wrong"]:
        sys.exit(1)


def killed(command: list[str], journal: Path, options: argparse.Namespace) -> set[str]:
    """Kills a program so often and lets it end; returns the episodes that had ended before the last kill."""
    draw, shard, ended = random.Random(options.seed), Shard(journal), set[str]()
    for _ in range(options.kills):
        process = subprocess.Popen(command)
        while not (new := shard.finished()):
            if process.poll() is not None:
                raise SystemExit(f"kills.py: it ended by itself with code {process.returncode}")
            time.sleep(0.01)
        time.sleep(draw.uniform(0.0, LATEST))
        process.send_signal(signal.SIGKILL)
        process.wait()
        ended |= new.keys() | shard.finished().keys()
    subprocess.run(command, check=True)
    return ended


if __name__ == "__main__":
    main()
