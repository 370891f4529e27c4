"""Environments of the package `verifiers` 0.2 (its classes are gone from 0.4): loaded, or refused in one line.

What `vf.Environment` does beside its task, it does for a program of its own: handlers of Ctrl-C and a client of a model
server. The handlers are put back, and the client of our states refuses to be asked.
"""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Mapping
from importlib import metadata
from random import Random
from typing import Any

from quintain.interface.canonical import digest
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task

WORLD = "verifiers"
HELD_OUT = 5
"""Where an environment has no evaluation set, one row in five is kept for evaluation."""


def load(env: str, args: Mapping[str, Any]) -> Any:
    """The environment that the installed package `env` makes with these arguments.

    Raises:
        InputError: `verifiers` or the environment is not installed, fails, or can't be played here.
    """
    try:
        from verifiers import load_environment
        from verifiers.envs.environment import Environment
        from verifiers.envs.multiturn_env import MultiTurnEnv
    except ImportError as error:
        text = f"the world verifiers needs verifiers 0.2: pip install 'quintain[verifiers]' ({error})"
        raise InputError(text) from None
    logging.getLogger("verifiers").setLevel(logging.CRITICAL)  # it logs what it raises
    kept = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        made = load_environment(env, **args)
    except (ValueError, RuntimeError) as error:
        raise InputError(f"verifiers environment {env!r}: {' '.join(str(error).split())}") from error
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    fault = ""
    if not isinstance(made, MultiTurnEnv):
        kinds = "SingleTurnEnv, ToolEnv, StatefulToolEnv and MultiTurnEnv can be played"
        fault = f"{type(made).__name__} runs rollouts in its own way; {kinds}"
    elif type(made).get_model_response is not Environment.get_model_response:
        fault = f"{type(made).__name__} asks the model itself, so no agent of Quintain can take its place"
    elif made.rubric.has_group_rewards:
        fault = "its rubric scores groups of rollouts; here every episode has a verdict of its own"
    if fault:
        raise InputError(f"verifiers environment {env!r}: {fault}")
    return made


def no_model() -> Any:
    """The client of our states: only an agent of Quintain is asked for actions."""
    from verifiers.clients import Client

    class NoModel(Client):  # type: ignore[misc]  # imported where it is installed
        async def get_response(self, *_: Any, **__: Any) -> Any:
            raise InputError("the environment asks a model by itself, which needs a server of its own")

        setup_client = to_native_tool = to_native_prompt = get_native_response = get_response
        raise_from_native_response = from_native_response = close = get_response

    return NoModel(None)


def tasks(environment: Any, split: str, count: int, seed: int) -> list[Task]:
    """Draws rows: those of `dataset` to train on, those of `eval_dataset` to evaluate on.

    Raises:
        InputError: there are fewer, or a row can't be a task.
    """
    rows = _rows(environment, split)
    if count > len(rows):
        raise InputError(
            f"verifiers environment {environment.env_id!r} has {len(rows)} rows for {split}; {count} were asked for"
        )
    chosen = sorted(Random(seed).sample(range(len(rows)), count))
    return [_task(environment, split, at, rows[at]) for at in chosen]


def data_digest(environment: Any) -> str:
    """Digest of the package's version and the environment with its arguments."""
    version = metadata.version("verifiers")
    return digest({"world": WORLD, "verifiers": version, "env": environment.env_id, "args": environment.env_args})


def _rows(environment: Any, split: str) -> list[dict[str, Any]]:
    train, evaluation = environment.build_dataset(), environment.build_eval_dataset()
    if evaluation is None:
        held_out = split == "eval"
        return [one for at, one in enumerate(train) if (at % HELD_OUT == HELD_OUT - 1) == held_out]
    if split == "eval":
        return list(evaluation)
    if train is None:
        raise InputError(f"verifiers environment {environment.env_id!r} has no dataset to train on, only eval_dataset")
    return list(train)


def _task(environment: Any, split: str, at: int, row: dict[str, Any]) -> Task:
    where = f"verifiers environment {environment.env_id!r}, {split} row {at}"
    info = json.loads(row["info"]) if isinstance(row.get("info"), str) and row["info"] else row.get("info")
    if isinstance(info, dict) and info.get("tool_defs"):
        raise InputError(f"{where}: it brings tools of its own (info['tool_defs']); all tasks must share theirs")
    try:
        kept = json.loads(json.dumps(row, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: it is no JSON: {error}") from None
    answer = kept.get("answer")
    return Task(
        id=f"{environment.env_id}-{split}-{at}",
        world=WORLD,
        prompt=_prompt(environment, kept["prompt"], where),
        setup={"row": kept},
        answer=None if answer in (None, "") else answer,
        template=environment.env_id,
    )


def _prompt(environment: Any, messages: Any, where: str) -> str:
    """The user's text; the environment's system prompt is the world's instructions."""
    from verifiers.utils.message_utils import normalize_messages

    said = [(one.role, one.content) for one in normalize_messages(messages, field_name="prompt")]
    if said[:1] == [("system", environment.system_prompt)]:
        said = said[1:]
    if len(said) != 1 or said[0][0] not in ("user", "text") or not isinstance(said[0][1], str):
        roles = ", ".join(role for role, _ in said)
        raise InputError(f"{where}: a prompt is the environment's system prompt and one user text, found {roles}")
    return said[0][1]
