"""The dispatcher under any order of events: exactly once, bounded, fair, never stale."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quintain.cluster.dispatcher import Dispatcher
from quintain.interface.generation import Load

LIMITS = {"narrow": 2}
LAG = 1


class Events(RuleBasedStateMachine):
    """Workers join, finish, fall behind and are lost, and lost ones finish late; a record of it is kept by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.dispatcher: Dispatcher[int] = Dispatcher(LIMITS, LAG)
        self.world: dict[int, str] = {}
        self.delivered: list[int] = []
        self.slots: dict[str, int] = {}
        self.versions: dict[str, int] = {}
        self.running: dict[str, list[int]] = {}
        self.late: list[int] = []
        self.version = 0
        self.joined = 0

    @rule(world=st.sampled_from(["wide", "narrow"]))
    def plan(self, world: str) -> None:
        key = len(self.world)
        self.world[key] = world
        self.dispatcher.plan(key, world)

    @rule(slots=st.integers(1, 3), behind=st.integers(0, 3))
    def join(self, slots: int, behind: int) -> None:
        name = f"w{self.joined}"
        self.joined += 1
        self.slots[name], self.versions[name], self.running[name] = slots, max(0, self.version - behind), []
        self.dispatcher.join(name, slots, self.versions[name])

    @rule()
    def publish(self) -> None:
        self.version += 1
        self.dispatcher.publish(self.version)

    @precondition(lambda self: self.slots)
    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.slots)))
        self.versions[name] = self.version
        self.dispatcher.updated(name, self.version)

    @precondition(lambda self: self.slots)
    @rule(data=st.data(), queued=st.integers(0, 9), kv=st.floats(0, 1))
    def report(self, data: st.DataObject, queued: int, kv: float) -> None:
        self.dispatcher.report(data.draw(st.sampled_from(sorted(self.slots))), Load(queued, kv))

    @rule()
    def assign(self) -> None:
        for name, key in self.dispatcher.assign():
            assert self.versions[name] >= self.version - LAG
            assert key not in self.delivered
            assert all(key not in keys for keys in self.running.values()), "runs twice at once"
            self.running[name].append(key)
        fresh = [name for name in self.slots if self.versions[name] >= self.version - LAG]
        free = any(len(self.running[name]) < self.slots[name] for name in fresh)
        waiting = set(self.world) - set(self.delivered) - {key for keys in self.running.values() for key in keys}
        narrow = sum(self.world[key] == "narrow" for keys in self.running.values() for key in keys)
        allowed = [key for key in waiting if self.world[key] == "wide" or narrow < LIMITS["narrow"]]
        assert not (free and allowed), "a worker idles while an episode waits"

    @precondition(lambda self: any(self.running.values()))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(name for name, keys in self.running.items() if keys)))
        key = data.draw(st.sampled_from(self.running[name]))
        self.running[name].remove(key)
        self.deliver(key)
        self.dispatcher.free(name, key)

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def a_lost_worker_finishes(self, data: st.DataObject) -> None:
        self.deliver(data.draw(st.sampled_from(self.late)))

    @precondition(lambda self: self.slots)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.slots)))
        lost = self.running.pop(name)
        del self.slots[name], self.versions[name]
        self.late += lost
        assert sorted(self.dispatcher.lose(name)) == sorted(key for key in lost if key not in self.delivered)

    def deliver(self, key: int) -> None:
        assert self.dispatcher.finish(key) == (key not in self.delivered)
        if key not in self.delivered:
            self.delivered.append(key)

    @invariant()
    def bounds_hold(self) -> None:
        assert all(len(keys) <= self.slots[name] for name, keys in self.running.items())
        narrow = sum(self.world[key] == "narrow" for keys in self.running.values() for key in keys)
        assert narrow <= LIMITS["narrow"]

    def teardown(self) -> None:
        """With one good worker, everything that was planned is delivered in the end, once."""
        self.join(slots=2, behind=0)
        for name in sorted(self.slots):
            self.versions[name] = self.version
            self.dispatcher.updated(name, self.version)
        while len(self.delivered) < len(self.world):
            self.assign()
            name, key = next((name, keys[0]) for name, keys in self.running.items() if keys)
            self.running[name].remove(key)
            self.deliver(key)
            self.dispatcher.free(name, key)
        assert sorted(self.delivered) == sorted(self.world)


Events.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEvents = Events.TestCase


def two_workers(first: Load, second: Load) -> Dispatcher[str]:
    dispatcher: Dispatcher[str] = Dispatcher()
    for name, load in (("a", first), ("b", second)):
        dispatcher.join(name, 4, 0)
        dispatcher.report(name, load)
    return dispatcher


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (Load(), Load(), ["a", "b", "a", "b"]),
        (Load(queued=8), Load(), ["b", "b", "b", "b"]),  # 8 queued by 4 slots weigh as much as two full workers
        (Load(kv=0.6), Load(), ["b", "b", "b", "a"]),  # 0.6 < 3 of 4 slots
    ],
)
def test_an_episode_goes_to_the_worker_with_the_least_to_do(first: Load, second: Load, expected: list[str]) -> None:
    dispatcher = two_workers(first, second)
    for key in "1234":
        dispatcher.plan(key, "world")
    assert [name for name, _ in dispatcher.assign()] == expected


def test_what_a_lost_worker_ran_goes_on_before_what_was_planned_later() -> None:
    dispatcher: Dispatcher[str] = Dispatcher()
    dispatcher.join("a", 1, 0)
    for key in "123":
        dispatcher.plan(key, "world")
    assert dispatcher.assign() == [("a", "1")]
    dispatcher.lose("a")
    dispatcher.join("b", 2, 0)
    assert dispatcher.assign() == [("b", "1"), ("b", "2")]


def test_late_news_of_older_weights_makes_no_worker_stale() -> None:
    dispatcher: Dispatcher[str] = Dispatcher()
    dispatcher.join("a", 1, 0)
    dispatcher.publish(2)
    dispatcher.plan("1", "world")
    assert dispatcher.assign() == []
    dispatcher.updated("a", 2)
    dispatcher.updated("a", 1)
    assert dispatcher.assign() == [("a", "1")]


def test_an_episode_that_nobody_waits_for_is_not_begun_and_not_delivered() -> None:
    dispatcher: Dispatcher[str] = Dispatcher()
    dispatcher.plan("1", "world")
    dispatcher.drop("1")
    dispatcher.join("a", 1, 0)
    assert dispatcher.assign() == []
    assert not dispatcher.finish("1")


def test_an_episode_is_planned_once() -> None:
    dispatcher: Dispatcher[str] = Dispatcher()
    dispatcher.plan("1", "world")
    with pytest.raises(ValueError, match="planned twice"):
        dispatcher.plan("1", "world")
