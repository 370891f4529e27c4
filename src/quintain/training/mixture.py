"""Which document comes when: token targets by source, sources interleaved, all of it on disk.

Every source is walked in a random order that is computed, not stored. The next document always comes from the
source that is furthest behind its target, so the mix is the same at every point of the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.training.store import Documents

ROWS, STEPS = "rows.bin", "steps.i64"
_ROW = np.dtype([("source", np.int32), ("document", np.int64)])
_ROUNDS = 4
"""Rounds of the Feistel network; four make a random function a permutation that looks random (Luby & Rackoff 1988)."""


def shuffled_index(index: int, size: int, key: str) -> int:
    """Place `index` of a random permutation of `range(size)`, without storing the permutation.

    A Feistel network over the next even power of two, walked until it lands inside (Black & Rogaway 2002).
    """
    half = max(1, (max(1, size - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    while True:
        left, right = index >> half, index & mask
        for turn in range(_ROUNDS):
            data = f"{key}/{turn}/{right}".encode()
            left, right = right, left ^ (int.from_bytes(hashlib.blake2b(data, digest_size=8).digest()) & mask)
        index = (left << half) | right
        if index < size:
            return index


def token_goals(sources: Mapping[str, Documents], targets: Mapping[str, int], most_epochs: int) -> dict[str, int]:
    """Tokens to take from each source: its target as far as `most_epochs` passes hold, or one whole pass.

    Raises:
        InputError: a target names no source.
    """
    unknown = sorted(set(targets) - set(sources))
    if unknown:
        raise InputError(f"tokens: no source named {unknown[0]!r}; found: {', '.join(sources) or 'none'}")
    return {
        name: min(targets.get(name, documents.tokens), most_epochs * documents.tokens)
        for name, documents in sources.items()
    }


def interleave(sources: Mapping[str, Documents], goals: Mapping[str, int], seed: int) -> Iterator[tuple[str, int]]:
    """Documents as `(source, number)` until every goal is reached; a goal is passed by less than a document."""
    used = dict.fromkeys(goals, 0)
    taken = dict.fromkeys(goals, 0)
    while behind := [name for name, goal in goals.items() if used[name] < goal]:
        name = min(behind, key=lambda one: used[one] / goals[one])
        epoch, place = divmod(taken[name], len(sources[name]))
        number = shuffled_index(place, len(sources[name]), f"{seed}/{name}/{epoch}")
        taken[name] += 1
        used[name] += sources[name].length(number)
        yield name, number


def write_schedule(
    folder: Path, sources: Mapping[str, Documents], goals: Mapping[str, int], batch_tokens: int, seed: int
) -> dict[str, int]:
    """Writes which documents each optimiser step learns from; returns the tokens taken from each source.

    A step takes documents in order as long as they fit `batch_tokens`, and always at least one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {name: place for place, name in enumerate(sources)}
    used = dict.fromkeys(goals, 0)
    in_step = rows = 0
    with (folder / ROWS).open("wb") as row_file, (folder / STEPS).open("wb") as step_file:
        for name, number in interleave(sources, goals, seed):
            length = sources[name].length(number)
            if not rows or in_step + length > batch_tokens:
                step_file.write(np.int64(rows).tobytes())
                in_step = 0
            row_file.write(np.array((numbers[name], number), dtype=_ROW).tobytes())
            in_step += length
            rows += 1
            used[name] += length
    return used


class Schedule:
    """What `write_schedule` wrote. As `Documents` it is all documents in the order of training, for replay.

    Args:
        folder: of the schedule.
        sources: the same, in the same order.
    """

    def __init__(self, folder: Path, sources: Mapping[str, Documents]) -> None:
        self._names = list(sources)
        self._sources = sources
        self._rows = np.memmap(folder / ROWS, dtype=_ROW, mode="r")
        self._starts = np.memmap(folder / STEPS, dtype=np.int64, mode="r")

    @property
    def steps(self) -> int:
        """Number of optimiser steps."""
        return len(self._starts)

    def batch(self, step: int) -> list[Example]:
        """The documents of one step, loss on every token that is not masked."""
        end = int(self._starts[step + 1]) if step + 1 < self.steps else len(self._rows)
        return [self._example(row) for row in range(int(self._starts[step]), end)]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def tokens(self) -> int:
        """Tokens of all rows."""
        return sum(self.length(row) for row in range(len(self)))

    def length(self, number: int) -> int:
        """Tokens of the document in a row."""
        name, document = self._at(number)
        return self._sources[name].length(document)

    def read(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids and weights of the document in a row."""
        name, document = self._at(number)
        return self._sources[name].read(document)

    def _at(self, row: int) -> tuple[str, int]:
        found = self._rows[row]
        return self._names[int(found["source"])], int(found["document"])

    def _example(self, row: int) -> Example:
        ids, weights = self.read(row)
        first = (0.0,)  # nothing comes before the first token
        return Example(
            ids=tuple(ids.tolist()),
            weights=first + tuple(float(weight) for weight in weights[1:]),
            source=f"cpt:{self._at(row)[0]}",
        )
