"""What a world is: tools, tasks and a verifier. The base class of every user's own world."""

from __future__ import annotations

import pickle
from collections.abc import Awaitable, Generator, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from quintain.interface.canonical import canonical_json, digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Message, Observation
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset
from quintain.interface.view import View

if TYPE_CHECKING:
    from quintain.harness.sandbox import Sandbox

Solution = Generator[Action, tuple[Observation, ...], None]
"""A reference solution: yields actions, is sent their observations, ends after an answer."""

_resources: dict[tuple[type, bytes], Any] = {}


class World:
    """One instance per episode, so nothing leaks between episodes.

    `reset`, the `@tool` methods, `verify`, `user` and `close` may be sync or async; a sync tool runs off
    the event loop. An exception of a tool becomes a typed error observation.

    Attributes:
        name: name of the world, as tasks spell it.
        instructions: what the system message says before the tools.
        snapshots: `exact` (state is saved and restored), `replay` (the logged calls are run again) or `none`.
        isolated: instances live in processes of their own, so that a call past its limit is killed whatever it
            does, and a crash of native code ends the call alone. Calls run one at a time, also read-only ones.
        tools_per_task: every task brings tools of its own: `toolset` is asked again after `reset`, and after each
            `user` message, which may bring more. Such worlds measure agents; the stages that learn refuse them.
        made_with: positional and named arguments the instance was made with.
    """

    # beside the attributes, and so outside of snapshots
    __slots__ = ("__dict__", "__weakref__", "_sandbox", "made_with")

    name: ClassVar[str] = ""
    instructions: ClassVar[str] = ""
    snapshots: ClassVar[Literal["exact", "replay", "none"]] = "exact"
    isolated: ClassVar[bool] = False
    tools_per_task: ClassVar[bool] = False
    seed: int = 0
    made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Remembers the arguments: a process of its own makes the instance again."""
        made = super().__new__(cls)
        made.made_with = (arguments, options)
        return made

    def __init__(self, **options: Any) -> None:
        """Takes the recipe's `[world.options]`; override it to accept some."""
        if options:
            raise TypeError(f"world {self.name!r} takes no options, found {', '.join(options)}")

    @classmethod
    def shared(cls, **options: Any) -> Any:
        """Heavy read-only resources (a search index): made once per process, kept out of snapshots."""
        return None

    @classmethod
    def resources(cls, **options: Any) -> Any:
        """The result of `shared(**options)`, made at the first call in this process."""
        key = (cls, canonical_json(options))
        if key not in _resources:
            _resources[key] = cls.shared(**options)
        return _resources[key]

    def make_sandbox(self) -> Sandbox:
        """What `sandbox` starts: bubblewrap. Returning `Unconfined()` asks for no confinement, by name.

        Raises:
            CannotConfine: this machine can't confine; the line says why and what helps.
        """
        from quintain.harness.sandbox import Bubblewrap

        return Bubblewrap()

    @property
    def sandbox(self) -> Sandbox:
        """Runs programs the agent wrote: `await self.sandbox.run(Program(source))` in an async tool.

        One per instance, started at its first use. It ends before the verdict, and with an instance that is replaced
        after a timeout or an infra error: files in its scratch folder are no part of a snapshot.
        """
        if not hasattr(self, "_sandbox"):
            self._sandbox: Sandbox = self.make_sandbox()
        return self._sandbox

    async def end_programs(self) -> None:
        """Ends every process of the sandbox, if one was started."""
        if hasattr(self, "_sandbox"):
            sandbox = self._sandbox
            del self._sandbox
            await sandbox.close()

    @property
    def random(self) -> Random:
        """A generator seeded by the episode; part of the state from its first use on."""
        if "_random" not in self.__dict__:
            self._random = Random(self.seed)
        return self._random

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Makes tasks from the world's data, for recipes without a task file.

        Args:
            split: `train` or `eval`; what is evaluated shares no content with what is trained on.
            count: number of tasks.
            seed: of the choice.
            languages: of the prompts.
            templates: names of templates, or `seen` (those of training) and `held_out`; empty takes all.
            options: the recipe's `[world.options]`.
        """
        raise InputError(f"world {cls.name!r} has no task generator; give its pools a `file`")

    @classmethod
    def corpus(cls, split: str, languages: Sequence[str], **options: Any) -> Iterable[tuple[str, str]]:
        """Titles and texts of the world's own documents on one side of its split: what synthesis may learn from.

        Args:
            split: `train` or `eval`; no document of `eval` is ever shown to a model in training.
            languages: of the documents.
            options: the recipe's `[world.options]`.
        """
        return ()

    def toolset(self) -> Toolset:
        """The tools of this instance: its `@tool` methods.

        Before `reset` a world with `tools_per_task` has those that all of its tasks share, often none.
        """
        return Toolset.of(self)

    def data_digest(self) -> str:
        """Digest of the world's data, written into every episode."""
        return digest({"world": self.name})

    def reset(self, task: Task) -> Awaitable[None] | None:
        """Prepares the state for a task."""
        return None

    def verify(self, task: Task, episode: Episode) -> Verdict | Awaitable[Verdict]:
        """Judges an episode. Runs on an instance restored from the last snapshot."""
        raise NotImplementedError(f"world {self.name!r} has no verify()")

    def close(self) -> Awaitable[None] | None:
        """Frees what `reset` took."""
        return None

    def abandon(self) -> None:
        """Ends at once, without waiting, what this instance holds outside of its process (a server, a child).

        Called when an instance is replaced, also in the middle of a call, and after `close`.
        """

    def user(self, view: View) -> Message | Awaitable[Message | None] | None:
        """What the user says after an answer; None ends the episode."""
        return None

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """Sub-steps of a task and whether each is done, read after every turn."""
        return {}

    def solution(self, task: Task) -> Solution:
        """A reference solution through the tools alone, for the oracle agent."""
        raise NotImplementedError(f"world {self.name!r} has no solution()")

    def snapshot(self) -> bytes:
        """The state as bytes: by default the instance's attributes, pickled.

        Raises:
            InputError: an attribute can't be pickled.
        """
        try:
            return pickle.dumps(self.__dict__, protocol=pickle.HIGHEST_PROTOCOL)
        except _UNPICKLABLE as error:
            culprit = next((name for name, value in self.__dict__.items() if not _pickles(value)), "?")
            raise InputError(
                f"world {self.name!r}: attribute {culprit!r} can't be saved in a snapshot ({error}); "
                'set snapshots = "replay", or override snapshot() and restore()'
            ) from None

    def restore(self, state: bytes) -> None:
        """Takes a state back. Only snapshots this process's user wrote may be given (they are pickles)."""
        self.__dict__ = pickle.loads(state)


_UNPICKLABLE = (pickle.PicklingError, TypeError, AttributeError, RecursionError)


def _pickles(value: Any) -> bool:
    try:
        pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except _UNPICKLABLE:
        return False
    return True
