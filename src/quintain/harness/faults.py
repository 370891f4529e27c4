"""Injected faults: trouble that the world did not make, at seeded rates, so that recovery can be learnt and measured.

A fault strikes a call whose arguments are valid. A refusal (timeout, HTTP 5xx, rate limit, permission denied, tool
gone) keeps the tool from running; damage (renamed, missing or wrong-typed fields, empty, truncated or stale results)
is done to the validated result before the agent sees it. The observation carries the fault's kind, so nobody takes it
for the world's answer or for an infra error.

What an episode meets follows from the plan, the episode's seed and the calls made so far. So a resumed or rewound
episode meets the same faults again, whatever kind of snapshots its world keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Literal, cast, get_args

from quintain.harness.calls import error_observation
from quintain.harness.damage import damaged
from quintain.interface.errors import InputError
from quintain.interface.faults import ALWAYS_PERMANENT, KINDS, REFUSALS, DamageKind, FaultKind
from quintain.interface.messages import Call, Observation, Turn
from quintain.interface.words import encodable

Wordings = Literal["train", "held_out"]

_FOREVER = -1

_SAID: dict[FaultKind, dict[Wordings, tuple[str, ...]]] = {
    "timeout": {
        "train": ("{tool} did not answer within {n} s", "TimeoutError: no reply from {tool} after {n} s"),
        "held_out": ("deadline of {n} s exceeded while waiting for {tool}", "{tool}: read timed out ({n} s)"),
    },
    "server_error": {
        "train": ("HTTP 503 Service Unavailable", "HTTP 500 Internal Server Error"),
        "held_out": (
            "502 Bad Gateway: upstream of {tool} closed the connection",
            "status 504 at {tool}",
        ),
    },
    "rate_limit": {
        "train": ("HTTP 429 Too Many Requests; Retry-After: {n}", "rate limit of {tool} reached, retry after {n} s"),
        "held_out": ("quota of {tool} used up for now; next request in {n} s", "throttled: wait {n} s before {tool}"),
    },
    "permission_denied": {
        "train": ("HTTP 403 Forbidden", "PermissionError: you may not use {tool}"),
        "held_out": ("access to {tool} was revoked", "401 Unauthorized: this account has no right to {tool}"),
    },
    "tool_gone": {
        "train": ("HTTP 410 Gone: {tool} was removed", "{tool} is no longer available"),
        "held_out": ("{tool} has been switched off", "404: there is no endpoint {tool} any more"),
    },
}


@dataclass(frozen=True)
class FaultPlan:
    """What goes wrong how often.

    Attributes:
        episodes: share of episodes in which anything may go wrong.
        rate: chance of each call in them to be struck.
        tools: the chance for single tools, by name, instead of `rate`.
        kinds: kinds of faults and how often each is drawn, relative to the others.
        permanent: share of faults that stay for the rest of the episode; others last one or two calls of the tool.
        most: faults an episode begins at most.
        wordings: which of two disjoint sets of messages and damages; what is measured should not have been seen in
            training.
        seed: of the draws, with the episode's own.

    Raises:
        InputError: a share is not from 0 to 1, or there is no such kind or set of wordings.
    """

    episodes: float = 0.4
    rate: float = 0.5
    tools: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[FaultKind, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 1.0))
    permanent: float = 0.25
    most: int = 1
    wordings: Wordings = "train"
    seed: int = 0

    def __post_init__(self) -> None:
        shares = {"episodes": self.episodes, "rate": self.rate, "permanent": self.permanent}
        for name, share in (shares | {f"tools[{tool!r}]": rate for tool, rate in self.tools.items()}).items():
            if not 0 <= share <= 1:  # also what is no number
                raise InputError(f"FaultPlan: {name} is a share from 0 to 1, found {share}")
        if not self.kinds or any(kind not in KINDS or not 0 < often < inf for kind, often in self.kinds.items()):
            known = ", ".join(KINDS)
            raise InputError(f"FaultPlan: kinds need a number above 0 each, found {dict(self.kinds)}; known: {known}")
        if self.wordings not in get_args(Wordings):
            raise InputError(f"FaultPlan: wordings are 'train' or 'held_out', found {self.wordings!r}")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault that strikes a call.

    Attributes:
        kind: what goes wrong.
        permanent: it stays for the rest of the episode.
        wordings: the set its words come from.
        seed: of everything about it that is drawn, so that a fault that stays looks the same every time.
    """

    kind: FaultKind
    permanent: bool
    wordings: Wordings
    seed: str

    @property
    def refuses(self) -> bool:
        """True if the tool is not to be run."""
        return self.kind in REFUSALS

    def refusal(self, call: Call) -> Observation:
        """What the agent reads instead of a result."""
        rng = Random(self.seed)
        words = rng.choice(_SAID[self.kind][self.wordings]).format(tool=call.tool, n=rng.randrange(2, 31))
        kind: Literal["timeout", "exception"] = "timeout" if self.kind == "timeout" else "exception"
        return replace(error_observation(call, kind, words), fault=self.kind, permanent=self.permanent)

    def damage(self, observation: Observation) -> Observation:
        """What the agent reads of a result.

        A call that failed by itself is left as it is, and so is a result that the damage does not change (an empty one
        made empty): both are the world's own answer.
        """
        if observation.error:
            return observation
        held_out = self.wordings == "held_out"
        kind, value, text = damaged(cast(DamageKind, self.kind), observation.value, Random(self.seed), held_out)
        content = encodable(text)
        if content == observation.content:
            return observation
        return replace(observation, value=value, content=content, fault=kind, permanent=self.permanent)


class FaultStream:
    """The faults of one episode, call by call.

    Args:
        plan: what goes wrong how often; None for nothing.
        seed: of the episode.
    """

    def __init__(self, plan: FaultPlan | None, seed: int) -> None:
        self._plan = plan
        self._seed = f"{plan.seed} {seed}" if plan else ""
        self._struck = plan is not None and Random(self._seed).random() < plan.episodes
        self._calls = 0
        self._begun = 0
        self._standing: dict[str, tuple[Fault, int]] = {}

    def next(self, tool: str) -> Fault | None:
        """The fault that strikes the next call, which is of `tool`; None if nothing does."""
        self._calls += 1
        if tool in self._standing:
            return self._stay(tool)
        if self._plan is None or not self._struck or self._begun >= self._plan.most:
            return None
        rng = Random(f"{self._seed} {self._calls}")
        if rng.random() >= self._plan.tools.get(tool, self._plan.rate):
            return None
        return self._begin(tool, self._plan, rng)

    def replay(self, turns: Iterable[Turn]) -> None:
        """Takes the position after these turns."""
        for turn in turns:
            for observation in turn.observations:
                if observation.error != "format":
                    self.next(observation.tool)

    def _begin(self, tool: str, plan: FaultPlan, rng: Random) -> Fault:
        self._begun += 1
        (kind,) = rng.choices(list(plan.kinds), list(plan.kinds.values()))
        permanent = rng.random() < plan.permanent or kind in ALWAYS_PERMANENT
        fault = Fault(kind, permanent, plan.wordings, f"{self._seed} {self._calls} {kind}")
        more = _FOREVER if permanent else rng.randrange(2)
        if more:
            self._standing[tool] = (fault, more)
        return fault

    def _stay(self, tool: str) -> Fault:
        fault, more = self._standing[tool]
        if more == 1:
            del self._standing[tool]
        elif more != _FOREVER:
            self._standing[tool] = (fault, more - 1)
        return fault
