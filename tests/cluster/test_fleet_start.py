"""A worker that is lost while it is being made ready: a moment that a real cluster shows only by chance.

Ray is stood in for: its actors are coroutines of this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from counting import counting_interface

from quintain.cluster import fleet as fleets
from quintain.cluster.fleet import Fleet
from quintain.cluster.placement import Placement
from quintain.interface.generation import Load


class ActorDied(Exception):
    """As Ray says it."""


class Method:
    """A method of an actor."""

    def __init__(self, work: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        self.remote = work


class Actor:
    """A worker; the first one dies of its first weights."""

    made = 0

    def __init__(self, name: str, make: object) -> None:
        Actor.made += 1
        self.number = Actor.made
        self.hello, self.update, self.load = Method(self._hello), Method(self._update), Method(self._load)

    @classmethod
    def options(cls, **_: object) -> Any:
        return SimpleNamespace(remote=cls)

    async def _hello(self) -> tuple[Any, str, int]:
        return counting_interface(), "node", self.number

    async def _update(self, weights: bytes, version: int) -> int:
        if self.number == 1:
            raise ActorDied("killed")
        return version

    async def _load(self) -> Load:
        return Load()


async def test_a_worker_lost_with_its_first_weights_is_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = dict.fromkeys(("RayTaskError", "ObjectStoreFullError", "OutOfDiskError"), ())
    ray = SimpleNamespace(
        remote=lambda **_: lambda worker: Actor,
        put=lambda weights: weights,
        kill=lambda actor: None,
        exceptions=SimpleNamespace(RayActorError=ActorDied, **errors),
    )
    monkeypatch.setattr(fleets, "connect", lambda placement: ray)
    fleet = Fleet(lambda: pytest.fail("nothing is made here"), Placement(workers=1), counting_interface())
    await fleet.publish(b"", 3)
    fleet._begin()
    while not fleet.pids:
        await asyncio.sleep(0)
        fleet._begin()  # raises what ended the fleet
    assert list(fleet.pids.values()) == [2]
    assert fleet._dispatcher._workers[next(iter(fleet.pids))].version == 3
    assert "is lost before it began: killed" in capsys.readouterr().err
    fleet.close()
