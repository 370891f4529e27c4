"""Isolated worlds: whatever a tool does to its process ends that call alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from harness.till import ANSWER, Script, Till, call, do, task
from harness.tower import Ground, Judge, Replaying, SlowReset, SpinningVerifier, Tower
from quintain import Budget, Harness, Journal, World
from quintain.harness.isolated import end_idle
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError
from quintain.interface.messages import Action

QUICK = Budget(call_seconds=0.3)
PUT = do("put", item="tea")


@pytest.fixture(autouse=True, scope="module")
def _no_idle_children():
    yield
    end_idle()


async def play(*actions, budget: Budget | None = None, world=Tower, the_task=None, **options):
    return await Harness(world, budget=budget, **options).run(the_task or task(), Script(actions))


def only(episode, turn: int = 0):
    (observation,) = episode.turns[turn].observations
    return observation


def children() -> set[int]:
    """Child processes of this one, zombies included."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = entry.read_text().rsplit(")", 1)[1].split()[1]
        except FileNotFoundError:
            continue
        if parent == str(os.getpid()):
            found.add(int(entry.parent.name))
    return found


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def gone(pid: int) -> bool:
    """True once a process that is no child of ours has ended; waits for it, at most 5 s."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("name", ["spin", "match", "hang", "wait"])
async def test_a_call_past_its_limit_is_killed_and_the_next_one_works_on_the_restored_state(name):
    arguments = {"seconds": 100.0} if name in ("hang", "wait") else {}
    episode = await play(PUT, do(name, **arguments), PUT, ANSWER, budget=QUICK)
    assert only(episode, 1).error == "timeout"
    assert only(episode, 2).value == 2
    assert episode.success


async def test_a_killed_call_takes_the_programs_it_started_along(tmp_path):
    file = tmp_path / "pid"
    setup = replace(task(), setup={"prices": {"file": str(file)}})
    episode = await play(do("spawn"), ANSWER, budget=Budget(call_seconds=1.0), the_task=setup)
    assert only(episode).error == "timeout"
    assert gone(int(file.read_text()))


@pytest.mark.parametrize(("how", "words"), [("segfault", "SIGSEGV"), ("kill", "SIGKILL"), ("exit", "exit code 3")])
async def test_a_process_that_dies_in_both_tries_is_the_agents_doing(how, words):
    episode = await play(PUT, do("die", how=how), PUT, ANSWER)
    assert only(episode, 1).error == "infra"
    assert words in only(episode, 1).content
    assert only(episode, 2).value == 2
    assert episode.success


async def test_a_process_that_dies_once_is_retried_from_the_snapshot(tmp_path):
    episode = await play(PUT, do("die_once", marker=str(tmp_path / "marker")), ANSWER)
    assert only(episode, 1).value == "1 in the basket"


async def test_a_world_that_replays_has_its_calls_run_again_in_the_new_process():
    episode = await play(PUT, do("spin"), PUT, do("spin"), PUT, ANSWER, budget=QUICK, world=Replaying)
    assert [only(episode, turn).value for turn in (0, 2, 4)] == [1, 2, 3]


MANY = Action(calls=tuple(call("put", str(n), item="tea") for n in range(3)))
READS = Action(calls=(call("price", "a", item="tea"), call("price", "b", item="gold")))


@pytest.mark.parametrize(
    "action",
    [
        do("price", item="tea"),
        do("price", item="gold"),
        do("price", itme="tea"),
        do("buy"),
        do("wrong_type"),
        do("raw"),
        do("flood", megabytes=3),
        do("leave"),
        MANY,
        READS,
        Action(calls=(call("put", "a", item="tea"), call("hang", "b", seconds=100))),
    ],
)
async def test_what_the_agent_sees_is_what_it_would_see_of_a_world_in_this_process(action):
    seen = []
    for world in (Ground, Tower):
        episode = await play(PUT, action, PUT, ANSWER, world=world, budget=QUICK)
        turns = [tuple(replace(one, seconds=0.0) for one in turn.observations) for turn in episode.turns]
        seen.append((turns, episode.outcome, episode.verdict, episode.milestones, episode.usage.tool_calls))
    assert seen[0] == seen[1]


def test_the_tools_are_the_same_interface():
    assert Harness(Tower).digests.toolset == Tower().toolset().digest


async def test_user_and_verifier_see_the_state_and_the_options():
    episode = await play(PUT, PUT, ANSWER, ANSWER, world=partial(Judge, wanted=2))
    assert episode.user_messages[3].text == "Really?"
    assert episode.success
    assert episode.verdict.reasons == ("2",)


async def test_a_verifier_that_never_ends_gives_no_score():
    episode = await play(ANSWER, world=SpinningVerifier, budget=Budget(seconds=1.0))
    assert episode.outcome.kind == "infra_error"
    assert "TimeoutError" in episode.outcome.detail


async def test_a_reset_that_never_ends_gives_no_score():
    episode = await play(ANSWER, world=SlowReset, budget=Budget(seconds=0.5))
    assert episode.outcome.kind == "infra_error"
    assert "reset failed twice: TimeoutError" in episode.outcome.detail


async def test_an_interrupted_episode_goes_on_with_its_state(tmp_path):
    journal = Journal(tmp_path)
    await play(PUT, PUT, ANSWER, journal=journal)
    journal.close()
    lines = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(b"".join(lines[:2]))  # start, first turn
    journal = Journal(tmp_path)
    _, unfinished = read_journal(tmp_path)
    agent = Script([ANSWER, PUT, ANSWER])
    (episode,) = await Harness(Tower, journal=journal).rollout([task()], agent, unfinished=unfinished)
    journal.close()
    assert only(episode, 1).value == 2
    assert episode.milestones == ("filled",)


async def test_a_branch_that_answers_at_once_still_knows_its_milestones():
    harness = Harness(Tower)
    original = await harness.run(task(), Script([PUT, ANSWER]))
    world = Till()
    world.reset(task())
    world.put("tea")
    child = await harness.branch(original, 1, task(), Script([ANSWER]), state=world.snapshot(), name="a")
    assert (child.milestones, child.milestone_turns) == (("filled",), (0,))


async def test_many_episodes_share_few_processes_and_nothing_else():
    end_idle()
    agent = Script([PUT, do("where"), PUT, ANSWER])
    episodes = await Harness(Tower, concurrency=3).rollout([task(f"t{n}") for n in range(30)], agent)
    assert {only(episode, 2).value for episode in episodes} == {2}
    assert all(episode.success for episode in episodes)
    places = [only(episode, 1).value for episode in episodes]
    assert len({pid for pid, _ in places}) <= 6  # one for the episode, one for its verdict
    assert {loads for _, loads in places} == {1}


async def test_neither_processes_nor_file_handles_are_left_behind():
    end_idle()
    before = children(), handles()
    await play(do("die", how="exit"), do("spin"), PUT, ANSWER, budget=QUICK)
    await play(ANSWER, world=SpinningVerifier, budget=Budget(seconds=0.5))
    end_idle()
    assert (children(), handles()) == before


async def test_a_cancelled_run_leaves_no_process_behind():
    end_idle()
    before = children(), handles()
    running = asyncio.ensure_future(play(PUT, do("spin"), ANSWER))
    while not children() - before[0]:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    end_idle()
    for _ in range(500):  # the thread that was about to start a call may need a moment
        if (children(), handles()) == before:
            break
        await asyncio.sleep(0.01)
    assert (children(), handles()) == before


PARENT = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from harness.till import ANSWER, Script, do, task
from harness.tower import Tower
from quintain import Harness
episode = asyncio.run(Harness(Tower).run(task(), Script([do("where"), do({tool!r}), ANSWER])))
print(episode.turns[0].observations[0].value[0])
"""


def parent(tool: str) -> subprocess.Popen[str]:
    code = PARENT.format(tests=str(Path(__file__).parent.parent), tool=tool)
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=-3, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_what_a_world_prints_stays_out_of_the_programs_output_and_its_process_ends_with_the_program():
    process = parent("shout")
    out, err = process.communicate()
    (pid,) = out.split()
    assert "to stdout" in err
    assert "to stderr" in err
    assert gone(int(pid))


def test_a_killed_program_takes_its_busy_worlds_along():
    process = parent("match")
    while not (found := _descendants(process.pid)):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(1.0)  # by now the child is inside the tool
    process.kill()
    process.communicate()
    assert all(gone(pid) for pid in found)


def _descendants(pid: int) -> list[int]:
    return [int(one) for part in Path(f"/proc/{pid}/task").glob("*/children") for one in part.read_text().split()]


async def test_a_class_that_a_new_process_cannot_import_is_refused_in_one_line():
    class Local(World):
        name = "local"
        isolated = True

    with pytest.raises(InputError, match=r"can't import test_isolated\..*Local; define the class"):
        Harness(Local)
