"""The gateway: a program that speaks the OpenAI API plays with a policy's tokens, and every token is recorded."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from quintain.agents.gateway.http import HOST, LoopServer, check_packages
from quintain.agents.gateway.program import Assignment, Runs
from quintain.agents.gateway.session import Session, Sessions
from quintain.interface.dialects.base import Dialect
from quintain.interface.generation import Engine, Sampling
from quintain.interface.view import Recorder, View


class GatewayAgent:
    """A program of somebody else's around a policy behind an engine. Use it within one event loop, then `close`.

    Args:
        engine: makes the tokens.
        dialect: how messages look as tokens.
        sampling: how tokens are drawn, whatever a request says; `max_tokens` bounds one turn.
        program: started for every episode.
        name: name for records.

    Raises:
        InputError: starlette or uvicorn is not installed.
    """

    def __init__(self, engine: Engine, dialect: Dialect, sampling: Sampling, program: Runs, name: str) -> None:
        check_packages()
        self.engine = engine
        self.dialect = dialect
        self.sampling = sampling
        self.name = name
        self._program = program
        self._sessions: Sessions = {}
        self._server: LoopServer | None = None

    @property
    def version(self) -> int:
        """Version of the engine's weights."""
        return self.engine.version

    async def play(self, view: View, recorder: Recorder) -> None:
        """Runs the program to its end, or to that of its budget.

        Raises:
            OutOfBudget: it asked for more than its budget.
            ContextFull: no room is left in the model's context.
            InfraError: the engine broke twice.
        """
        session = Session(view, recorder, self.engine, self.dialect, self.sampling)
        key = secrets.token_urlsafe(16)
        self._sessions[key] = session
        said = {role: "\n\n".join(one.text for one in view.messages if one.role == role) for role in ("system", "user")}
        assignment = Assignment(said["user"], said["system"], self._url(), key)
        job = asyncio.ensure_future(self._program(assignment))
        ends: tuple[asyncio.Future[Any], ...] = (job, session.broken)
        answer = None
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if session.broken.done():
                session.broken.result()
            answer = job.result()
        finally:
            del self._sessions[key]
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)
            await session.close(answer)
            await session.release()

    async def release(self, episode: str) -> None:
        """Nothing is left of it."""

    async def close(self) -> None:
        """Ends the server."""
        if self._server is not None:
            await self._server.close()

    def _url(self) -> str:
        if self._server is None:
            from quintain.agents.gateway.app import make_app

            self._server = LoopServer(make_app(self._sessions, self.name))
        return f"http://{HOST}:{self._server.port}/v1"
