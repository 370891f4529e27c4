"""The episode loop: asks the agent, runs its calls, keeps the journal, asks the world for its verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from quintain.harness.calls import format_observation
from quintain.harness.faults import FaultPlan
from quintain.harness.isolated import isolate
from quintain.harness.journal import Journal, JournalError, Unfinished
from quintain.harness.live import Live, WorldFactory, episode_seed
from quintain.interface.episode import Budget, Digests, Episode, Outcome, Usage, Verdict
from quintain.interface.errors import ContextFull, InfraError, InputError, OutOfBudget, QuintainError, describe
from quintain.interface.messages import Action, Call, Observation, Turn, message
from quintain.interface.records import message_from_json, milestones_by_turn, turn_from_json
from quintain.interface.tasks import Task
from quintain.interface.view import Agent, Player, Program

OnEpisode = Callable[[Episode], None]

T = TypeVar("T")


class Harness:
    """Runs episodes of a world: the world side, kept apart from the agent's decisions.

    Args:
        world: the world's class, or a function that makes a fresh instance.
        budget: what one episode may use.
        journal: where turns are written before the next one starts; None keeps nothing on disk.
        concurrency: episodes under way at once in `rollout`.
        dialect: digest of the dialect, recorded in every episode.
        seed: with the task and the sample it fixes each episode's seed.
        faults: what goes wrong on purpose; None for nothing.
        judge: ask the world for a verdict; without one an episode has no score (a person's own questions).
        beside: harnesses of other worlds; `rollout` plays the tasks of those worlds there.
    """

    def __init__(
        self,
        world: WorldFactory,
        *,
        budget: Budget | None = None,
        journal: Journal | None = None,
        concurrency: int = 32,
        dialect: str = "",
        seed: int = 0,
        faults: FaultPlan | None = None,
        judge: bool = True,
        beside: Sequence[Harness] = (),
    ) -> None:
        self.budget = budget or Budget()
        self.journal = journal
        self.concurrency = concurrency
        self.seed = seed
        self.faults = faults
        self.judge = judge
        sample = world()
        self.factory = isolate(sample) if sample.isolated else world
        self.world_name = sample.name
        self.instructions = sample.instructions
        self.tools_per_task = sample.tools_per_task
        self.digests = Digests(sample.toolset().digest, dialect, sample.data_digest())
        self._beside = {one.world_name: one for one in beside}

    def of(self, task: Task) -> Harness:
        """The harness of a task's world: one of those beside this one, or this one."""
        return self._beside.get(task.world, self)

    async def run(self, task: Task, agent: Player, *, sample: int = 0) -> Episode:
        """Runs one episode of a task; `sample` tells the episodes of one task apart."""
        header = self._header(task, agent, f"{task.id}#{sample}", episode_seed(self.seed, task.id, sample))
        with Live(task, self.factory, self.budget, header, self.faults) as live:
            problem = await live.open()
            if self.journal:
                self.journal.start(live.header, self.budget, live.state)
            if problem is not None:
                outcome = Outcome("infra_error", detail=f"reset failed twice: {describe(problem)}"[:300])
                return await self._conclude(live, outcome, agent)
            return await (self._accompany(live, agent) if isinstance(agent, Program) else self._play(live, agent))

    async def resume(self, unfinished: Unfinished, task: Task, agent: Agent) -> Episode:
        """Goes on with an interrupted episode after its last journaled turn."""
        start, turns = unfinished.start, unfinished.turns
        header = self._header(task, agent, unfinished.id, start["seed"])
        header = replace(header, version=start["policy"], digests=Digests(**start["digests"]))
        last = turns[-1] if turns else start
        said = {at + 1: message_from_json(one["user"]) for at, one in enumerate(turns) if one.get("user")}
        usage = Usage(**last["usage"]) if turns else Usage()
        state = self.journal.load_state(last["snapshot"]) if self.journal else None
        with Live(task, self.factory, self.budget, header, self.faults) as live:
            live.milestones = milestones_by_turn(turns)
            await live.rebuild([turn_from_json(one["turn"]) for one in turns], said, usage, state)
            if turns and live.turns[-1].action.answer is not None and len(turns) not in said:
                return await self._after_answer(live, agent)
            return await self._play(live, agent)

    async def branch(
        self, episode: Episode, turn: int, task: Task, agent: Agent, *, state: bytes | None, name: str
    ) -> Episode:
        """Rewinds to just before turn `turn` and goes on from there as a new episode with a parent.

        Args:
            episode: the original; it is never touched.
            turn: number of turns to keep.
            task: its task.
            agent: who decides from here on.
            state: the world's snapshot at that point (`Journal.state_at`); None for worlds that replay.
            name: tells the branches of one point apart.
        """
        if not 0 <= turn <= len(episode.turns):
            raise InputError(f"episode {episode.id!r} has {len(episode.turns)} turns; can't branch at {turn}")
        header = self._header(task, agent, f"{episode.id}+{turn}{name}", episode.seed)
        kept = list(episode.turns[:turn])
        said = {at: one for at, one in episode.user_messages.items() if at <= turn}
        header = replace(header, parent=(episode.id, turn))
        if self.tools_per_task:
            header = replace(header, digests=replace(header.digests, toolset=episode.digests.toolset))
        with Live(task, self.factory, self.budget, header, self.faults) as live:
            await live.rebuild(kept, said, _usage_of(episode, turn), state)
            pairs = zip(episode.milestones, episode.milestone_turns, strict=True)
            live.milestones = {name: at for name, at in pairs if at < turn}
            if self.journal:
                self.journal.start(live.header, self.budget, live.state)
                for index, one in enumerate(kept):
                    done = tuple(name for name, at in live.milestones.items() if at <= index)
                    self.journal.turn(live.header.id, index, one, live.usage, done, None)
            return await self._play(live, agent)

    async def rollout(
        self,
        tasks: Sequence[Task],
        agent: Player,
        *,
        samples: int = 1,
        done: Iterable[Episode] = (),
        unfinished: Iterable[Unfinished] = (),
        on_episode: OnEpisode | None = None,
    ) -> list[Episode]:
        """Runs `samples` episodes of every task, `concurrency` at once.

        Args:
            tasks: what to run.
            agent: who decides.
            samples: episodes per task.
            done: episodes that already exist; they are returned, not run again.
            unfinished: interrupted episodes; they go on where they stopped, those of a program from the start.
            on_episode: told of every episode as it ends.

        Returns:
            All episodes, ordered by task and sample.

        Raises:
            InputError: the world or the agent can't be used as it is; the first such error stops the run.
            JournalError: the journal can't be written.
        """
        have = {episode.id: episode for episode in done}
        torn = {one.id: one for one in unfinished}
        slots = asyncio.Semaphore(self.concurrency)

        async def one(task: Task, sample: int) -> Episode:
            identity = f"{task.id}#{sample}"
            if identity in have:
                return have[identity]
            async with slots:
                home = self.of(task)
                if identity in torn and not isinstance(agent, Program):
                    episode = await home.resume(torn[identity], task, agent)
                else:
                    episode = await home.run(task, agent, sample=sample)
            if on_episode:
                on_episode(episode)
            return episode

        try:
            async with asyncio.TaskGroup() as group:
                jobs = [group.create_task(one(task, sample)) for task in tasks for sample in range(samples)]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [job.result() for job in jobs]

    def _header(self, task: Task, agent: Player, identity: str, seed: int) -> Episode:
        system = [message("system", self.instructions)] if self.instructions else []
        return Episode(
            id=identity,
            task_id=task.id,
            cluster=task.cluster or task.id,
            template=task.template,
            tags=task.tags,
            world=self.world_name,
            digests=self.digests,
            agent=agent.name,
            version=agent.version,
            messages=(*system, message("user", task.prompt)),
            turns=(),
            outcome=Outcome("infra_error", detail="not finished"),
            verdict=None,
            usage=Usage(),
            seed=seed,
        )

    async def _play(self, live: Live, agent: Agent) -> Episode:
        while True:
            limit = live.limit()
            if limit is not None:
                return await self._conclude(live, Outcome("limit", limit), agent)
            action = await self._ask(live, agent)
            if isinstance(action, Outcome):
                return await self._conclude(live, action, agent)
            problem = await self._step(live, action)
            if problem is not None:
                return await self._conclude(live, problem, agent)
            if action.answer is not None:
                return await self._after_answer(live, agent)

    async def _accompany(self, live: Live, program: Program) -> Episode:
        """Lets a program play by itself; the world answers its calls when it makes them."""
        seconds = live.remaining().seconds
        problem = await _or_outcome(lambda: program.play(live.view(), _Recorder(self, live)), seconds)
        given = [turn.action for turn in live.turns if turn.action.answer is not None]
        if problem is None and not given:
            problem = Outcome("agent_error", detail="the program ended without an answer")
        if problem is None:
            problem = Outcome("declined" if given[-1].declines else "answered")
        return await self._conclude(live, problem, program)

    async def _step(self, live: Live, action: Action) -> Outcome | None:
        """Runs an action's calls and journals the turn."""
        try:
            if action.error is not None:
                observations: tuple[Observation, ...] = (format_observation(action.error),)
            else:
                observations = await live.observe(action)
            self._record(live, Turn(action, observations))
        except JournalError:
            raise
        except InfraError as error:
            return Outcome("infra_error", detail=str(error))
        return None

    def _record(self, live: Live, turn: Turn) -> None:
        """Adds a turn to the episode and to the journal."""
        live.record(turn)
        if self.journal:
            index = len(live.turns) - 1
            live.usage.seconds, spent = live.elapsed(), live.usage.seconds
            self.journal.turn(live.header.id, index, turn, live.usage, tuple(live.milestones), live.state)
            live.usage.seconds = spent

    async def _ask(self, live: Live, agent: Agent) -> Action | Outcome:
        """The agent's next action. An engine's infra error is retried once; any other error is the agent's."""
        for _ in range(2):
            view = live.view()
            action = await _or_outcome(partial(agent.act, view), view.remaining.seconds)
            if not isinstance(action, Outcome) or action.kind != "infra_error":
                break
        if isinstance(action, Action | Outcome):
            return action
        return Outcome("agent_error", detail=f"the agent must return an Action, found {action!r}"[:300])

    async def _after_answer(self, live: Live, agent: Agent) -> Episode:
        """Lets the world play the user; without a reply the episode is over."""
        try:
            said = await live.reply()
        except Exception as error:
            outcome = Outcome("infra_error", detail=f"user() failed: {describe(error)}"[:300])
            return await self._conclude(live, outcome, agent)
        if said is None:
            kind = "declined" if live.turns[-1].action.declines else "answered"
            return await self._conclude(live, Outcome(kind), agent)  # type: ignore[arg-type]
        live.say(said)
        if self.journal:
            self.journal.user(live.header.id, len(live.turns) - 1, said, live.state)
        return await self._play(live, agent)

    async def _conclude(self, live: Live, outcome: Outcome, agent: Player) -> Episode:
        episode = live.finish(outcome)
        await live.world.end_programs()  # nothing the agent started is alive when the world judges
        if outcome.kind != "infra_error" and self.judge:
            episode = await self._judge(live, episode)
        await live.close()
        await agent.release(episode.id)
        if self.journal:
            await self.journal.end(episode)
        return episode

    async def _judge(self, live: Live, episode: Episode) -> Episode:
        """Adds the world's verdict; without one, after two tries, the episode has no score.

        An `InputError` (a key that is refused) would come back in every episode: it stops the run, and the episode is
        judged when the run is resumed.
        """
        verdict: Verdict | None = None
        problem: Exception | None = None
        for _ in range(2):
            try:
                verdict = await live.verdict(episode)
                break
            except InputError:
                raise
            except Exception as error:
                problem = error
        if verdict is None or verdict.infra:
            failed = f"verify failed twice: {describe(problem)}" if problem else ""
            reasons = verdict.reasons if verdict else (failed,)
            return replace(episode, outcome=Outcome("infra_error", detail="; ".join(reasons)[:300]))
        return replace(episode, verdict=verdict)


class _Recorder:
    """What a program's side may do to its episode."""

    def __init__(self, harness: Harness, live: Live) -> None:
        self._harness = harness
        self._live = live
        self._alone = asyncio.Lock()

    async def run(self, call: Call) -> Observation:
        """Runs a call in the world now; one at a time, in the order in which they are asked for."""
        async with self._alone:
            return await self._live.run(call)

    def record(self, turn: Turn) -> None:
        """Adds a turn whose calls have been answered."""
        self._harness._record(self._live, turn)


async def _or_outcome(decide: Callable[[], Awaitable[T]], seconds: float) -> T | Outcome:
    """What an agent decides, within its time; or how that ends its episode."""
    try:
        async with asyncio.timeout(seconds):
            return await decide()
    except TimeoutError:
        return Outcome("limit", "seconds")
    except JournalError:
        raise
    except InfraError as error:
        return Outcome("infra_error", detail=f"engine failed twice: {error}")
    except ContextFull as error:
        return Outcome("limit", "context", detail=str(error))
    except OutOfBudget as error:
        return Outcome("limit", error.kind)
    except QuintainError:
        raise
    except Exception as error:
        return Outcome("agent_error", detail=describe(error)[:300])


def _usage_of(episode: Episode, turns: int) -> Usage:
    """What the first `turns` turns used; seconds start anew."""
    usage = Usage(turns=turns)
    for turn in episode.turns[:turns]:
        usage.tool_calls += sum(1 for one in turn.observations if one.error != "format")
        usage.format_errors += turn.malformed
        usage.context_tokens += len(turn.action.context)
        usage.tokens += len(turn.action.generation.ids) if turn.action.generation else 0
        if turn.action.spent is not None:
            usage.tokens += turn.action.spent.tokens
            usage.context_tokens += turn.action.spent.context_tokens
            usage.price += turn.action.spent.price
    return usage
