"""Speed and memory of curation on made-up trajectories: MB/s of journal read, peak memory, bytes held per episode.

    python benchmarks/curation.py --episodes 20000 --out curation.json
    python benchmarks/curation.py --episodes 1000000 --folder /big/disk --out curation_1m.json

The journal is written first and is not measured. Each size is curated in a process of its own, so that its peak is its
own; two sizes give the memory that grows with the number of episodes.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson
from support.results import write_result

from quintain.curation.config import CurationConfig
from quintain.curation.curate import curate
from quintain.interface.episode import Budget, Episode, Outcome, Segment, Span, Usage, Verdict
from quintain.interface.generation import Generation
from quintain.interface.messages import Action, Call, Observation, Turn, message
from quintain.interface.reading import JOURNAL
from quintain.interface.records import episode_records

WORDS = [
    f"{first}{second}" for first in "bdfgklmnprst" for second in ("ar", "el", "in", "om", "ud", "ast", "ent", "ion")
]
TURNS, TOKENS, PATTERNS = 6, 30, 64
OWN, NAME, CLUSTER = "@OWN@", "@NAME@", "@CLUSTER@"


def text(random_: random.Random, words: int) -> str:
    """Every third word is the episode's own, so that no two runs of three words are alike in two episodes."""
    return " ".join(OWN if place % 3 == 2 else random_.choice(WORDS) for place in range(words))


def generated(random_: random.Random) -> Generation:
    logprobs = tuple(round(-random_.random(), 5) for _ in range(TOKENS))
    return Generation(tuple(random_.choices(range(50_000), k=TOKENS)), logprobs, logprobs, "stop")


def pattern(number: int) -> bytes:
    """The journal's lines of an episode of a model: 5 calls with results of 60 words, an answer."""
    random_ = random.Random(number)
    turns = []
    for index in range(TURNS - 1):
        call = Call(f"{index}.0", "search", {"query": text(random_, 6)})
        action = Action(text(random_, 12), (call,), context=tuple(range(40)), generation=generated(random_))
        turns.append(Turn(action, (Observation(call.id, "search", text(random_, 60)),)))
    turns.append(Turn(Action(answer=text(random_, 10), generation=generated(random_))))
    episode = Episode(
        id=NAME,
        task_id=NAME,
        cluster=CLUSTER,
        world="bench",
        template=f"template{number % 20}",
        tags=(random_.choice(("lang:en", "lang:zh")),),
        agent="model",
        messages=(message("system", "You have tools."), message("user", text(random_, 25))),
        turns=tuple(turns),
        outcome=Outcome("answered"),
        verdict=Verdict(random_.random() < 0.6),
        usage=Usage(),
        segments=(Segment(()),),
        spans=(Span(0, 0, 0),) * TURNS,
    )
    return b"".join(orjson.dumps(record) + b"\n" for record in episode_records(episode, Budget()))


def write(folder: Path, episodes: int) -> int:
    """A journal of so many episodes, one in ten a copy of another; returns its size in bytes."""
    path = folder / JOURNAL
    path.parent.mkdir(parents=True, exist_ok=True)
    patterns = [pattern(number) for number in range(PATTERNS)]
    with path.open("wb") as file:
        for number in range(episodes):
            own = number - 1 if number % 10 == 9 else number
            made = patterns[own % PATTERNS].replace(OWN.encode(), b"w%d" % own)
            file.write(made.replace(NAME.encode(), b"e%d" % number).replace(CLUSTER.encode(), b"c%d" % (number // 4)))
    return path.stat().st_size


def measure(folder: Path) -> None:
    """Curates a folder's journal and prints seconds, peak memory and counts; runs in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu = time.perf_counter(), time.process_time()
    counts = curate({"bench": folder}, CurationConfig(), folder / "mix")
    took = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({**took, "start_mib": before / 1024, "peak_mib": peak / 1024, "counts": counts.to_json()}))


def run(episodes: int, home: Path) -> dict[str, object]:
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        size = write(Path(scratch), episodes)
        command = [sys.executable, __file__, "--measure", scratch]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    speed = {"mb_per_second": size / 1e6 / found["seconds"], "mb_per_cpu_second": size / 1e6 / found["cpu_seconds"]}
    return {"episodes": episodes, "journal_mb": size / 1e6, **speed, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=None, help="where the journal is made (default: the system's)")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--measure", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    half, whole = (run(count, options.folder) for count in (options.episodes // 2, options.episodes))
    growth = (whole["peak_mib"] - half["peak_mib"]) * 2**20 / (whole["episodes"] - half["episodes"])
    result = {"sizes": [half, whole], "bytes_per_episode": growth}
    print(json.dumps(result, indent=1))
    if options.out:
        write_result(options.out, result)


if __name__ == "__main__":
    main()
