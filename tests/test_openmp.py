from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from quintain.inference.local import LocalEngine
from quintain.interface.generation import Sampling
from quintain.openmp import end_team
from tiny import tiny_model

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    end_team()
    torch.set_num_threads(before)


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def settles_at(expected: int) -> bool:
    """An ended thread leaves /proc a moment later."""
    until = time.monotonic() + 10
    while threads() != expected and time.monotonic() < until:
        time.sleep(0.01)
    return threads() == expected


def parallel_operation() -> None:
    torch.zeros(1_000_000).add(1)


def test_ending_a_team_ends_the_helper_threads_of_this_thread_alone(two_threads: None) -> None:
    end_team()
    with ThreadPoolExecutor(1) as other:
        other.submit(torch.set_num_threads, 2).result()
        before = threads()
        parallel_operation()
        other.submit(parallel_operation).result()
        assert threads() == before + 2
        assert end_team()
        assert settles_at(before + 1)
        assert other.submit(end_team).result()
        assert settles_at(before)


def test_a_team_that_ended_starts_again_with_the_next_operation(two_threads: None) -> None:
    for _ in range(3):
        parallel_operation()
        with_team = threads()
        end_team()
        assert settles_at(with_team - 1)


async def test_while_the_engine_works_its_caller_has_no_team_and_idle_it_has_none_itself(two_threads: None) -> None:
    end_team()
    engine = LocalEngine(tiny_model())
    parallel_operation()
    with_team = threads()
    await engine.generate([1, 2, 3], session="s", group="g", sampling=Sampling(max_tokens=2))
    assert settles_at(with_team - 1)
    engine.close()
