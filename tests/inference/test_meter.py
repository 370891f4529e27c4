"""An engine's load as it is counted from outside: intervals by hand."""

from __future__ import annotations

import pytest

from quintain.inference import meter
from quintain.inference.meter import Meter
from quintain.interface.generation import Load


class Clock:
    """Shows what it is set to."""

    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(meter, "monotonic", lambda: made.now)
    return made


def test_it_is_busy_while_any_request_is_under_way(clock: Clock) -> None:
    counted = Meter()
    clock.now = 10.0
    with counted.request(5):
        clock.now = 12.0
        with counted.request(5):
            clock.now = 13.0
        assert counted.load() == Load(busy=3.0, up=13.0)
    clock.now = 20.0
    refused = counted.request(5)
    refused.__enter__()
    clock.now = 21.0
    refused.__exit__(ValueError, ValueError("refused"), None)
    clock.now = 40.0
    assert counted.load() == Load(busy=4.0, up=40.0)
    assert counted.load().idle == 0.9


def test_requests_beyond_its_places_are_queued_and_prompts_fill_its_cache(clock: Clock) -> None:
    counted = Meter(sessions=2, kv_tokens=100)
    with counted.request(30), counted.request(30):
        assert counted.load() == Load(queued=0, kv=0.6)
        with counted.request(60):
            assert counted.load() == Load(queued=1, kv=1.0)
    assert counted.load() == Load()
