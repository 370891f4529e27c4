"""What an engine takes and gives: token ids in, token ids out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next tokens are drawn.

    Attributes:
        max_tokens: upper bound of generated tokens, the stop token included.
        temperature: 0 takes the most probable token.
        top_p: smallest set of tokens whose probability reaches this is kept (1 = all).
        top_k: this many most probable tokens are kept (0 = all).
        stop: generation ends after one of these token ids (it is part of the result).
        seed: with the session and the position, it fixes the random draws.
        grammar: what the tokens must spell, as `inference.grammar` writes it ("": anything). Nothing outside of it
            is drawn, so `logprobs` alone no longer say how likely a token was.
    """

    max_tokens: int = 128
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop: tuple[int, ...] = ()
    seed: int = 0
    grammar: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """Tokens an engine sampled, with what the trainer needs to know of them.

    Attributes:
        ids: generated token ids `[T]`, the stop token included.
        logprobs: log-probability of each id under the model at temperature 1, nothing cut `[T]`.
        sampled_logprobs: under the distribution it was really drawn from (temperature, top-p, top-k) `[T]`.
        finish: `stop` (a stop token ended it) or `length`.
        version: version of the policy's weights that produced it.
        extras: anything more an engine gives (expert routing, sampling masks).
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    sampled_logprobs: tuple[float, ...]
    finish: FinishReason
    version: int = 0
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Load:
    """How much an engine has to do.

    Attributes:
        queued: requests that wait for a place.
        kv: share of the KV cache in use, in [0, 1].
        busy: seconds in which it computed, since it began.
        up: seconds since it began.
    """

    queued: int = 0
    kv: float = 0.0
    busy: float = 0.0
    up: float = 0.0

    @property
    def idle(self) -> float:
        """Share of the time in which it had nothing to compute."""
        return 1.0 - self.busy / self.up if self.up else 0.0

    def since(self, earlier: Load) -> Load:
        """The same, with seconds from an earlier moment on."""
        return Load(self.queued, self.kv, self.busy - earlier.busy, self.up - earlier.up)


@runtime_checkable
class Engine(Protocol):
    """Generates tokens: `inference.local` in this process, `inference.vllm` in others, `inference.server` over HTTP."""

    mismatch: float
    """Largest difference, in nats, between log-probabilities of engine and trainer when last compared."""

    @property
    def version(self) -> int:
        """Version of the weights now in use; `update` raises it by one."""
        ...

    async def generate(self, ids: Sequence[int], *, session: str, group: str, sampling: Sampling) -> Generation:
        """Continues `ids`.

        A session's calls extend each other, so its KV cache stays alive between them; calls of one
        group start with the same tokens, so those are computed once.
        """
        ...

    async def release(self, session: str) -> None:
        """Forgets a session's cache."""
        ...

    async def sleep(self) -> None:
        """Frees what memory it can for the trainer, until the next call; nothing may be under way."""
        ...

    async def update(self, weights: Any, *, version: int | None = None) -> int:
        """Takes new weights once no generation is under way; returns the new version.

        Args:
            weights: a state dict to load, or, where engine and trainer share the parameters, a function that
                changes them in place.
            version: number of the new weights; by default one more than that of the last.
        """
        ...

    def close(self) -> None:
        """Ends it; whatever is under way fails."""
        ...

    def load(self) -> Load:
        """How much it has to do; nothing is known of an engine that does not say."""
        ...
