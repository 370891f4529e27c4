"""One episode of a program: its requests become turns, its calls run in the world, its budget is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quintain.agents.gateway.history import History, Place, Said, reply_of, said_in
from quintain.agents.gateway.protocol import OfferedTool, Refused, Request
from quintain.interface.dialects.base import Dialect
from quintain.interface.episode import Usage
from quintain.interface.errors import InfraError, InputError, LimitKind, OutOfBudget, QuintainError, describe
from quintain.interface.generation import Engine, Generation, Sampling
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation, Turn
from quintain.interface.tools import Tool, Toolset
from quintain.interface.view import Recorder, View

Sessions = dict[str, "Session"]
"""Episodes under way, by their key."""

LIMITS: tuple[LimitKind, ...] = ("turns", "tool_calls", "tokens", "format_errors")
"""Bounds that are held here, against what the program has asked for so far."""


@dataclass(slots=True)
class Open:
    """A turn whose calls may still lack their observations.

    Attributes:
        action: what the model did.
        toolset: what the request offered.
        seen: observations by the id of their call.
        taken: ids of the calls that the program carries out in the world.
        ran: what the world answered to them, before the program has told the model.
    """

    action: Action
    toolset: Toolset
    seen: dict[str, Observation] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    ran: dict[str, Observation] = field(default_factory=dict)

    @property
    def waiting(self) -> list[Call]:
        """Calls without an observation."""
        return [call for call in self.action.calls if call.id not in self.seen]

    @property
    def malformed(self) -> bool:
        """As of a turn, as far as it is known."""
        return self.action.error is not None or any(one.error == "format" for one in self.seen.values())

    def tell(self, call: Call, text: str) -> None:
        """The program has told the model what came of a call: in the world, or in a tool of its own."""
        wrong = self.toolset.check(call.tool, call.arguments)
        seen = self.ran.get(call.id, Observation(call.id, call.tool, ""))
        if wrong is not None:
            seen = replace(seen, value=None, error="format", format_kind=wrong.kind)
        self.seen[call.id] = replace(seen, content=text)

    def turn(self) -> Turn:
        """The turn, every call answered."""
        if self.action.error is not None:
            error = self.action.error
            seen = Observation(FORMAT_CALL_ID, "", error.message, error="format", format_kind=error.kind)
            return Turn(self.action, (seen,))
        return Turn(self.action, tuple(self.seen[call.id] for call in self.action.calls))


class Session:
    """What the gateway knows of one episode.

    Args:
        view: the episode as it begins.
        recorder: takes turns, and runs calls in the world.
        engine: makes the tokens.
        dialect: of the model.
        sampling: how they are drawn, whatever a request says.

    Attributes:
        broken: raises what ends the episode before the program does.
        toolset: the world's tools.
    """

    def __init__(self, view: View, recorder: Recorder, engine: Engine, dialect: Dialect, sampling: Sampling) -> None:
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.toolset = view.toolset
        self._view = view
        self._recorder = recorder
        self._engine = engine
        self._dialect = dialect
        self._sampling = sampling
        self._history = History(dialect)
        self._turns: list[Open] = []
        self._recorded = 0
        self._used = Usage()
        self._running: set[asyncio.Future[None]] = set()
        self._closed = False

    async def complete(self, request: Request) -> tuple[Action, int]:
        """One turn: the request's new tokens, a generation, and what it means; with the number of tokens before it.

        Raises:
            Refused: the request can't be served, or the episode is over.
            QuintainError: the budget is used up, the context full, or the engine broken: `end_by` takes it.
        """
        said, toolset = said_in(request.messages), offered(request.tools or ())
        self._hear(said)
        self._check_budget()
        number = self._used.turns
        self._used.turns += 1
        place = self._history.place(said, toolset)
        made = await self._generate(place, request.bound)
        cut = made.finish == "length"
        closing = self._dialect.stop[:1] if cut else ()
        action = self._dialect.parse(made.ids, cut=cut, prefix=f"call_{number}_")
        action = replace(action, context=place.context, generation=made, closing=closing)
        action = replace(action, discard=place.reason, segment=place.known.number if place.known else -1)
        self._history.add(place, (*made.ids, *closing), reply_of(action))
        self._used.tokens += len(made.ids)
        self._used.tool_calls += len(action.calls)
        self._turns.append(Open(action, toolset))
        self._flush()
        if cut and self._used.tokens >= self._view.remaining.tokens:
            raise OutOfBudget("tokens")  # not for the program to take for an answer
        return action, len(place.ids)

    async def call(self, tool: str, arguments: dict[str, Any]) -> Observation:
        """Runs a call in the world: one the model has made, or one of the program's own, which is a turn by itself.

        Raises:
            Refused: the episode is over.
            QuintainError: the budget is used up, or the world broken: `end_by` takes it.
        """
        self._check_open()
        asked = next(((one, call) for one in self._turns for call in self._unrun(one, tool, arguments)), None)
        if asked is not None:
            return await self._run(*asked)
        self._check_budget()
        call = Call(f"own_{self._used.turns}", tool, arguments)
        turn = Open(Action(calls=(call,)), self.toolset)
        self._turns.append(turn)
        self._used.turns += 1
        self._used.tool_calls += 1
        seen = await self._run(turn, call)
        if not self._closed:
            turn.seen[call.id] = seen
            self._flush()
        return seen

    async def _run(self, turn: Open, call: Call) -> Observation:
        """Runs a call; `close` waits for it."""

        async def run() -> None:
            turn.ran[call.id] = await self._recorder.run(call)

        turn.taken.add(call.id)
        job = asyncio.ensure_future(run())
        self._running.add(job)
        job.add_done_callback(self._running.discard)
        await job
        return turn.ran[call.id]

    def end_by(self, error: Exception) -> Refused:
        """Ends the episode by what went wrong with a request; what is no error of the policy's or world's is the
        gateway's own, and so the infrastructure's."""
        if not self.broken.done():
            known = isinstance(error, QuintainError)
            self.broken.set_exception(error if known else InfraError(f"gateway: {describe(error)}"))
        return Refused(400, f"the episode is over: {error}", "episode_over")

    async def close(self, answer: str | None = None) -> None:
        """Records what is open; an answer that is not the model's last words is a turn without tokens."""
        self._closed = True
        if self._running:
            await asyncio.wait(self._running)  # a call that is under way still changes the world
        for turn in self._turns:
            for call in turn.waiting:
                never = Observation(call.id, call.tool, "Error (exception): not told to the model", error="exception")
                turn.seen[call.id] = turn.ran.get(call.id, never)
        self._flush()
        last = self._turns[-1].action.answer if self._turns else None
        if answer is not None and (last is None or last.strip() != answer.strip()):
            self._recorder.record(Turn(Action(answer=answer)))
        if not self.broken.cancel():
            self.broken.exception()  # whoever plays has seen it, or was cancelled

    async def release(self) -> None:
        """Frees the engine's caches."""
        for number in range(self._history.draws):
            await self._engine.release(self._name(number))

    def _name(self, number: int) -> str:
        return f"{self._view.episode}/{number}"

    async def _generate(self, place: Place, bound: int | None) -> Generation:
        extends = place.known if place.known is not None and not place.reason else None
        left = self._view.remaining.tokens - self._used.tokens
        sampling = replace(
            self._sampling,
            max_tokens=min(one for one in (self._sampling.max_tokens, bound, left) if one is not None),
            stop=self._dialect.stop,
            seed=self._view.seed,
        )
        if extends:
            extends.busy = True
        try:
            made = await self._draw(place.ids, self._name(place.draws), sampling)
        finally:
            if extends:
                extends.busy = False
        self._check_open()
        return made

    async def _draw(self, ids: Sequence[int], session: str, sampling: Sampling) -> Generation:
        """A generation; an engine that breaks is asked once more."""
        group = self._view.task_id
        try:
            return await self._engine.generate(ids, session=session, group=group, sampling=sampling)
        except InfraError:
            return await self._engine.generate(ids, session=session, group=group, sampling=sampling)

    def _hear(self, said: Sequence[Said]) -> None:
        """Finds what a request tells of calls: by their ids, or by their place where a client renamed them."""
        self._check_open()
        texts = {one.ids[0]: one.text for one in said if one.role == "tool"}
        for turn in self._turns:
            for call in turn.waiting:
                if call.id in texts:
                    turn.tell(call, texts[call.id])
        places = {one: place for place, one in enumerate(said) if one.role == "assistant" and one.calls}
        for turn in self._turns:
            if turn.waiting and (place := places.get(reply_of(turn.action))) is not None:
                told = said[place + 1 : place + 1 + len(turn.action.calls)]
                for call, one in zip(turn.action.calls, told, strict=False):
                    if one.role == "tool" and call.id not in turn.seen and one.ids[0] not in turn.seen:
                        turn.tell(call, one.text)
        self._flush()

    def _unrun(self, turn: Open, tool: str, arguments: dict[str, Any]) -> list[Call]:
        """Calls of the model's that the program may be carrying out."""
        return [
            call
            for call in turn.waiting
            if call.id not in turn.taken and (call.tool, call.arguments) == (tool, arguments)
        ]

    def _flush(self) -> None:
        """Records turns in the order in which they were made, up to the first whose calls are not answered."""
        while self._recorded < len(self._turns) and not self._turns[self._recorded].waiting:
            self._recorder.record(self._turns[self._recorded].turn())
            self._recorded += 1

    def _check_open(self) -> None:
        if self._closed or self.broken.done():
            raise Refused(409, "the episode is over", "episode_over")

    def _check_budget(self) -> None:
        self._check_open()
        self._used.format_errors = sum(turn.malformed for turn in self._turns)
        full = [kind for kind in LIMITS if getattr(self._used, kind) >= getattr(self._view.remaining, kind)]
        if full:
            raise OutOfBudget(full[0])


def offered(tools: Sequence[OfferedTool]) -> Toolset:
    """The tools of a request.

    Raises:
        Refused: a schema is none, or two share a name.
    """
    try:
        return Toolset(Tool(one.function.name, one.function.description, one.function.parameters) for one in tools)
    except InputError as error:
        raise Refused(400, f"tools: {error}", "invalid_request") from None
