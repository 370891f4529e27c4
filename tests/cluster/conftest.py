"""A tiny model for workers, and a local Ray cluster of several nodes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from counting import NODE, MakeKit

HEAD = "127.0.0.2"
"""Ray turns 127.0.0.1 into the machine's own address; other loopback addresses stay what they are."""


@pytest.fixture
def make_kit(model_folder: Path) -> MakeKit:
    return MakeKit(model_folder)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A head without workers and two nodes, all on loopback addresses."""
    ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    from ray.cluster_utils import Cluster

    here = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])  # what workers import
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    os.environ |= {"PYTHONPATH": here, "COUNTING_SECONDS": "0.02"}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "node_ip_address": HEAD, **NODE})
    for number in (3, 4):
        made.add_node(num_cpus=2, node_ip_address=f"127.0.0.{number}", **NODE)
    ray.init(address=made.address, _node_ip_address=HEAD, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()
