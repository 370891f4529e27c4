"""Work that is mapped over Ray Data: one task reads the pieces, many processes work on them, results keep their order.

Files are read on a node, from the filesystem that all nodes share. Only a few blocks are in memory at a time, however
long the stream is.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from quintain.cluster.placement import Placement, connect
from quintain.interface.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

BLOCK = 1 << 20
"""Bytes of a block of pieces."""


def mapped(work: Callable[[T], R], read: Callable[[], Iterable[T]], placement: Placement) -> Iterator[R]:
    """`work` of each piece, in order.

    Args:
        work: the same for a piece wherever it is done; sent to each process once.
        read: gives the pieces; picklable, as they and their results are.
        placement: how many processes work, and the cores of each; reading has none of its own.

    Raises:
        InputError: Ray Data is missing, Ray can't be reached, or the cluster is too small.
        Exception: what `read` or `work` raises.
    """
    ray = connect(placement)
    try:
        from ray.data import ActorPoolStrategy, DataContext
    except ImportError as error:
        raise InputError(f"[cluster] needs Ray Data ({error}): pip install 'quintain[cluster]'") from None
    context = DataContext.get_current()
    context.target_max_block_size = BLOCK
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    pieces = ray.data.from_items([0]).map_batches(_read, fn_args=(read,), batch_size=None, num_cpus=0)
    pool = ActorPoolStrategy(size=placement.workers)
    results = pieces.map(_Worker, fn_constructor_args=(ray.put(work),), compute=pool, num_cpus=placement.cpus)
    try:
        yield from (pickle.loads(row["result"]) for row in results.iter_rows())
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


def _read(_: Any, read: Callable[[], Iterable[Any]]) -> Iterator[dict[str, list[bytes]]]:
    """The pieces, a row each."""
    for piece in read():
        yield {"piece": [pickle.dumps(piece)]}


class _Worker:
    """One process at work."""

    def __init__(self, work: Any) -> None:
        import ray

        self._work: Callable[[Any], Any] = ray.get(work)

    def __call__(self, row: dict[str, bytes]) -> dict[str, bytes]:
        return {"result": pickle.dumps(self._work(pickle.loads(row["piece"])))}
