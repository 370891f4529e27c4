"""Workers on a local Ray cluster of several nodes, killed at random: every episode is delivered exactly once."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from counting import NODE, MakeKit, counting_interface, counting_tasks

from quintain.cluster.fleet import Fleet
from quintain.cluster.placement import Placement
from quintain.cluster.shards import WORKERS
from quintain.harness.journal import Journal, read_journal, read_records
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError, InterfaceDrift

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


async def play(fleet: Fleet, folder: Path, count: int, samples: int, **more: Any) -> list[Episode]:
    journal = Journal(folder)
    try:
        async with fleet.session(journal, 7) as rollout:
            return await rollout(counting_tasks(count), samples=samples, **more)
    finally:
        journal.close()
        fleet.close()


async def kill(fleet: Fleet, times: int, seed: int) -> list[int]:
    """Kills workers at seeded moments."""
    draw, killed = random.Random(seed), []
    while len(killed) < times:
        await asyncio.sleep(draw.uniform(0.1, 0.6))
        alive = sorted(pid for pid in fleet.pids.values() if pid not in killed)
        if alive:
            killed.append(draw.choice(alive))
            os.kill(killed[-1], signal.SIGKILL)
    return killed


async def test_every_planned_episode_is_delivered_exactly_once_while_workers_are_killed(
    cluster: Any, make_kit: MakeKit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fleet = Fleet(make_kit, Placement(workers=2, episodes=4), counting_interface())
    seen: list[str] = []
    playing = asyncio.create_task(play(fleet, tmp_path, 8, 6, on_episode=lambda one: seen.append(one.id)))
    await kill(fleet, 3, seed=1)
    episodes = await playing
    planned = [f"{task.id}#{sample}" for task in counting_tasks(8) for sample in range(6)]
    assert [one.id for one in episodes] == planned
    assert sorted(seen) == sorted(planned)
    ends = Counter(one["episode"] for one in read_records(tmp_path / "journal.jsonl") if one["kind"] == "end")
    assert ends == Counter(planned)
    assert all(one.success for one in episodes), "an episode lost or repeated a turn's effect on the world"
    moved = re.findall(r"is lost; (\d+) episodes go on elsewhere", capsys.readouterr().err)
    assert len(moved) == 3
    assert sum(map(int, moved)) > 0
    assert not (tmp_path / WORKERS).exists()
    assert read_journal(tmp_path)[1] == []


async def test_a_lost_node_costs_no_episode(cluster: Any, make_kit: MakeKit, tmp_path: Path):
    node = next(iter(cluster.worker_nodes))
    fleet = Fleet(make_kit, Placement(workers=2, episodes=4), counting_interface())
    playing = asyncio.create_task(play(fleet, tmp_path, 8, 2))
    while len(fleet.pids) < 2:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(cluster.remove_node, node, allow_graceful=False)
    episodes = await playing
    cluster.add_node(num_cpus=2, node_ip_address=node.node_ip_address, **NODE)
    assert [one.id for one in episodes] == [f"{task.id}#{sample}" for task in counting_tasks(8) for sample in range(2)]
    assert all(one.success for one in episodes)


async def test_a_worker_with_other_tools_is_refused_by_name(cluster: Any, make_kit: MakeKit, tmp_path: Path):
    ours = counting_interface()
    other = type(ours)({"toolset": "another"}, [*ours.specs, {**ours.specs[0], "name": "uncount"}])
    fleet = Fleet(make_kit, Placement(workers=1), other)
    with pytest.raises(InterfaceDrift, match=r"worker-1-\w+ on .* has other tools .* uncount: tool removed"):
        await play(fleet, tmp_path, 1, 1)


def test_a_cluster_that_is_too_small_is_refused_with_the_arithmetic(cluster: Any, make_kit: MakeKit):
    with pytest.raises(InputError, match=r"3 workers x 2 CPU = 6 > 4 that Ray has"):
        Fleet(make_kit, Placement(workers=3, cpus=2), counting_interface())


async def test_weights_that_find_no_room_are_one_line(cluster: Any, make_kit: MakeKit, monkeypatch: pytest.MonkeyPatch):
    import ray

    def full(weights: bytes) -> None:  # a full disk under a full store can't be had here
        raise ray.exceptions.ObjectStoreFullError

    monkeypatch.setattr(ray, "put", full)
    fleet = Fleet(make_kit, Placement(workers=1), counting_interface())
    with pytest.raises(InputError, match=r"weights of 3 MiB find no room in Ray's object store, 240 MiB on all nodes"):
        await fleet.publish(bytes(3 * 2**20), 1)


async def test_weights_larger_than_the_object_store_still_arrive(cluster: Any, make_kit: MakeKit, tmp_path: Path):
    fleet = Fleet(make_kit, Placement(workers=1), counting_interface())
    await fleet.publish(bytes(100 * 2**20), 3)
    (episode,) = await play(fleet, tmp_path, 1, 1)
    assert episode.version == 3
