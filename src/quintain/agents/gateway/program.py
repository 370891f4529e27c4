"""Agent programs: a command line, or an async function of a module."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a program is given for one episode.

    Attributes:
        prompt: the task.
        instructions: what the world tells every agent; "" for nothing.
        base_url: of the OpenAI API; the world's tools are at `base_url/tools`.
        api_key: names the episode, and ends with it.
    """

    prompt: str
    instructions: str
    base_url: str
    api_key: str


class ProgramFailed(Exception):
    """A program ended with an error; the message is the last line it wrote about it."""


class Runs(Protocol):
    """Starts a program; one run for each episode."""

    async def __call__(self, assignment: Assignment) -> str | None:
        """Runs it to its end; returns its answer, None if the model's last words are it.

        Cancelled, it has ended the program.
        """
        ...


class Command:
    """A command line: the task on standard input, the answer on standard output.

    `OPENAI_BASE_URL` and `OPENAI_API_KEY` are set, and `QUINTAIN_INSTRUCTIONS` to what the world tells every agent.

    Args:
        words: program and arguments.
        folder: where it runs.
    """

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self._words = tuple(words)
        self._folder = folder

    async def __call__(self, assignment: Assignment) -> str | None:
        """Runs it in a process group of its own, which is killed with it.

        Raises:
            ProgramFailed: it can't be started, or its exit code is not 0.
        """
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=self._folder,
                env=_environment(assignment),
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramFailed(f"{self._words[0]}: {error.strerror}") from None
        try:
            written, complaint = await process.communicate(assignment.prompt.encode())
        finally:
            _end(process.pid)
            await process.wait()
        if process.returncode:
            lines = complaint.decode(errors="replace").strip().splitlines() or ["it says nothing"]
            raise ProgramFailed(f"{self._words[0]} ended with exit code {process.returncode}: {lines[-1]}")
        return written.decode(errors="replace").strip() or None


class Function:
    """An async function of one `Assignment`, run in this process: fast to start, and it must not block.

    Args:
        function: returns the answer, or None.
    """

    def __init__(self, function: Callable[[Assignment], Awaitable[str | None]]) -> None:
        self._function = function

    async def __call__(self, assignment: Assignment) -> str | None:
        """Awaits it.

        Raises:
            ProgramFailed: it returns something else.
        """
        answer = await self._function(assignment)
        if not isinstance(answer, str | None):
            raise ProgramFailed(f"the program must return a text or None, found {type(answer).__name__}")
        return answer


def _environment(assignment: Assignment) -> dict[str, str]:
    own = {
        "OPENAI_BASE_URL": assignment.base_url,
        "OPENAI_API_KEY": assignment.api_key,
        "QUINTAIN_INSTRUCTIONS": assignment.instructions,
    }
    direct = {key: ",".join(filter(None, [os.environ.get(key), "127.0.0.1"])) for key in ("NO_PROXY", "no_proxy")}
    return os.environ | own | direct


def _end(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:  # it has ended, and left nobody behind
        return
