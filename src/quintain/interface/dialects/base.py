"""What a dialect is: messages to token ids and back, token in, token out.

A turn appends tokens and never re-tokenizes what came before. So a dialect supplies the tokens that open
an agent's turn and those that carry an observation; text from tools, documents and users is encoded with
special tokens switched off, so nobody can forge a role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from quintain.interface.messages import Action, Message, Observation
from quintain.interface.tools import Toolset


@runtime_checkable
class Codec(Protocol):
    """The tokenizer, as far as a dialect needs it."""

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, in which special tokens are plain text."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`, special tokens spelled out."""
        ...

    def special(self, token: str) -> int:
        """Id of a special token.

        Raises:
            InputError: the tokenizer has none of that name.
        """
        ...


@runtime_checkable
class Dialect(Protocol):
    """How messages look as tokens for one family of models."""

    @property
    def id(self) -> str:
        """Name in the registry."""
        ...

    @property
    def version(self) -> str:
        """Raised by every change of the tokens written or of what is read."""
        ...

    @property
    def digest(self) -> str:
        """Digest of id and version."""
        ...

    @property
    def forgets(self) -> bool:
        """When a user speaks, the thoughts of all turns before are left out of what the model reads."""
        ...

    @property
    def stop(self) -> tuple[int, ...]:
        """Ids that end an agent's turn, the one `write` uses first."""
        ...

    def prompt(self, messages: Sequence[Message], toolset: Toolset) -> list[int]:
        """Ids of system, tools and user messages, up to and including those that open an agent's turn."""
        ...

    def observe(self, observations: Sequence[Observation]) -> list[int]:
        """Ids that follow an agent's end token: the observations, then those that open its next turn."""
        ...

    def say(self, message: Message) -> list[int]:
        """Ids that follow an agent's end token: what the user says, then those that open its next turn."""
        ...

    def follow(self, said: Sequence[Sequence[Observation] | Message]) -> list[int]:
        """The same for several of both, in their order."""
        ...

    def write(self, action: Action) -> list[int]:
        """Ids a perfect agent would generate for `action`, end token included.

        Raises:
            ValueError: the action holds text that would not parse back to itself.
        """
        ...

    def recall(self, ids: Sequence[int], action: Action) -> list[int]:
        """`ids`, which open a turn, and that turn as it is read once its thought is forgotten."""
        ...

    def parse(self, ids: Sequence[int], *, cut: bool, prefix: str) -> Action:
        """Reads generated ids; never raises.

        Args:
            ids: as generated, end token included if there is one.
            cut: generation stopped at its token limit.
            prefix: call ids are `prefix` + a running number.
        """
        ...
