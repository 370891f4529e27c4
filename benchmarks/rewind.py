"""What rewinding the shop costs: snapshot and restore by SQLite's serialize, at several sizes.

    python benchmarks/rewind.py --out benchmarks/results/rewind.json

The database of a shop is filled up with orders to each size; then `snapshot()` and `restore()` of the world are timed
together, on a fresh instance as the harness does it, and beside them the same rows saved as SQL text and read back.
Figures are medians over the runs, with the lowest and the highest.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.results import write_result

from quintain.worlds.orders import Orders, generate
from quintain.worlds.rows import differences, open_copy

MEGABYTE = 1_000_000
SIZES = (0.0, 1.0, 4.0)
"""Megabytes; 0 is the shop as its tasks have it."""


def filled(megabytes: float) -> Orders:
    """A world whose database is at least so large."""
    (task,) = generate("eval", 1, 0)
    world = Orders()
    world.reset(task)
    row = "INSERT INTO orders(customer, status, address, placed_days_ago) VALUES('C1', 'placed', 'Bridge Street 7', 4)"
    while len(world.database.serialize()) < megabytes * MEGABYTE:
        world.database.executescript("BEGIN;" + f"{row};" * 500 + "COMMIT;")
    return world


def serialized(world: Orders) -> None:
    """As the harness rewinds: a snapshot, then another instance restored from it, its first row read."""
    other = Orders()
    other.restore(world.snapshot())
    other.database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    other.close()


def as_text(world: Orders) -> None:
    """The same by SQL text."""
    other = sqlite3.connect(":memory:")
    other.executescript("".join(world.database.iterdump()))
    other.close()


def milliseconds(work: Callable[[Orders], None], world: Orders, runs: int) -> dict[str, float]:
    work(world)
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        work(world)
        times.append(1000 * (time.perf_counter() - begun))
    return {"median": statistics.median(times), "lowest": min(times), "highest": max(times)}


def measure(megabytes: float, runs: int) -> dict[str, Any]:
    world = filled(megabytes)
    other = Orders()
    other.restore(world.snapshot())
    assert differences(world.database, open_copy(other.database.serialize())) == []
    result = {
        "megabytes": len(world.database.serialize()) / MEGABYTE,
        "serialize_ms": milliseconds(serialized, world, runs),
        "sql_text_ms": milliseconds(as_text, world, max(3, runs // 50)),
    }
    return result | {"ratio": result["sql_text_ms"]["median"] / result["serialize_ms"]["median"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    rows = [measure(size, options.runs) for size in SIZES]
    print(f"{'MB':>6}{'serialize ms':>14}{'lowest':>8}{'highest':>9}{'SQL text ms':>13}{'ratio':>8}")
    for row in rows:
        one = row["serialize_ms"]
        figures = f"{one['median']:>14.3f}{one['lowest']:>8.3f}{one['highest']:>9.3f}"
        print(f"{row['megabytes']:>6.2f}{figures}{row['sql_text_ms']['median']:>13.1f}{row['ratio']:>8.0f}")
    if options.out is not None:
        write_result(options.out, {"sqlite": sqlite3.sqlite_version, "runs": options.runs, "rows": rows})


if __name__ == "__main__":
    main()
