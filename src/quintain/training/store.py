"""Tokenised documents on disk: written one by one, read one by one, never in memory together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

IDS, WEIGHTS, INDEX = "ids.u32", "weights.u8", "index.i64"
"""Token ids; 1 where the token carries loss; the end of every document in both."""


class Documents(Protocol):
    """Tokenised documents by number."""

    def __len__(self) -> int:
        """Number of documents."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens of all documents."""
        ...

    def length(self, number: int) -> int:
        """Tokens of one document."""
        ...

    def read(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids `[T]` and loss weights `[T]`, 0 or 1, of one document."""
        ...


class StoreWriter:
    """Appends documents to a folder; use it as a context manager.

    Args:
        folder: where the three files go; made if missing.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ids = (folder / IDS).open("wb")
        self._weights = (folder / WEIGHTS).open("wb")
        self._index = (folder / INDEX).open("wb")
        self._end = 0

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, ids: Sequence[int], weights: Sequence[int]) -> None:
        """Appends one document: ids `[T]` and weights `[T]`, 0 or 1."""
        self._ids.write(np.asarray(ids, dtype=np.uint32).tobytes())
        self._weights.write(np.asarray(weights, dtype=np.uint8).tobytes())
        self._end += len(ids)
        self._index.write(np.int64(self._end).tobytes())

    def close(self) -> None:
        """Ends the files."""
        for file in (self._ids, self._weights, self._index):
            file.close()


class Store:
    """Documents of a folder a `StoreWriter` wrote, mapped into memory: only pages that are read are loaded."""

    def __init__(self, folder: Path) -> None:
        self._ids = _map(folder / IDS, np.uint32)
        self._weights = _map(folder / WEIGHTS, np.uint8)
        self._ends = _map(folder / INDEX, np.int64)

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def tokens(self) -> int:
        """Tokens of all documents."""
        return len(self._ids)

    def length(self, number: int) -> int:
        """Tokens of one document."""
        start, end = self._range(number)
        return end - start

    def read(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids `[T]` and loss weights `[T]` of one document."""
        start, end = self._range(number)
        return self._ids[start:end], self._weights[start:end]

    def _range(self, number: int) -> tuple[int, int]:
        return int(self._ends[number - 1]) if number else 0, int(self._ends[number])


def _map(path: Path, kind: type) -> np.ndarray:
    if not path.stat().st_size:  # an empty file can't be mapped
        return np.empty(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r")
