"""A worker and its journal: what it leaves behind is found, and goes on elsewhere, token by token."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from counting import CountingKit, MakeKit, counting_interface, counting_tasks

from quintain.cluster.shards import WORKERS, Shard, discard, episode_of, gather
from quintain.cluster.worker import Interface, Session, Worker
from quintain.harness.journal import Journal, Story, read_journal
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError


def turns(episode: Episode) -> list[tuple[int, ...]]:
    return [turn.action.generation.ids for turn in episode.turns if turn.action.generation]


async def played(worker: Worker, session: Session, sample: int = 0, story: Story | None = None) -> Episode:
    await worker.play(session, counting_tasks(3)[2], sample, story)
    (found,) = Shard(session.folder / WORKERS / worker.name).finished().values()
    return episode_of(found)


def cut_after(folder: Path, records: int) -> None:
    """As if its worker had been killed after so many records."""
    path = folder / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:records]) + b'{"v": 2, "ki')


async def test_an_interrupted_episode_goes_on_at_another_worker_with_the_same_tokens(make_kit: MakeKit, tmp_path: Path):
    first, second = Worker("first", make_kit), Worker("second", make_kit)
    session = Session(tmp_path, 5)
    whole = await played(first, session)
    assert len(whole.turns) == 4
    cut_after(tmp_path / WORKERS / "first", 3)  # start and two turns
    shard = Shard(tmp_path / WORKERS / "first")
    assert shard.finished() == {}
    (story,) = shard.unfinished().values()
    again = await played(second, session, story=story)
    assert turns(again) == turns(whole)
    assert again.seed == whole.seed
    assert again.success == whole.success
    for worker in (first, second):
        worker._kit.engine.close()


async def test_what_a_worker_plays_with_may_run_a_loop_of_its_own_while_it_is_made(make_kit: MakeKit):
    def make() -> CountingKit:
        asyncio.run(asyncio.sleep(0))
        return make_kit()

    worker = Worker("only", make)
    interface, _, process = await worker.hello()
    assert process == os.getpid()
    assert interface.differences(counting_interface()) == []
    worker._kit.engine.close()


async def test_a_journal_is_followed_while_it_grows(make_kit: MakeKit, tmp_path: Path):
    worker, session = Worker("only", make_kit), Session(tmp_path, 0)
    shard = Shard(tmp_path / WORKERS / "only")
    assert shard.finished() == {}
    for task in counting_tasks(3):
        await worker.play(session, task, 0, None)
        assert list(shard.finished()) == [f"{task.id}#0"]
    assert shard.finished() == {}
    worker._kit.engine.close()


async def test_what_workers_leave_is_gathered_once_with_its_snapshots(make_kit: MakeKit, tmp_path: Path):
    """Two workers played one episode to its end, and began another; one of them came further."""
    session = Session(tmp_path, 5)
    for name, records in (("a", 2), ("b", 4)):
        worker = Worker(name, make_kit)
        await worker.play(session, counting_tasks(3)[0], 0, None)
        await worker.play(session, counting_tasks(3)[2], 0, None)
        worker._kit.engine.close()
        done = sum(b'"train-0#0"' in line for line in (tmp_path / WORKERS / name / "journal.jsonl").open("rb"))
        cut_after(tmp_path / WORKERS / name, done + records)
    gather(tmp_path)
    finished, unfinished = read_journal(tmp_path)
    assert [one.id for one in finished] == ["train-0#0"]
    assert [(one.id, len(one.turns)) for one in unfinished] == [("train-2#0", 3)]
    assert not (tmp_path / WORKERS).exists()
    journal = Journal(tmp_path)
    states = journal.states_at([("train-0#0", at) for at in range(3)] + [("train-2#0", 3)])
    assert all(states.values())
    journal.close()


def test_journals_half_removed_are_no_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As if the process had been killed while it removed them, between one file and the next."""
    (tmp_path / WORKERS / "a").mkdir(parents=True)
    (tmp_path / WORKERS / "a" / "journal.jsonl").write_bytes(b"{}\n")
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    discard(tmp_path)
    gather(tmp_path)
    assert not (tmp_path / "journal.jsonl").exists()


def test_a_damaged_journal_of_a_worker_is_named(tmp_path: Path):
    (tmp_path / "journal.jsonl").write_bytes(b'{"v": 2}}\n')
    with pytest.raises(InputError, match=r"journal.jsonl: damaged before byte 10"):
        Shard(tmp_path).finished()


def test_other_tools_are_told_apart_in_words():
    spec = {"name": "wait", "description": "Waits.", "parameters": {"type": "object"}, "result": None}
    ours = Interface({"toolset": "1", "world": "w"}, [spec])
    theirs = Interface({"toolset": "2", "world": "w"}, [spec, spec | {"name": "hurry"}])
    assert ours.differences(ours) == []
    assert ours.differences(theirs) == ["hurry: tool added"]
    assert ours.differences(Interface({"toolset": "1", "world": "v"}, [spec])) == ["world is another"]
