"""What a run survives: interrupts, worlds that raise anything at all, and ten thousand episodes."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.till import ANSWER, Script, Till, do, task
from quintain import Budget, Harness, Journal, World, tool
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError

PUT = do("put", item="tea")


async def play(*actions, budget: Budget | None = None, world=Till):
    return await Harness(world, budget=budget).run(task(), Script(actions))


class Rude(Till):
    """Raises what no tool should."""

    @tool
    async def cancel(self) -> str:
        """Raises the error that means a cancelled task."""
        raise asyncio.CancelledError

    @tool
    async def cancel_inside(self) -> str:
        """Awaits a task that was cancelled."""
        inner = asyncio.ensure_future(asyncio.sleep(1))
        inner.cancel()
        await inner
        return "never"

    @tool
    async def interrupt_later(self) -> str:
        """Raises what Ctrl-C raises, in a coroutine."""
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    @tool
    def interrupt(self) -> str:
        """Raises what Ctrl-C raises, on a thread."""
        raise KeyboardInterrupt

    @tool
    def stop(self) -> str:
        """Raises the error no future can hold."""
        return next(iter([]))

    @tool
    def give_up(self) -> str:
        """Raises a timeout of its own, well within the limit."""
        raise TimeoutError("no answer from the server")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cancel", "CancelledError"),
        ("cancel_inside", "CancelledError"),
        ("interrupt", "KeyboardInterrupt"),
        ("interrupt_later", "KeyboardInterrupt"),
        ("stop", "StopIteration"),
        ("give_up", "TimeoutError: no answer from the server"),
    ],
)
async def test_a_tool_may_raise_anything_and_only_its_call_fails(name, words):
    episode = await play(PUT, do(name), PUT, ANSWER, world=Rude)
    assert episode.turns[1].observations[0].error == "exception"
    assert words in episode.turns[1].observations[0].content
    assert episode.turns[2].observations[0].value == 2
    assert episode.success


async def test_a_run_cancelled_during_an_async_tool_ends():
    running = asyncio.ensure_future(play(do("wait", seconds=60), ANSWER))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_reset_that_raises_is_tried_again_on_a_fresh_instance():
    made = []

    class Shaky(Till):
        def reset(self, task):
            made.append(self)
            if len(made) == 1:
                raise OSError("port taken")
            super().reset(task)

    assert (await play(PUT, ANSWER, world=Shaky)).success
    assert made[0] is not made[1]


async def test_a_reset_that_raises_twice_gives_no_score_and_asks_no_agent():
    class Broken(Till):
        def reset(self, task):
            raise OSError("port taken")

    agent = Script([ANSWER])
    episode = await Harness(Broken).run(task(), agent)
    assert episode.outcome.kind == "infra_error"
    assert episode.outcome.detail == "reset failed twice: OSError: port taken"
    assert agent.views == []


async def test_a_user_that_raises_gives_no_score():
    class Rough(Till):
        def user(self, view):
            raise KeyError("mood")

    episode = await play(ANSWER, world=Rough)
    assert episode.outcome.detail == "user() failed: KeyError: 'mood'"


async def test_a_verifier_that_returns_no_verdict_is_named():
    class Plain(Till):
        def verify(self, task, episode):
            return True

    episode = await play(ANSWER, world=Plain)
    assert "verify() must return a Verdict, found bool" in episode.outcome.detail


class Locked(World):
    """Holds what can't be pickled, from the start or from a call on."""

    name = "till"
    at_once = True

    def reset(self, task):
        self.count = 1
        if self.at_once:
            self.lock_of_the_till = threading.Lock()

    @tool
    def put(self, item: str) -> int:
        """Takes a lock."""
        self.lock_of_the_till = threading.Lock()
        return 1


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_state_that_cannot_be_saved_stops_the_run_and_names_attribute_and_remedy(at_once):
    world = type("Either", (Locked,), {"at_once": at_once})
    with pytest.raises(InputError) as caught:
        await Harness(world).rollout([task(f"t{n}") for n in range(3)], Script([PUT, ANSWER]))
    line = str(caught.value)
    assert line.startswith("world 'till': attribute 'lock_of_the_till' can't be saved in a snapshot")
    assert 'snapshots = "replay"' in line
    assert "override snapshot() and restore()" in line
    assert "\n" not in line


async def test_a_call_that_timed_out_is_not_run_again_by_a_world_that_replays():
    class Replaying(Till):
        snapshots = "replay"

    budget = Budget(call_seconds=0.1)
    episode = await play(PUT, do("hang", seconds=5), do("hang", seconds=5), PUT, ANSWER, budget=budget, world=Replaying)
    assert [turn.observations[0].error for turn in episode.turns[:4]] == ["", "timeout", "timeout", ""]
    assert episode.turns[3].observations[0].value == 2


INTERRUPTED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from harness.till import ANSWER, Script, Till, do, task
from quintain import Harness, Journal
agent = Script([do("put", item="tea"), do("wait", seconds=0.05)] * 3 + [ANSWER])
asyncio.run(Harness(Till, journal=Journal(Path(sys.argv[1])), concurrency=4).rollout(
    [task(f"t{{n}}") for n in range(400)], agent, on_episode=lambda episode: print(episode.id, flush=True)))
"""


async def test_an_interrupt_keeps_every_finished_episode_and_the_run_resumes(tmp_path):
    code = INTERRUPTED.format(tests=str(Path(__file__).parent.parent))
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that runs the tests in the background passes SIGINT on as ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(6)]
    while not any(len(one.turns) == 2 for one in read_journal(tmp_path)[1]):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT
    journal = Journal(tmp_path)
    finished, unfinished = read_journal(tmp_path)
    assert {*told, *out.split()} <= {one.id for one in finished}
    assert 1 <= len(unfinished) <= 4
    tasks = [task(one.id.split("#")[0]) for one in unfinished]
    agent = Script([PUT] * 6 + [ANSWER])
    resumed = await Harness(Till, journal=journal).rollout(tasks, agent, done=finished, unfinished=unfinished)
    journal.close()
    assert all(episode.success for episode in resumed)
    assert [len(view.turns) for view in agent.views].count(0) <= sum(not one.turns for one in unfinished)


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_ten_thousand_episodes_leave_nothing_behind(tmp_path):
    class Forgetful(Script):
        async def act(self, view):
            return self.actions[len(view.turns)]

    journal = Journal(tmp_path)
    harness = Harness(Till, journal=journal)
    agent = Forgetful([PUT, ANSWER])

    async def batch(first: int) -> None:
        episodes = await harness.rollout([task(f"t{n}") for n in range(first, first + 1000)], agent)
        assert len(episodes) == 1000

    await batch(0)
    opened, threads, before = handles(), threading.active_count(), blocks()
    for number in range(1, 10):
        await batch(1000 * number)
    assert blocks() - before < 9000  # less than one memory block an episode
    assert handles() == opened
    assert threading.active_count() <= threads + 32  # one worker for each episode under way, at most
    journal.close()
    assert (tmp_path / "journal.jsonl").read_bytes().count(b'"kind":"end"') == 10_000


def blocks() -> int:
    """Memory blocks that Python objects hold."""
    gc.collect()
    return sys.getallocatedblocks()
