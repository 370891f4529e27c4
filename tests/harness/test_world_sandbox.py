"""A world's own sandbox: one per episode, dead before the verdict, gone with a replaced instance."""

from __future__ import annotations

from typing import ClassVar

import pytest

from harness.till import ANSWER, Script, Till, do, task
from quintain import Budget, Harness, Verdict, tool
from quintain.harness.sandbox import Bubblewrap, CannotConfine, Program


class Workshop(Till):
    """Runs Python."""

    closed_before_verdict: ClassVar[list[bool]] = []

    @tool
    async def python(self, source: str) -> str:
        """Runs a program and returns what it prints."""
        result = await self.sandbox.run(Program(source=source))
        return result.stdout.decode() if result.ok else f"{result.ended}: {result.stderr.decode()[-200:]}"

    def verify(self, task, episode):
        Workshop.closed_before_verdict.append(not hasattr(self, "_sandbox"))
        return Verdict(episode.answer == task.answer)


@pytest.fixture(autouse=True)
async def _confines():
    box = Bubblewrap()
    try:
        await box.run(Program(source="pass"))
    except CannotConfine as error:
        pytest.skip(str(error))
    finally:
        await box.close()


async def test_programs_share_an_episodes_scratch_folder_and_never_see_the_host():
    script = Script(
        [
            do("python", source="open('a.txt', 'w').write('kept')"),
            do("python", source="import os; print(open('a.txt').read(), os.path.exists('/etc/passwd'))"),
            ANSWER,
        ]
    )
    episode = await Harness(Workshop).run(task(), script)
    assert episode.turns[1].observations[0].content == "kept False\n"
    assert episode.success


async def test_episodes_have_scratch_folders_of_their_own():
    script = Script([do("python", source="import os; print(os.listdir('.')); open('mine', 'w')"), ANSWER])
    episodes = await Harness(Workshop, concurrency=2).rollout([task("a"), task("b")], script)
    assert {one.turns[0].observations[0].content for one in episodes} == {"[]\n"}


async def test_the_sandbox_is_closed_before_the_verdict():
    class Live(Workshop):
        snapshots = "replay"  # judged on the instance that played, not on a restored one

    Workshop.closed_before_verdict.clear()
    await Harness(Live).run(task(), Script([do("python", source="print(1)"), do("put", item="tea"), ANSWER]))
    assert Workshop.closed_before_verdict == [True]


async def test_a_program_that_hangs_is_a_timeout_and_the_next_call_works():
    slow = do("python", source="import time; time.sleep(60)")
    script = Script([slow, do("python", source="print('alive')"), ANSWER])
    episode = await Harness(Workshop, budget=Budget(call_seconds=1)).run(task(), script)
    assert episode.turns[0].observations[0].error == "timeout"
    assert episode.turns[1].observations[0].content == "alive\n"
