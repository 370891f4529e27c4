"""Plays so many episodes into a folder's journal, and goes on where it was killed: `counted.py FOLDER COUNT`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from shaky import Counting

from quintain import Harness, Journal
from quintain.agents.oracle import OracleAgent
from quintain.harness.journal import read_journal

CONCURRENCY = 8


async def play(folder: Path, count: int) -> None:
    """Plays what is not played yet."""
    tasks = Counting.generate("train", count, 0)
    agent = OracleAgent(Counting().solution, {task.id: task for task in tasks})
    journal = Journal(folder)
    done, unfinished = read_journal(folder)
    await Harness(Counting, journal=journal, concurrency=CONCURRENCY).rollout(
        tasks, agent, done=done, unfinished=unfinished
    )
    journal.close()


if __name__ == "__main__":
    asyncio.run(play(Path(sys.argv[1]), int(sys.argv[2])))
