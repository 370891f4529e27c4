"""The processes of one `torchrun`: rank 0 runs the program, the others do what it asks of their workers.

Only rank 0 plays, packs, judges, reads clocks and writes; the others hold their part of a model and wait. So no
decision can come out differently on two ranks, and what does not train needs no code for several of them. (One
controller, many workers: Sheng et al. 2024, "HybridFlow", arXiv 2409.19256.)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor

from quintain.interface.errors import InputError

W = TypeVar("W")
S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")

_PATIENCE = timedelta(days=30)
"""How long a rank waits to be asked for something: rank 0 may play or measure for days."""

_orders: Any = None
"""Group over which rank 0 asks; None where this process is the only one and was not started by `torchrun`."""


def join() -> bool:
    """Joins the other processes of this `torchrun`, by NCCL between GPUs and gloo between CPUs.

    Returns:
        Whether this is rank 0, which runs the program; the others call `serve`.

    Raises:
        InputError: this machine has fewer GPUs than processes.
    """
    global _orders
    place, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if gpus:
        if place >= gpus:
            raise InputError(f"process {place + 1} of this machine has no GPU of its own; --nproc-per-node {gpus}")
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if gpus else "gloo")
    _orders = dist.new_group(backend="gloo", timeout=_PATIENCE)
    return rank() == 0


def joined() -> bool:
    """Whether this process was started by `torchrun`: models are then sharded, be it over one rank."""
    return _orders is not None


def rank() -> int:
    """Number of this process."""
    return dist.get_rank() if joined() else 0


def size() -> int:
    """Number of processes."""
    return dist.get_world_size() if joined() else 1


def device() -> torch.device:
    """Where this rank computes."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def barrier() -> None:
    """Waits for every rank."""
    if joined():
        dist.barrier(_orders)


def summed(values: Mapping[str, float]) -> dict[str, float]:
    """Sums over the ranks, which all name the same values."""
    if not joined():
        return dict(values)
    names = sorted(values)
    sums = torch.tensor([values[name] for name in names], dtype=torch.float64)
    dist.all_reduce(sums, group=_orders)
    return dict(zip(names, sums.tolist(), strict=True))


def rows(tensor: Tensor) -> Tensor:
    """What this rank holds of a tensor: some of its first dimension's rows, or all where it is not cut."""
    found = tensor.detach()
    return found.to_local() if isinstance(found, DTensor) else found


def first_row(tensor: Tensor) -> int:
    """Number of the first row that this rank holds."""
    if not isinstance(tensor, DTensor):
        return 0
    each = -(-tensor.shape[0] // size())  # as torch.chunk cuts
    return min(rank() * each, tensor.shape[0])


class WorkerGroup(Generic[W]):
    """A worker on every rank; all do the same at the same time, each with its share.

    Args:
        make: makes a worker.
        own: what it is made from on rank 0.
        others: and on the other ranks; pickled, like everything that is asked of them.

    Attributes:
        own: rank 0's worker.
    """

    def __init__(self, make: type[W], own: tuple[Any, ...], others: tuple[Any, ...]) -> None:
        _ask([(make, others)] * size())
        self.own = make(*own)

    def every(self, work: Callable[Concatenate[W, P], T], *arguments: P.args, **_: P.kwargs) -> T:
        """Calls a method of every worker; returns what rank 0's does."""
        _ask([(work, arguments)] * size())
        return work(self.own, *arguments)  # type: ignore[call-arg]

    def each(self, work: Callable[[W, S, *tuple[Any, ...]], T], shares: Sequence[S], *arguments: Any) -> T:
        """Calls a method of every worker with its own share as the first argument."""
        _ask([(work, (share, *arguments)) for share in shares])
        return work(self.own, shares[0], *arguments)

    def end(self) -> None:
        """Frees the workers of the other ranks."""
        _ask([(None, ())] * size())


def serve() -> None:
    """What ranks other than 0 do: keep a worker and do what is asked of it, until they are dismissed."""
    worker: Any = None
    while (asked := _take([])) is not None:
        work, arguments = asked
        if work is None:
            worker = None
        elif isinstance(work, type):
            worker = None  # its memory, before the next one needs it
            worker = work(*arguments)
        else:
            work(worker, *arguments)
    leave()


def dismiss() -> None:
    """Ends the other ranks; the last thing rank 0 does."""
    _ask([None] * size())
    leave()


def leave() -> None:
    """Closes the connections to the other processes."""
    global _orders
    _orders = None
    dist.destroy_process_group()


def _ask(orders: list[Any]) -> None:
    if joined():
        _take(orders)


def _take(orders: list[Any]) -> Any:
    """This rank's order out of those that rank 0 hands out."""
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, orders or None, src=0, group=_orders)
    return mine[0]
