"""`quintain serve`: a trained agent behind the chat completions protocol."""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

from quintain.agents.gateway.http import check_packages
from quintain.interface.errors import InputError
from quintain.pipeline.lineage import chosen_model, measured_sampling
from quintain.pipeline.workshop import Workshop
from quintain.progress import say
from quintain.serving.conversation import Conversations, harness_of

KEY = "QUINTAIN_API_KEY"
"""Environment variable with the key that clients must send."""


def serve(run: Path, stage: str | None, world: str | None, host: str, port: int, temperature: float) -> None:
    """Serves until it is interrupted.

    Args:
        run: a run's folder.
        stage: the trained stage; None takes the last finished one, `base` the base model.
        world: the world it acts in; None for the only one.
        host: address to listen on; other machines reach all but the loopback's, so those need a key.
        port: 0 takes a free one.
        temperature: where a request says nothing.

    Raises:
        InputError: no such stage or world, a package is missing, the port is in use, or an open address has no key.
    """
    key = os.environ.get(KEY) or None
    _check(host, temperature, key)
    listening = listen(host, port)  # before a model is loaded: a busy port is said at once
    from quintain.inference.local import LocalEngine

    recipe, home, name = chosen_model(run, stage)
    workshop = Workshop(recipe, home, run, accept_drift=True)
    place = workshop.one_world("serving", world, "choose with --world NAME")
    policy = workshop.policy(name)
    engine = LocalEngine(policy.model, kv_tokens=recipe.kv_tokens, sessions=recipe.concurrency)
    sampling = replace(measured_sampling(run, recipe, name).sampling(), temperature=temperature)
    sample = workshop.pools.sample(place.name)
    agent = Conversations(harness_of(place), sample, engine, policy.dialect, sampling, recipe.concurrency, name)
    try:
        _run(agent, key, listening)
    finally:
        engine.close()


def _check(host: str, temperature: float, key: str | None) -> None:
    check_packages()
    from quintain.serving.app import LOOPBACK

    if not temperature >= 0:  # also what is no number
        raise InputError(f"temperature {temperature:g}: must be at least 0, which is greedy")
    if host not in LOOPBACK and key is None:
        raise InputError(
            f"--host {host} lets other machines run the agent's tools: set a key that clients must send, "
            f"`export {KEY}=...`, or leave --host out"
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket on an address.

    Raises:
        InputError: it is in use, or no address of this machine.
    """
    if not 0 <= port <= 65_535:
        raise InputError(f"port {port}: must be 0 to 65535; 0 takes a free one")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = "in use by another program" if error.errno == errno.EADDRINUSE else str(error)
        raise InputError(f"port {port} of {host}: {reason}; give another --port (0 takes a free one)") from None


def _run(agent: Conversations, key: str | None, listening: socket.socket) -> None:
    from quintain.serving.app import make_app

    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    who = "with a key" if key else "this machine only"
    say(f"serving {agent.name} on http://{shown}:{port}/v1 ({who}); Ctrl-C ends it")
    run_app(make_app(agent, key), listening)


def run_app(app: Any, listening: socket.socket) -> None:
    """Serves an application until Ctrl-C."""
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:  # raised again once everything is closed
        say("ended")
