"""Where workers go: Ray is reached, and asked whether it has room for them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from quintain.interface.errors import InputError


@dataclass(frozen=True, slots=True)
class Placement:
    """How many workers there are, and what each takes.

    Attributes:
        workers: number of workers.
        cpus: processor cores of one.
        gpus: GPUs of one.
        episodes: most episodes at once on one.
        limits: most episodes of a world at once, on all of them.
        lag: versions a worker's weights may be behind when it begins an episode.
    """

    workers: int
    cpus: float = 1.0
    gpus: float = 0.0
    episodes: int = 16
    limits: dict[str, int] = field(default_factory=dict)
    lag: int = 0


def connect(placement: Placement) -> Any:
    """Ray, connected to the cluster of `RAY_ADDRESS`, or to one of its own on this machine.

    Raises:
        InputError: Ray is missing or does not answer, or the cluster is too small.
    """
    try:
        import ray
    except ModuleNotFoundError:
        raise InputError("[cluster] needs the package ray: pip install 'quintain[cluster]'") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere unless asked for
    address = os.environ.get("RAY_ADDRESS")
    own = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"} if address is None else {}
    try:
        if not ray.is_initialized():
            ray.init(address or "local", log_to_driver=False, configure_logging=False, **own)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"no Ray cluster at {address or 'this machine'}: {reason}") from error
    there = ray.cluster_resources()
    for name, each in (("CPU", placement.cpus), ("GPU", placement.gpus)):
        if placement.workers * each > there.get(name, 0.0):
            raise InputError(
                f"cluster: {placement.workers} workers x {each:g} {name} = {placement.workers * each:g} > "
                f"{there.get(name, 0.0):g} that Ray has; ask for fewer, or add nodes"
            )
    return ray
