"""Rollouts on a Ray cluster: workers are placed, kept busy, kept up to date, and replaced when they are lost.

Ray carries tasks, weights and loads. Episodes come through the workers' journals, on the filesystem they share: what a
worker has written outlives it. Everything here runs in one event loop.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from quintain.cluster.dispatcher import Dispatcher
from quintain.cluster.placement import Placement, connect
from quintain.cluster.shards import WORKERS, Shard, discard, episode_of, turns_of
from quintain.cluster.worker import Interface, Kit, Session, Worker
from quintain.harness.journal import Journal, Story, Unfinished
from quintain.harness.loop import OnEpisode
from quintain.interface.episode import Episode
from quintain.interface.errors import InfraError, InputError, InterfaceDrift
from quintain.interface.generation import Load
from quintain.interface.tasks import Task
from quintain.progress import say

Rollout = Callable[..., Awaitable[list[Episode]]]
"""Plays tasks: `Harness.rollout` with its agent, or the same on workers."""

Key = tuple[Path, str]
"""An episode: the folder of its journal, and its id."""

EARLY = 3
"""So many losses in a row for every worker, with no episode ended between them, are no accident."""
LOOK = 1.0
"""Seconds between two looks at the workers' loads."""
VISIBLE = 60
"""Seconds within which what one node wrote must be seen on another; network filesystems take some."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """An episode that somebody waits for."""

    session: Session
    journal: Journal
    task: Task
    sample: int
    future: asyncio.Future[Episode]


@dataclass(slots=True)
class _Seat:
    """A worker as it is seen from here."""

    name: str
    actor: Any
    pid: int
    load: Load = field(default_factory=Load)
    shards: dict[Path, Shard] = field(default_factory=dict)
    ended: int = 0


class Fleet:
    """Workers that play episodes.

    Args:
        make: makes what a worker plays with, on its node; picklable.
        placement: how many workers, and what each takes.
        interface: what all episodes must be made with.

    Raises:
        InputError: Ray is missing or can't be reached, or the cluster is too small for the workers.
    """

    def __init__(self, make: Callable[[], Kit], placement: Placement, interface: Interface) -> None:
        self._ray = connect(placement)
        self._make = make
        self._placement = placement
        self._interface = interface
        self._actor = self._ray.remote(max_restarts=0, max_concurrency=placement.episodes + 8)(Worker)
        self._dispatcher: Dispatcher[Key] = Dispatcher(placement.limits, placement.lag)
        self._seats: dict[str, _Seat] = {}
        self._plans: dict[Key, _Plan] = {}
        self._stories: dict[Key, Story] = {}
        self._weights: tuple[Any, int] | None = None
        self._jobs: set[asyncio.Task[None]] = set()
        self._begun = False
        self._numbers = count(1)
        self._starting = 0
        self._early = 0
        self._past = Load()
        self._failed: BaseException | None = None

    @asynccontextmanager
    async def session(self, journal: Journal, seed: int) -> AsyncIterator[Rollout]:
        """Plays into a journal, as `Harness.rollout` does in one process.

        What it gives takes tasks, `samples` per task, `done` episodes, `unfinished` ones of the journal, and whom to
        tell of every episode as it ends. It returns all episodes by task and sample; each is in the journal, once.

        Args:
            journal: on a filesystem that all nodes share.
            seed: with the task and the sample it fixes each episode's seed.

        Raises:
            InterfaceDrift: no worker's tools are those of this run.
            InputError: the world or the agent can't be used as it is.
            InfraError: workers are lost as soon as they begin, or their journals can't be seen here.
        """
        session = Session(journal.folder.resolve(), seed)
        yield partial(self._rollout, session, journal)
        for seat in self._seats.values():
            seat.shards.pop(session.folder, None)
        closing = [seat.actor.close.remote(session) for seat in self._seats.values()]
        await asyncio.gather(*closing, return_exceptions=True)
        if (session.folder / WORKERS).exists():
            await asyncio.to_thread(discard, session.folder)

    async def _rollout(
        self,
        session: Session,
        journal: Journal,
        tasks: Sequence[Task],
        *,
        samples: int = 1,
        done: Iterable[Episode] = (),
        unfinished: Iterable[Unfinished] = (),
        on_episode: OnEpisode | None = None,
    ) -> list[Episode]:
        self._begin()
        have = {episode.id: episode for episode in done}
        if any(True for _ in unfinished):
            earlier = Shard(session.folder)
            earlier.finished()
            self._stories |= {(session.folder, name): story for name, story in earlier.unfinished().items()}
        wanted = [(f"{task.id}#{sample}", task, sample) for task in tasks for sample in range(samples)]
        planned: dict[Key, asyncio.Future[Episode]] = {}
        for identity, task, sample in wanted:
            if identity not in have:
                key = (session.folder, identity)
                planned[key] = asyncio.get_running_loop().create_future()
                planned[key].add_done_callback(lambda one: _tell(one, on_episode))
                self._plans[key] = _Plan(session, journal, task, sample, planned[key])
                self._dispatcher.plan(key, task.world)
        self._assign()
        try:
            for episode in await asyncio.gather(*planned.values()):
                have[episode.id] = episode
        finally:
            for key in planned:
                self._dispatcher.drop(key)
                del self._plans[key]
        return [have[identity] for identity, _, _ in wanted]

    async def publish(self, weights: bytes, version: int) -> None:
        """Sends new weights to all workers; each takes them between two generations.

        Raises:
            InputError: the object store has no room for them.
        """
        self._weights = (await asyncio.to_thread(self._put, weights), version)
        self._dispatcher.publish(version)
        for seat in self._seats.values():
            self._go(self._update(seat))

    def load(self) -> Load:
        """What all engines have to do together; seconds are added up, those of lost workers included."""
        loads = [seat.load for seat in self._seats.values()]
        return Load(
            sum(one.queued for one in loads),
            sum(one.kv for one in loads) / max(1, len(loads)),
            self._past.busy + sum(one.busy for one in loads),
            self._past.up + sum(one.up for one in loads),
        )

    @property
    def pids(self) -> dict[str, int]:
        """The process of every worker."""
        return {name: seat.pid for name, seat in self._seats.items()}

    def close(self) -> None:
        """Ends the workers. Journals of theirs that were not closed stay: the next run gathers them."""
        for job in self._jobs:
            job.cancel()
        for seat in self._seats.values():
            self._ray.kill(seat.actor)
        self._seats = {}

    def _begin(self) -> None:
        """Starts the workers, at the first rollout."""
        if self._failed is not None:
            raise self._failed
        if not self._begun:
            self._begun = True
            for _ in range(self._placement.workers):
                self._go(self._start())
            self._go(self._watch())

    async def _start(self) -> None:
        """Places one worker, as soon as the cluster has room for it."""
        self._starting += 1
        name, place = f"worker-{next(self._numbers)}-{uuid.uuid4().hex[:8]}", self._placement
        options = {"num_cpus": place.cpus, "num_gpus": place.gpus, "scheduling_strategy": "SPREAD"}
        actor = self._actor.options(**options).remote(name, self._make)
        try:
            interface, node, pid = await self._answer(actor.hello.remote())
            found = self._interface.differences(interface)
            version = 0 if found else await self._newest(actor)
        except self._ray.exceptions.RayActorError as error:
            self._replace(f"{name} is lost before it began: {str(error).splitlines()[0]}")
            return
        finally:
            self._starting -= 1
        if found:
            self._ray.kill(actor)
            self._refuse(f"{name} on {node} has other tools than this run and is refused: {'; '.join(found)}")
            return
        self._seats[name] = _Seat(name, actor, pid)
        self._dispatcher.join(name, place.episodes, version)
        self._assign()

    async def _newest(self, actor: Any) -> int:
        """Sends a new worker the weights that are the newest when it has them; returns their version."""
        version = 0
        while self._weights is not None and version != self._weights[1]:
            version = await self._answer(actor.update.remote(*self._weights))
        return version

    def _assign(self) -> None:
        for name, key in self._dispatcher.assign():
            self._go(self._play(self._seats[name], key, self._plans[key]))

    async def _play(self, seat: _Seat, key: Key, plan: _Plan) -> None:
        try:
            story = self._stories.get(key)
            seat.load = await self._answer(seat.actor.play.remote(plan.session, plan.task, plan.sample, story))
        except self._ray.exceptions.RayActorError as error:
            await self._lose(seat, error)
            return
        self._dispatcher.report(seat.name, seat.load)
        await self._deliver(seat, key, plan)
        self._dispatcher.free(seat.name, key)
        self._assign()

    async def _deliver(self, seat: _Seat, key: Key, plan: _Plan) -> None:
        """Takes what a worker has finished; the end that it has just reported must be among it."""
        for _ in range(VISIBLE):
            await self._collect(seat, key[0])
            if plan.future.done():
                return
            await asyncio.sleep(1.0)
        raise InfraError(
            f"{seat.name} played {key[1]!r}, but {key[0] / WORKERS / seat.name} does not show it here within "
            f"{VISIBLE} s: the run's folder must lie on a filesystem that all nodes share"
        )

    async def _collect(self, seat: _Seat, folder: Path) -> None:
        """Takes a worker's finished episodes into the journal they belong to, each only if nobody else brought it."""
        shard = seat.shards.setdefault(folder, Shard(folder / WORKERS / seat.name))
        fresh: list[tuple[_Plan, Episode]] = []
        for identity, story in shard.finished().items():
            if self._dispatcher.finish((folder, identity)):
                plan = self._plans[folder, identity]
                plan.journal.take(story)
                fresh.append((plan, episode_of(story)))
                self._stories.pop((folder, identity), None)
        if fresh:
            await asyncio.to_thread(fresh[0][0].journal.sync)
            seat.ended += len(fresh)
            self._early = 0
        for plan, episode in fresh:
            if not plan.future.done():
                plan.future.set_result(episode)

    async def _lose(self, seat: _Seat, error: Exception) -> None:
        """A worker is gone: what it finished counts, what it began goes on elsewhere, and another takes its place."""
        if self._seats.pop(seat.name, None) is None:
            return
        self._ray.kill(seat.actor)  # it may be out of reach only
        self._past = Load(busy=self._past.busy + seat.load.busy, up=self._past.up + seat.load.up)
        for folder in {plan.session.folder for plan in self._plans.values()}:
            await self._collect(seat, folder)
            for identity, story in seat.shards[folder].unfinished().items():
                self._stories[folder, identity] = max(story, self._stories.get((folder, identity), ()), key=turns_of)
        again = self._dispatcher.lose(seat.name)
        self._replace(f"{seat.name} is lost; {len(again)} episodes go on elsewhere")
        self._assign()

    def _replace(self, why: str) -> None:
        """Says what was lost and starts another worker, unless workers don't live long enough to be of use."""
        say(why)
        self._early += 1
        if self._early > EARLY * self._placement.workers:
            raise InfraError(f"{self._early} workers were lost in a row and none of their episodes ended; last: {why}")
        self._go(self._start())

    def _refuse(self, why: str) -> None:
        say(why)
        if not self._seats and not self._starting:
            raise InterfaceDrift(f"{why}. No worker is left: install the same version of the tools on all nodes")

    async def _update(self, seat: _Seat) -> None:
        assert self._weights is not None
        try:
            version = await self._answer(seat.actor.update.remote(*self._weights))
        except self._ray.exceptions.RayActorError as error:
            await self._lose(seat, error)
            return
        self._dispatcher.updated(seat.name, version)
        self._assign()

    async def _watch(self) -> None:
        """Looks at the loads, and so also finds who is gone."""
        while True:
            await asyncio.sleep(LOOK)
            await asyncio.gather(*(self._look(seat) for seat in list(self._seats.values())))

    async def _look(self, seat: _Seat) -> None:
        try:
            seat.load = await self._answer(seat.actor.load.remote())
        except self._ray.exceptions.RayActorError as error:
            await self._lose(seat, error)
        self._dispatcher.report(seat.name, seat.load)

    def _put(self, weights: bytes) -> Any:
        try:
            return self._ray.put(weights)
        except (self._ray.exceptions.ObjectStoreFullError, self._ray.exceptions.OutOfDiskError) as error:
            room = self._ray.cluster_resources().get("object_store_memory", 0)
            raise InputError(
                f"weights of {len(weights) / 2**20:.0f} MiB find no room in Ray's object store, {room / 2**20:.0f} MiB "
                "on all nodes; start Ray with a larger --object-store-memory, or free space in its spill folder"
            ) from error

    async def _answer(self, reference: Any) -> Any:
        """A worker's answer; what its own code raised is raised here as it was."""
        try:
            return await reference
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts a job; what it raises reaches everybody who waits for an episode."""
        job = asyncio.get_running_loop().create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._ended)

    def _ended(self, job: asyncio.Task[None]) -> None:
        self._jobs.discard(job)
        if job.cancelled() or (error := job.exception()) is None:
            return
        self._failed = error
        for plan in self._plans.values():
            if not plan.future.done():
                plan.future.set_exception(error)


def _tell(ended: asyncio.Future[Episode], on_episode: OnEpisode | None) -> None:
    if on_episode is not None and not ended.cancelled() and ended.exception() is None:
        on_episode(ended.result())
