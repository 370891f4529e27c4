"""One running episode: the world's instance, its snapshots, and what has been used so far."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Self

from quintain.harness.calls import CallTimeout, error_observation, format_observation, parallel, run_call
from quintain.harness.faults import Fault, FaultPlan, FaultStream
from quintain.harness.isolated import IsolatedWorld
from quintain.harness.threads import settle
from quintain.harness.world import World
from quintain.interface.episode import Budget, Episode, Outcome, Usage, Verdict
from quintain.interface.errors import InfraError, InputError, InterfaceDrift, LimitKind, QuintainError, describe
from quintain.interface.faults import REFUSALS
from quintain.interface.messages import Action, Call, Message, Observation, Turn
from quintain.interface.records import TokenRecord
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset
from quintain.interface.view import View

WorldFactory = Callable[[], World]


def episode_seed(seed: int, task_id: str, sample: int) -> int:
    """A seed for one episode, the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{task_id}/{sample}".encode()).digest()[:6])


async def attempt(action: Callable[..., Awaitable[None]], *arguments: Any, **options: Any) -> Exception | None:
    """Runs a world's own code; whatever it raises is returned."""
    try:
        await action(*arguments, **options)
    except Exception as error:
        return error
    return None


class Live:
    """The world side of one episode while it runs."""

    def __init__(
        self, task: Task, factory: WorldFactory, budget: Budget, header: Episode, faults: FaultPlan | None = None
    ) -> None:
        self.task = task
        self.factory = factory
        self.budget = budget
        self.header = header
        self.faults = FaultStream(faults, header.seed)
        self.turns: list[Turn] = []
        self.tokens = TokenRecord()
        self.usage = Usage()
        self.milestones: dict[str, int] = {}  # with the index of the turn that reached each
        self.user_messages: dict[int, Message] = {}
        self.state: bytes | None = None
        self.world = factory()
        self.toolset: Toolset = self.world.toolset()
        self._calls_done: list[tuple[str, dict[str, Any]]] = []
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.world.abandon()

    async def open(self) -> Exception | None:
        """Resets the world to the task, with one retry on another instance; returns what came back twice.

        Raises:
            InterfaceDrift: the tools are no longer those this process began with: no episode could be compared.
        """
        problem = await attempt(self._reset, self.world)
        if problem is not None:
            self._replace(self.factory())
            problem = await attempt(self._reset, self.world)
        if isinstance(problem, InterfaceDrift):
            raise problem
        if problem is None:
            self._renew_tools()
            if self.world.tools_per_task:  # all others have the tools whose digest the header holds already
                digests = replace(self.header.digests, toolset=self.toolset.digest)
                self.header = replace(self.header, digests=digests)
            self.state = self._snapshot()
        return problem

    async def reply(self) -> Message | None:
        """What the user says to the last answer; None ends the episode."""
        if type(self.world).user is World.user:
            return None
        said: Message | None = await settle(self.world.user, self.view(), seconds=self.budget.seconds)
        if not isinstance(said, Message | None):
            raise TypeError(f"user() must return a Message or None, found {type(said).__name__}")
        self._renew_tools()
        return said

    async def verdict(self, episode: Episode) -> Verdict:
        """The verdict, on a fresh instance restored from the last snapshot where the world keeps exact ones."""
        if self.world.snapshots != "exact" or self.state is None:
            return await self._verify(self.world, episode)
        world = self.factory()
        try:
            await self._restore(world, self.state)
            verdict = await self._verify(world, episode)
            await self._close(world)
            return verdict
        finally:
            world.abandon()

    async def _verify(self, world: World, episode: Episode) -> Verdict:
        verdict = await settle(world.verify, self.task, episode, seconds=self.budget.seconds)
        if not isinstance(verdict, Verdict):
            raise TypeError(f"verify() must return a Verdict, found {type(verdict).__name__}")
        _check_verdict(verdict)
        return verdict

    async def close(self) -> None:
        """Frees what the world took."""
        await self.world.end_programs()
        await self._close(self.world)

    async def _close(self, world: World) -> None:
        if type(world).close is not World.close:
            await attempt(settle, world.close, seconds=self.budget.seconds)

    async def _reset(self, world: World) -> None:
        world.seed = self.header.seed
        await settle(world.reset, self.task, seconds=self.budget.seconds)

    async def _restore(self, world: World, state: bytes) -> None:
        if isinstance(world, IsolatedWorld):  # waits for its process
            await settle(world.restore, state, seconds=self.budget.seconds)
        else:
            world.restore(state)

    def _replace(self, world: World) -> None:
        self.world.abandon()
        self.world, self.toolset = world, world.toolset()

    def _renew_tools(self) -> None:
        if self.world.tools_per_task:
            self.toolset = self._own("toolset", self.world.toolset)

    def view(self) -> View:
        """What the agent may see."""
        return View(
            self.header.id,
            self.task.id,
            self.header.messages,
            self.toolset,
            tuple(self.turns),
            self.remaining(),
            self.header.seed,
            self.tokens.ids,
            dict(self.user_messages),
        )

    def remaining(self) -> Budget:
        """What is left of the budget."""
        used, budget = self.usage, self.budget
        return Budget(
            turns=budget.turns - used.turns,
            tool_calls=budget.tool_calls - used.tool_calls,
            tokens=budget.tokens - used.tokens,
            seconds=max(0.0, budget.seconds - self.elapsed()),
            call_seconds=budget.call_seconds,
            observation_bytes=budget.observation_bytes,
            format_errors=budget.format_errors - used.format_errors,
        )

    def elapsed(self) -> float:
        """Seconds used, those before an interruption included."""
        return self.usage.seconds + time.monotonic() - self._began

    def limit(self) -> LimitKind | None:
        """The bound that is reached; None if the episode may go on."""
        left = self.remaining()
        kinds: tuple[LimitKind, ...] = ("format_errors", "turns", "tool_calls", "tokens", "seconds")
        return next((kind for kind in kinds if getattr(left, kind) <= 0), None)

    async def observe(self, action: Action) -> tuple[Observation, ...]:
        """Runs the action's calls. An infra error is retried once from the snapshot; if it comes back it is
        the agent's doing, so that crashing a tool is no way to dodge a bad score."""
        observations = await self._observe(action)
        self._calls_done += _lasting(Turn(action, observations))
        return observations

    async def run(self, call: Call) -> Observation:
        """Runs one call at once, its turn not being over: a later failure goes back to the state after it."""
        (seen,) = await self.observe(Action(calls=(call,)))
        self.state = self._snapshot()
        return seen

    async def _observe(self, action: Action) -> tuple[Observation, ...]:
        faults = self._strike(action)
        try:
            return await self._run_calls(action, faults)
        except InfraError as error:
            if self.world.snapshots == "none":
                raise InfraError(f"{error}; the world keeps no snapshots, so it can't go back and try again") from None
            await self._go_back(self.state, [])
        try:
            return await self._run_calls(action, faults)
        except InfraError as error:
            await self._go_back(self.state, [])
            return tuple(
                self._undone(call, fault, str(error)) for call, fault in zip(action.calls, faults, strict=True)
            )

    def _undone(self, call: Call, fault: Fault | None, reason: str) -> Observation:
        """What is told of a call whose turn broke twice; one that never reached a tool keeps its own error."""
        wrong = self.toolset.check(call.tool, call.arguments)
        if wrong is not None:
            return format_observation(wrong, call.id, call.tool)
        return fault.refusal(call) if fault and fault.refuses else error_observation(call, "infra", reason)

    def _strike(self, action: Action) -> list[Fault | None]:
        """The fault of each call; what names no tool or does not fit its schema reaches nothing that could fail."""
        return [
            self.faults.next(call.tool) if self.toolset.check(call.tool, call.arguments) is None else None
            for call in action.calls
        ]

    async def _run_calls(self, action: Action, faults: list[Fault | None]) -> tuple[Observation, ...]:
        allowed = self.budget.tool_calls - self.usage.tool_calls
        calls = action.calls[:allowed]
        over = tuple(
            error_observation(call, "exception", f"not run: {len(action.calls)} calls > {allowed} left")
            for call in action.calls[allowed:]
        )
        if not isinstance(self.world, IsolatedWorld) and parallel(action, self.toolset):
            return tuple(await self._run_all(calls, faults)) + over
        done: list[Observation] = []
        state = self.state
        for index, call in enumerate(calls):
            if index:
                state = self._snapshot()
            before = [one for one, fault in zip(calls[:index], faults, strict=False) if not (fault and fault.refuses)]
            done.append(await self._run_one(call, faults[index], state, before))
        return tuple(done) + over

    async def _run_one(self, call: Call, fault: Fault | None, state: bytes | None, before: list[Call]) -> Observation:
        try:
            return await self._run_or_fail(call, fault)
        except CallTimeout as timeout:
            await self._go_back(state, before)
            return timeout.observation

    async def _run_or_fail(self, call: Call, fault: Fault | None) -> Observation:
        """Runs one call, unless an injected fault keeps it from running; another kind damages its result."""
        if fault is not None and fault.refuses:
            return fault.refusal(call)
        observation = await run_call(call, self.toolset, self.budget)
        return observation if fault is None else fault.damage(observation)

    async def _run_all(self, calls: tuple[Call, ...], faults: list[Fault | None]) -> list[Observation]:
        """Read-only calls at once; if one is abandoned the instance is replaced when all have ended."""
        results = await asyncio.gather(
            *(self._run_or_fail(call, fault) for call, fault in zip(calls, faults, strict=False)),
            return_exceptions=True,
        )
        observations, hung = [], False
        for result in results:
            if isinstance(result, CallTimeout):
                hung = True
                observations.append(result.observation)
            elif isinstance(result, BaseException):
                raise result
            else:
                observations.append(result)
        if hung:
            await self._go_back(self.state, [])
        return observations

    async def _go_back(self, state: bytes | None, before: list[Call]) -> None:
        """Replaces the instance by one in the state before a call.

        Args:
            state: the snapshot, for worlds that keep exact ones.
            before: calls of the current turn that had run already, for worlds that replay.
        """
        kind = self.world.snapshots
        if kind == "none":
            raise InfraError(f"world {self.world.name!r} keeps no snapshots, so it can't go back")
        await self.world.end_programs()
        self._replace(self.factory())
        if kind == "exact":
            assert state is not None
            await self._restore(self.world, state)
            self._renew_tools()
        else:
            await self._reset(self.world)
            self._renew_tools()
            for name, arguments in [*self._calls_done, *((call.tool, call.arguments) for call in before)]:
                await run_call(Call("replay", name, arguments), self.toolset, self.budget)

    def record(self, turn: Turn) -> None:
        """Adds a turn and what it used."""
        action = turn.action
        self.turns.append(turn)
        self.tokens.add(action)
        used = self.usage
        used.turns += 1
        used.tool_calls += sum(1 for one in turn.observations if one.error != "format")
        used.format_errors += turn.malformed
        used.context_tokens += len(action.context)
        if action.generation is not None:
            used.tokens += len(action.generation.ids)
        if action.spent is not None:
            used.tokens += action.spent.tokens
            used.context_tokens += action.spent.context_tokens
            used.price += action.spent.price
        done = self._own("milestones", lambda: dict(self.world.milestones(self.task)))
        for name in (name for name, is_done in done.items() if is_done):
            self.milestones.setdefault(name, len(self.turns) - 1)
        self.state = self._snapshot()

    def say(self, said: Message) -> None:
        """Adds what the user said after the last turn."""
        self.user_messages[len(self.turns)] = said
        self.state = self._snapshot()

    def _snapshot(self) -> bytes | None:
        if self.world.snapshots != "exact":
            return None
        state = self._own("snapshot", self.world.snapshot)
        if not isinstance(state, bytes):
            raise InputError(f"world {self.world.name!r}: snapshot() must return bytes, found {type(state).__name__}")
        return state

    def _own(self, name: str, function: Callable[[], Any]) -> Any:
        """Runs code of the world that no episode can go on without: what it raises stops the run with one line."""
        try:
            return function()
        except QuintainError:
            raise
        except Exception as error:
            raise InputError(f"world {self.world.name!r}: {name}() fails: {describe(error)}") from error

    async def rebuild(self, turns: list[Turn], said: dict[int, Message], usage: Usage, state: bytes | None) -> None:
        """Takes the position after `turns` of an earlier episode: a resume or a branch."""
        for turn in turns:
            self.turns.append(turn)
            self.tokens.add(turn.action)
            self._calls_done += _lasting(turn)
        self.faults.replay(turns)
        self.user_messages = dict(said)
        self.usage = replace(usage)
        if self.world.snapshots == "exact" and state is None:
            raise InputError(f"episode {self.header.id!r}: no snapshot after turn {len(turns)}")
        await self._go_back(state, [])
        self.state = state

    def finish(self, outcome: Outcome) -> Episode:
        """The record so far, without a verdict."""
        self.usage.seconds = self.elapsed()
        self._began = time.monotonic()
        return replace(
            self.header,
            turns=tuple(self.turns),
            outcome=outcome,
            usage=replace(self.usage),
            segments=self.tokens.segments,
            spans=tuple(self.tokens.spans),
            milestones=tuple(self.milestones),
            milestone_turns=tuple(self.milestones.values()),
            user_messages=dict(self.user_messages),
        )


def _check_verdict(verdict: Verdict) -> None:
    if not isinstance(verdict.success, bool):
        raise TypeError(f"a verdict's success must be True or False, found {verdict.success!r}")
    if not isinstance(verdict.score, int | float) or not 0 <= verdict.score <= 1:
        raise ValueError(f"a verdict's score must be a number from 0 to 1, found {verdict.score!r}")
    if isinstance(verdict.reasons, str) or not all(isinstance(one, str) for one in verdict.reasons):
        raise TypeError(f"a verdict's reasons must be a tuple of texts, found {verdict.reasons!r}")


def _lasting(turn: Turn) -> list[tuple[str, dict[str, Any]]]:
    """Calls of a turn whose changes stayed: after a timeout or an infra error the world went back, and what an
    injected fault refused was never run."""
    pairs = zip(turn.action.calls, turn.observations, strict=True) if turn.action.calls else ()
    return [
        (call.tool, call.arguments)
        for call, one in pairs
        if one.error not in ("timeout", "infra") and one.fault not in REFUSALS
    ]
