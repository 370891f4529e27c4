"""Worlds with a process of their own: `isolated = True`.

An abandoned thread that spins in Python keeps the interpreter busy for ever; a process can be killed. The episode
loop sees an `IsolatedWorld`, a stand-in whose functions block on a socket to the child that holds the real
instance. Every answer carries the position after it (snapshot and milestones), so nothing is asked between calls and
a child that dies is noticed by the call that needed it. A child runs one call at a time; ended instances leave
their child, with its imports and `shared()` resources, to the next instance of the same class.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from operator import attrgetter
from threading import Lock
from typing import Any

from quintain.harness.calls import keywords_of
from quintain.harness.world import World
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InfraError, InputError
from quintain.interface.messages import Message
from quintain.interface.tasks import Task
from quintain.interface.tools import ResultError, Tool, Toolset
from quintain.interface.view import View

KEPT = 32
"""Idle children kept per class: as many as a harness runs at once by default."""

_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from quintain.harness.isolated import serve
serve(*map(int, sys.argv[2:4]), *sys.argv[4:])
"""


@dataclass(frozen=True, slots=True)
class _Failure:
    """An exception on its way to the parent; the object itself may not survive pickling."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> _Failure:
        if not isinstance(error, Exception):  # as for a world in this process: a tool must not end the run
            return cls("RuntimeError", f"{type(error).__name__}: {error}")
        known = next((base for base in _KNOWN if isinstance(error, base)), type(error))
        return cls(known.__name__, str(error))

    def error(self) -> Exception:
        known = next((base for base in _KNOWN if base.__name__ == self.kind), None)
        made: type[Exception] = known or type(self.kind, (Exception,), {})
        return made(self.text)


_KNOWN: tuple[type[Exception], ...] = (InfraError, InputError, ResultError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class _Position:
    """Where a world stands after a call; with its tools where they are new."""

    state: bytes | None
    milestones: Mapping[str, bool]
    tools: list[dict[str, Any]] | None


class _Host:
    """The child's side: one instance of the world at a time."""

    def __init__(self, world_class: type[World]) -> None:
        self._world_class = world_class
        self._new_tools: list[dict[str, Any]] | None = None
        self._loop = asyncio.new_event_loop()

    def answer(self, what: str, arguments: tuple[Any, ...]) -> tuple[Any, _Position | _Failure | None]:
        """The value and the position after it, or what went wrong with either."""
        value = _caught(lambda: getattr(self, what)(*arguments))
        return value, _caught(self._position) if self._world is not None else None

    def make(self, arguments: tuple[Any, ...], options: dict[str, Any], seed: int) -> None:
        self._task: Task | None = None
        self._world: World | None = None
        self._world = self._world_class(*arguments, **options)
        self._world.seed = seed
        self._toolset = self._world.toolset()

    def reset(self, task: Task) -> None:
        self._task = task
        self._finish(self._instance.reset(task))
        self._renew_tools()

    def restore(self, state: bytes) -> None:
        self._instance.restore(state)
        self._renew_tools()

    def look(self, task: Task) -> None:
        self._task = task

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        one = self._toolset[name]
        assert one.function is not None
        return one.to_json(self._finish(one.function(**keywords_of(one, arguments))))

    def verify(self, task: Task, episode: Episode) -> Any:
        return self._finish(self._instance.verify(task, episode))

    def user(self, view: View) -> Any:
        said = self._finish(self._instance.user(replace(view, toolset=self._toolset)))
        self._renew_tools()
        return said

    def close(self) -> None:
        world, self._world = self._instance, None
        self._finish(world.close())

    def _renew_tools(self) -> None:
        if self._instance.tools_per_task:
            self._toolset = self._instance.toolset()
            self._new_tools = [one.spec() | {"read_only": one.read_only} for one in self._toolset]

    @property
    def _instance(self) -> World:
        assert self._world is not None
        return self._world

    def _finish(self, value: Any) -> Any:
        return self._loop.run_until_complete(value) if asyncio.iscoroutine(value) else value

    def _position(self) -> _Position:
        world = self._instance
        state = world.snapshot() if world.snapshots == "exact" else None
        tools, self._new_tools = self._new_tools, None
        return _Position(state, dict(world.milestones(self._task)) if self._task else {}, tools)


def _caught(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except BaseException as error:
        return _Failure.of(error)


def serve(descriptor: int, lifeline: int, module: str, name: str) -> None:
    """A child's main: answers requests until the parent hangs up."""
    for inherited in (descriptor, lifeline):
        os.set_inheritable(inherited, False)
    # When the parent dies, however it dies, the kernel ends this whole group, whatever it is busy with.
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)
    host = _Host(attrgetter(name)(import_module(module)))
    connection = socket.socket(fileno=descriptor)
    requests = connection.makefile("rb")
    while requests.peek(1):
        connection.sendall(pickle.dumps(host.answer(*pickle.load(requests)), pickle.HIGHEST_PROTOCOL))


class _Child:
    """The parent's side of one child process, the leader of a process group of its own."""

    def __init__(self, world_class: type[World]) -> None:
        self._name = world_class.name
        self._asking, self._ending, self._ended = Lock(), Lock(), False
        self._socket, theirs = socket.socketpair()
        self._answers = self._socket.makefile("rb")
        lifeline, self._lifeline = os.pipe()
        paths = json.dumps(sys.path)
        numbers = (str(theirs.fileno()), str(lifeline))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, paths, *numbers, world_class.__module__, world_class.__qualname__],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what a world prints is for people: it must not mix with this program's output
            pass_fds=(theirs.fileno(), lifeline),
            process_group=0,
        )
        theirs.close()
        os.close(lifeline)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, what: str, *arguments: Any) -> tuple[Any, Any]:
        """Sends a request and waits for its answer.

        Raises:
            InfraError: the child died, or was killed meanwhile.
        """
        if self._asking.locked():  # an earlier call was abandoned in there
            self.kill()
        try:
            with self._asking:
                self._socket.sendall(pickle.dumps((what, arguments), pickle.HIGHEST_PROTOCOL))
                answer: tuple[Any, Any] = pickle.load(self._answers)
                return answer
        except (EOFError, OSError, pickle.UnpicklingError):
            self.kill()
        code = self._process.returncode
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        raise InfraError(f"world {self._name!r}: its process ended {how} in {what}")

    def kill(self) -> None:
        """Kills the whole group, reaps the child and closes what led to it."""
        with self._ending:
            if self._ended:
                return
            self._ended = True
            if self._process.returncode is None:  # not reaped, so its number is still its own
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for an answer
            with self._asking:
                self._answers.close()
                self._socket.close()
                os.close(self._lifeline)


_idle: dict[type[World], list[_Child]] = {}


def _take(world_class: type[World]) -> _Child:
    """An idle child of this class, or a new one."""
    idle = _idle.setdefault(world_class, [])
    while idle:
        child = idle.pop()
        if child.alive:
            return child
        child.kill()
    return _Child(world_class)


def end_idle() -> None:
    """Ends every idle child; new ones are started when they are needed."""
    for idle in _idle.values():
        while idle:
            idle.pop().kill()


class IsolatedWorld(World):
    """Stands for an instance in a child process; see `isolate`."""

    original: type[World]
    tools: Toolset

    def __init__(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._made_from = (arguments, options)
        self._child: _Child | None = None
        self._abandoned = False
        self._task: Task | None = None
        self._position: _Position | _Failure | None = None

    def toolset(self) -> Toolset:
        """The same tools; arguments and results travel as JSON, the child holds the Python types."""
        return Toolset(
            replace(one, function=partial(self._call, one.name), arguments_model=None, result_type=None)
            for one in self.tools
        )

    def reset(self, task: Task) -> None:
        """Prepares the state for a task, in a new instance."""
        self._begin()
        self._task = task
        self._ask("reset", task)

    def restore(self, state: bytes) -> None:
        """Takes a state back, in a new instance."""
        self._begin()
        self._ask("restore", state)

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges an episode."""
        verdict: Verdict = self._ask("verify", task, episode)
        return verdict

    def user(self, view: View) -> Message | Awaitable[Message | None] | None:
        """What the user says after an answer."""
        said: Message | None = self._ask("user", replace(view, toolset=Toolset([])))
        return said

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """Sub-steps and whether each was done after the last call."""
        if self._task is None:
            self._task = task
            self._ask("look", task)
        return self._known.milestones

    def snapshot(self) -> bytes:
        """The state after the last call."""
        state = self._known.state
        assert state is not None
        return state

    def close(self) -> None:
        """Frees what `reset` took; the child waits for the next instance."""
        if self._child is not None:
            self._ask("close")
            child, self._child = self._child, None
            idle = _idle.setdefault(self.original, [])
            if len(idle) < KEPT:
                idle.append(child)
            else:
                child.kill()

    def abandon(self) -> None:
        """Kills the child, also in the middle of a call; after `close` there is none."""
        self._abandoned = True
        if self._child is not None:
            self._child.kill()

    @property
    def _known(self) -> _Position:
        if isinstance(self._position, _Failure):
            raise self._position.error()
        assert self._position is not None
        return self._position

    def _begin(self) -> None:
        if self._child is None:
            self._child = _take(self.original)
        if self._abandoned:  # while the child started
            self._child.kill()
        self._ask("make", *self._made_from, self.seed)

    def _call(self, tool: str, /, **arguments: Any) -> Any:
        return self._ask("call", tool, arguments)

    def _ask(self, what: str, *arguments: Any) -> Any:
        assert self._child is not None
        value, self._position = self._child.ask(what, *arguments)
        if isinstance(self._position, _Position) and self._position.tools is not None:
            self.tools = Toolset(Tool(**one) for one in self._position.tools)
        if isinstance(value, _Failure):
            raise value.error()
        return value


def isolate(sample: World) -> Callable[[], IsolatedWorld]:
    """A factory of worlds like this one, each in a process of its own.

    Raises:
        InputError: the class can't be imported by name, as a child must.
    """
    original = type(sample)
    place = f"{original.__module__}.{original.__qualname__}"
    if original.__module__ == "__main__" or not _importable(original):
        raise InputError(
            f"world {sample.name!r} is isolated, but a new process can't import {place}; "
            "define the class at the top level of a module of its own"
        )
    attributes = {
        "name": sample.name,
        "instructions": sample.instructions,
        "snapshots": sample.snapshots,
        "tools_per_task": sample.tools_per_task,
        "original": original,
        "tools": sample.toolset(),
    }
    if original.user is World.user:
        attributes["user"] = World.user  # nobody to ask
    return partial(type(original.__name__, (IsolatedWorld,), attributes), *sample.made_with)


def _importable(original: type[World]) -> bool:
    found: Any = sys.modules.get(original.__module__)
    for name in original.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is original
