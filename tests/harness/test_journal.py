"""The journal survives kills and full disks; episodes are read back as they were, resumed and branched."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.till import ANSWER, Script, Till, do, task
from quintain import Harness, Journal
from quintain.harness.journal import JournalError, read_journal, read_records
from quintain.interface.errors import FormatError, InputError
from quintain.interface.generation import Generation
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation, Turn
from quintain.interface.records import turn_from_json, turn_to_json

FILL = Script([do("put", item="tea"), do("put", item="tea"), ANSWER])


async def rollout(folder: Path, agent, n: int = 2, **options):
    journal = Journal(folder)
    finished, unfinished = read_journal(folder)
    episodes = await Harness(Till, journal=journal).rollout(
        [task(f"t{number}") for number in range(n)], agent, done=finished, unfinished=unfinished, **options
    )
    journal.close()
    return episodes


async def test_what_is_read_back_equals_what_was_run(tmp_path):
    episodes = await rollout(tmp_path, FILL)
    finished, unfinished = read_journal(tmp_path)
    assert sorted(finished, key=lambda one: one.id) == [
        replace(one, turns=tuple(_rounded(turn) for turn in one.turns)) for one in episodes
    ]
    assert unfinished == []


def _rounded(turn: Turn) -> Turn:
    """Times are kept to a microsecond."""
    return replace(turn, observations=tuple(replace(one, seconds=round(one.seconds, 6)) for one in turn.observations))


async def test_finished_episodes_are_not_run_again(tmp_path):
    await rollout(tmp_path, FILL)
    silent = Script([Action(answer="never asked")])
    episodes = await rollout(tmp_path, silent, n=3)
    assert [one.answer for one in episodes] == ["3", "3", "never asked"]


async def test_an_interrupted_episode_goes_on_after_its_last_turn(tmp_path):
    await rollout(tmp_path, FILL, n=1)
    path = tmp_path / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:40])  # start, first turn, half of the second
    agent = Script([do("put", item="wrong"), do("put", item="tea"), ANSWER])
    (episode,) = await rollout(tmp_path, agent, n=1)
    assert [len(view.turns) for view in agent.views] == [1, 2]
    assert episode.turns[1].observations[0].value == 2  # the basket of turn 1 was restored
    assert episode.usage.turns == 3
    assert (tmp_path / "journal.jsonl.torn").stat().st_size == 41


async def test_an_episode_cut_between_its_answer_and_its_end_is_judged_not_continued(tmp_path):
    await rollout(tmp_path, FILL, n=1)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    agent = Script([])
    (episode,) = await rollout(tmp_path, agent, n=1)
    assert agent.views == []
    assert episode.success


async def test_branching_makes_a_child_and_leaves_the_original_alone(tmp_path):
    (original,) = await rollout(tmp_path, FILL, n=1)
    journal = Journal(tmp_path)
    agent = Script([ANSWER, do("put", item="milk"), ANSWER])
    child = await Harness(Till, journal=journal).branch(
        original, 1, task("t0"), agent, state=journal.state_at("t0#0", 1), name="a"
    )
    journal.close()
    assert child.parent == ("t0#0", 1)
    assert child.turns[0] == original.turns[0]
    assert child.turns[1].observations[0].value == 2
    finished, _ = read_journal(tmp_path)
    assert [one.id for one in finished] == ["t0#0", "t0#0+1a"]
    assert finished[0].turns[1].action.calls[0].arguments == {"item": "tea"}


async def test_branching_beyond_the_episode_is_refused_with_the_numbers(tmp_path):
    (original,) = await rollout(tmp_path, FILL, n=1)
    with pytest.raises(InputError, match="has 3 turns; can't branch at 4"):
        await Harness(Till).branch(original, 4, task("t0"), FILL, state=None, name="a")


async def test_a_world_that_replays_rebuilds_its_state_from_the_logged_calls():
    class Replaying(Till):
        snapshots = "replay"

    original = await Harness(Replaying).run(task(), FILL)
    agent = Script([ANSWER, ANSWER, do("put", item="milk"), ANSWER])
    child = await Harness(Replaying).branch(original, 2, task(), agent, state=None, name="a")
    assert child.turns[2].observations[0].value == 3


async def test_damage_in_the_middle_is_named_with_its_line(tmp_path):
    await rollout(tmp_path, FILL)
    path = tmp_path / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b'{"v": 1, broken\n'
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"journal\.jsonl:2: damaged record"):
        read_journal(tmp_path)


async def test_a_journal_of_a_newer_schema_is_refused(tmp_path):
    (tmp_path / "journal.jsonl").write_bytes(b'{"v": 99}\n')
    with pytest.raises(InputError, match="newer"):
        list(read_records(tmp_path / "journal.jsonl"))


async def test_a_full_disk_stops_the_run_and_keeps_what_was_journaled(tmp_path):
    small = _small_disk(tmp_path)
    try:
        journal = Journal(small / "journal")
        chatty = Script([Action(thought="x" * 2000, calls=(Call("c", "put", {"item": "tea"}),))] * 40 + [ANSWER])
        with pytest.raises(JournalError, match=r"free space and run the same command again"):
            await Harness(Till, journal=journal).rollout([task(f"t{n}") for n in range(40)], chatty)
        journal.close()
        for record in read_records(small / "journal" / "journal.jsonl"):
            assert record["kind"] in ("start", "turn", "end")
        _, unfinished = read_journal(small / "journal")
        assert len(unfinished) > 0
    finally:
        subprocess.run(["umount", str(small)], check=True)


async def test_a_journal_closed_while_ends_wait_for_the_disk_leaves_no_error_behind(tmp_path):
    (episode,) = await rollout(tmp_path / "one", FILL, n=1)
    left: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context))
    journal = Journal(tmp_path / "two")
    end = asyncio.create_task(journal.end(episode))
    await asyncio.sleep(0)  # recorded, not yet on disk
    end.cancel()  # as a rollout is when another of its episodes found the disk full
    journal.close()
    with pytest.raises(asyncio.CancelledError):
        await end
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)
    del journal
    gc.collect()
    assert left == []
    assert [one["kind"] for one in read_records(tmp_path / "two" / "journal.jsonl")] == ["end"]


def _small_disk(tmp_path: Path) -> Path:
    small = tmp_path / "small"
    small.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(small)], capture_output=True)
    if made.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    return small


KILLED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from harness.till import ANSWER, Script, Till, do, task
from quintain import Harness, Journal
slow = Script([do("put", item="tea"), do("wait", seconds=0.01)] * 6 + [ANSWER])
journal = Journal(Path(sys.argv[1]))
def tell(episode):
    print(episode.id, flush=True)
asyncio.run(Harness(Till, journal=journal, concurrency=4).rollout(
    [task(f"t{{n}}") for n in range(400)], slow, on_episode=tell))
"""


async def test_sigkill_at_any_moment_loses_no_finished_episode_and_the_run_resumes(tmp_path):
    tests = str(Path(__file__).parent.parent)
    for delay in (0.0, 0.07):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED.format(tests=tests), str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(3)]
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        told += process.stdout.read().split()
        process.wait()
        Journal(tmp_path).close()
        finished, unfinished = read_journal(tmp_path)
        assert set(told) <= {one.id for one in finished}
        assert len(unfinished) <= 4
        for one in unfinished:
            assert [record["index"] for record in one.turns] == list(range(len(one.turns)))
    done = {one.id: one for one in finished}
    quick = Script([do("put", item="tea")] * 12 + [ANSWER])
    tasks = [task(one.id.split("#")[0]) for one in unfinished]
    journal = Journal(tmp_path)
    resumed = await Harness(Till, journal=journal).rollout(tasks, quick, done=finished, unfinished=unfinished)
    journal.close()
    for before, after in zip(unfinished, resumed, strict=True):
        puts = [turn for turn in after.turns if turn.action.calls and turn.action.calls[0].tool == "put"]
        assert after.id == before.id
        assert puts[-1].observations[0].value == len(puts)
        assert after.id not in done


TEXTS = st.text(st.characters(exclude_categories=("Cs",)))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
TOKENS = st.lists(st.integers(0, 2**31), max_size=5).map(tuple)


@st.composite
def turns(draw) -> Turn:
    made = draw(st.none() | TOKENS.map(lambda ids: Generation(ids, (-0.1,) * len(ids), (-0.2,) * len(ids), "stop", 3)))
    common = {"thought": draw(TEXTS), "text": draw(TEXTS), "context": draw(TOKENS), "generation": made}
    kind = draw(st.sampled_from(["calls", "answer", "error"]))
    if kind == "answer":
        return Turn(Action(answer=draw(TEXTS), **common))
    if kind == "error":
        action = Action(error=FormatError("json", draw(TEXTS)), **common)
        return Turn(action, (Observation(FORMAT_CALL_ID, "", draw(TEXTS), error="format", format_kind="json"),))
    calls = tuple(
        Call(str(n), draw(TEXTS), draw(st.dictionaries(TEXTS, JSON, max_size=3)))
        for n in range(draw(st.integers(1, 3)))
    )
    return Turn(
        Action(calls=calls, **common),
        tuple(Observation(one.id, one.tool, draw(TEXTS), draw(JSON)) for one in calls),
    )


@given(turns())
@settings(max_examples=150, deadline=None)
def test_writing_and_reading_a_turn_is_the_identity(turn):
    import orjson

    assert turn_from_json(orjson.loads(orjson.dumps(turn_to_json(turn)))) == turn


@given(
    st.lists(st.sampled_from(["a", "b", FORMAT_CALL_ID]), max_size=3), st.lists(st.sampled_from(["a", "b"]), max_size=3)
)
def test_a_turn_whose_observations_are_not_those_of_its_calls_cannot_be_made(observed, called):
    calls = tuple(Call(one, "x", {}) for one in called)
    observations = tuple(Observation(one, "x", "") for one in observed)
    valid = bool(called) and len(set(called)) == len(called) and observed == called
    if valid:
        assert Turn(Action(calls=calls), observations).observations == observations
    else:
        with pytest.raises(ValueError, match=r"differ|exactly|is calls|must answer"):
            Turn(Action(calls=calls), observations)


async def test_the_journal_reads_as_a_table_in_duckdb_and_datasets(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    datasets = pytest.importorskip("datasets")
    await rollout(tmp_path, FILL, n=3)
    path = str(tmp_path / "journal.jsonl")
    kinds = duckdb.sql(f"select kind, count(*) from read_json_auto('{path}') group by kind order by kind").fetchall()
    assert kinds == [("end", 3), ("start", 3), ("turn", 9)]
    table = datasets.load_dataset("json", data_files=path, split="train", cache_dir=str(tmp_path / "cache"))
    assert sum(row["kind"] == "turn" for row in table) == 9
