"""Worlds whose tasks bring tools of their own: what the agent sees, and what records say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.till import ANSWER, Script, Till, task
from quintain import Task, Verdict, World
from quintain.harness.isolated import end_idle
from quintain.harness.journal import Journal, read_journal
from quintain.harness.loop import Harness
from quintain.interface.messages import Action, Call, message
from quintain.interface.tools import Tool, Toolset


class Bench(World):
    """Every task names its tools; a second one comes with the user's second message."""

    name = "bench"
    tools_per_task = True

    def __init__(self) -> None:
        self.names: list[str] = []
        self.used: list[str] = []

    def reset(self, task):
        self.names = list(task.setup["tools"])
        self.more = list(task.setup.get("more", ()))

    def toolset(self):
        return Toolset(Tool(name, f"Is {name}.", {"type": "object"}, function=self._using(name)) for name in self.names)

    def _using(self, name: str) -> Any:
        def use() -> str:
            self.used.append(name)
            return f"{name} used"

        return use

    def user(self, view):
        if not self.more:
            return None
        self.names.append(self.more.pop())
        return message("user", f"There is {self.names[-1]} now.")

    def verify(self, task, episode):
        return Verdict(self.used == task.answer)


class Uses:
    """Uses every tool it sees that it has not used yet, then answers; remembers what it saw."""

    name, version = "uses", 0

    def __init__(self):
        self.seen = []

    async def act(self, view):
        self.seen.append(view.toolset.names)
        used = {call.tool for turn in view.turns for call in turn.action.calls}
        left = [name for name in view.toolset.names if name not in used]
        if left:
            return Action(calls=tuple(Call(f"{len(view.turns)}{name}", name, {}) for name in left))
        return Action(answer="done")

    async def release(self, episode):
        pass


SAW = Task("saw", "bench", "Saw.", {"tools": ["saw"], "more": ["file"]}, answer=["saw", "file"])
PLANE = Task("plane", "bench", "Plane.", {"tools": ["plane", "glue"]}, answer=["plane", "glue"])


async def test_an_agent_sees_the_tools_of_its_task_and_those_the_user_brings():
    agent = Uses()
    episode = await Harness(Bench).run(SAW, agent)
    assert agent.seen == [["saw"], ["saw"], ["saw", "file"], ["saw", "file"]]
    assert episode.success


async def test_every_episode_records_the_digest_of_the_tools_it_began_with(tmp_path):
    journal = Journal(tmp_path)
    first, second = await Harness(Bench, journal=journal).rollout([SAW, PLANE], Uses())
    journal.close()
    world = Bench()
    world.reset(SAW)
    assert first.digests.toolset == world.toolset().digest
    assert second.success
    assert len({first.digests.toolset, second.digests.toolset, Bench().toolset().digest}) == 3
    finished, _ = read_journal(tmp_path)
    assert {one.id: one.digests for one in finished} == {one.id: one.digests for one in (first, second)}


async def test_tools_that_all_episodes_share_are_digested_once(monkeypatch):
    digested, specs = [], Toolset.specs
    monkeypatch.setattr(Toolset, "specs", lambda toolset: digested.append(toolset.names) or specs(toolset))
    episodes = await Harness(Till).rollout([task()], Script([ANSWER]), samples=3)
    assert digested == [Till().toolset().names]
    assert {one.digests.toolset for one in episodes} == {Till().toolset().digest}


async def test_a_branch_has_the_tools_of_its_point_and_the_digest_of_its_episode(tmp_path):
    journal = Journal(tmp_path)
    harness = Harness(Bench, journal=journal)
    episode = await harness.run(SAW, Uses())
    agent = Uses()
    branch = await harness.branch(episode, 3, SAW, agent, state=journal.state_at(episode.id, 3), name="b")
    journal.close()
    assert agent.seen == [["saw", "file"]]
    assert branch.success
    assert branch.digests == episode.digests


async def test_an_interrupted_episode_goes_on_with_the_tools_it_had(tmp_path):
    class Stops(Uses):
        async def act(self, view):
            if len(view.turns) == 3:
                raise asyncio.CancelledError
            return await super().act(view)

    whole = await Harness(Bench).run(SAW, Uses())
    journal = Journal(tmp_path)
    with pytest.raises(asyncio.CancelledError):
        await Harness(Bench, journal=journal).run(SAW, Stops())
    journal.close()
    _, (torn,) = read_journal(tmp_path)
    agent, journal = Uses(), Journal(tmp_path)
    episode = await Harness(Bench, journal=journal).resume(torn, SAW, agent)
    journal.close()
    assert agent.seen == [["saw", "file"]]
    assert (episode.success, episode.digests) == (True, whole.digests)


class Apart(Bench):
    """The same in a process of its own."""

    isolated = True


async def test_a_world_with_a_process_of_its_own_brings_them_from_there():
    agent = Uses()
    try:
        here = await Harness(Bench).run(SAW, Uses())
        there, other = await Harness(Apart, concurrency=1).rollout([SAW, PLANE], agent)
    finally:
        end_idle()
    assert agent.seen[:4] == [["saw"], ["saw"], ["saw", "file"], ["saw", "file"]]
    assert agent.seen[4:] == [["plane", "glue"]] * 2
    assert (there.success, other.success) == (True, True)
    assert there.digests.toolset == here.digests.toolset
