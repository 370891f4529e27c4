"""Follows the `metrics.jsonl` of all stages while a run goes on, and hands every row to trackers once.

Rows are read from the files rather than handed over by trainers: whatever writes a stage's metrics is followed, a slow
tracker holds up nobody, and what is sent is on disk already. A step that a resumed run repeats is not sent again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quintain.interface.files import replacing
from quintain.pipeline.trackers import Tracker, tracker
from quintain.progress import say
from quintain.training.rows import METRICS, read_rows

SENT = "metrics-sent.json"
"""In the run's folder: the last step sent of each stage."""
POLL_SECONDS = 2.0


@contextmanager
def followed(run: Path, name: str, specs: Sequence[str]) -> Iterator[None]:
    """Sends rows to the trackers of a recipe while the block runs.

    Args:
        run: the run's folder.
        name: the recipe's.
        specs: `metrics_to` of the recipe.

    Raises:
        InputError: a tracker's package is missing, or its port is taken.
    """
    if not specs:
        yield
        return
    trackers = [tracker(spec, run, name) for spec in specs]
    ended = threading.Event()
    thread = threading.Thread(
        target=_follow, args=(Follower(run, trackers), ended), name="quintain-metrics", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for one in trackers:
            one.close()


class Follower:
    """Remembers which rows are sent, in a file of the run too."""

    def __init__(self, run: Path, trackers: Sequence[Tracker]) -> None:
        self._run = run
        self._trackers = trackers
        self._note = run / SENT
        self._sent: dict[str, int] = json.loads(self._note.read_text()) if self._note.is_file() else {}

    def send(self) -> None:
        """Sends the rows that are new."""
        for path in sorted(self._run.glob(f"*/{METRICS}")):
            stage = path.parent.name
            new = [row for row in read_rows(path) if row["step"] > self._sent.get(stage, 0)]
            for row in new:
                metrics = _numbers(row)
                for one in self._trackers:
                    one.log(stage, row["step"], metrics)
            if new:
                self._sent[stage] = new[-1]["step"]
                with replacing(self._note) as file:
                    file.write(json.dumps(self._sent).encode())


def _follow(follower: Follower, ended: threading.Event) -> None:
    # A tracker that fails, a full disk or a server that is gone, must not end the run it watches.
    try:
        while not ended.wait(POLL_SECONDS):
            follower.send()
        follower.send()
    except Exception as error:
        say(f"metrics_to: no more rows are sent: {type(error).__name__}: {error}")


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in row.items() if isinstance(value, (int, float)) and name != "step"}
