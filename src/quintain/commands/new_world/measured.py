"""The agent whose pass rate says how hard a level is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.generation import Sampling
from quintain.interface.view import Agent

MakeAgent = Callable[[], AbstractAsyncContextManager[Agent]]
"""Makes the agent anew for every level: connections to a server belong to one event loop."""

_DIALECT = "hermes-compact"


def measured_agent(model: str | None, endpoint: dict[str, Any] | None) -> MakeAgent | None:
    """A model in this process or behind a server, greedy; None where neither is given.

    Args:
        model: path or hub id.
        endpoint: keys of an `endpoint` table.

    Raises:
        InputError: both are given, or the model or the table is wrong.
    """
    if model is not None and endpoint is not None:
        raise InputError("give either --model or --agent: one agent is measured at a time")
    if endpoint is not None:
        return _behind_a_server(endpoint)
    return _in_this_process(model) if model is not None else None


def _behind_a_server(endpoint: dict[str, Any]) -> MakeAgent:
    from quintain.agents.chat import ChatAgent
    from quintain.endpoint.config import EndpointConfig

    config = EndpointConfig(**endpoint)

    @asynccontextmanager
    async def made() -> AsyncIterator[Agent]:
        agent = ChatAgent(config, Sampling(temperature=0.0, max_tokens=1024))
        try:
            yield agent
        finally:
            await agent.close()

    return made


def _in_this_process(model: str) -> MakeAgent:
    from quintain.agents.model import ModelAgent
    from quintain.inference.local import LocalEngine
    from quintain.inference.models import load_model
    from quintain.interface.dialects import get
    from quintain.interface.dialects.codec import TokenizerCodec

    loaded, tokenizer = load_model(model)
    dialect = get(_DIALECT, TokenizerCodec(tokenizer))

    @asynccontextmanager
    async def made() -> AsyncIterator[Agent]:
        engine = LocalEngine(loaded)
        try:
            yield ModelAgent(engine, dialect, Sampling(temperature=0.0, max_tokens=96))
        finally:
            engine.close()

    return made
