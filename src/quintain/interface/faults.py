"""Kinds of injected faults: what the world side does on purpose, so that recovery can be learnt and measured."""

from __future__ import annotations

from typing import Literal, get_args

RefusalKind = Literal[
    "timeout",  # no answer in time
    "server_error",  # HTTP 5xx
    "rate_limit",  # HTTP 429, with a time to wait
    "permission_denied",  # the caller may not do this
    "tool_gone",  # the tool is not there any more
]
"""The tool is not run: the agent reads an error."""

DamageKind = Literal[
    "renamed_field",  # a field of the result has another name
    "missing_field",  # a field of the result is not there
    "wrong_type",  # a value of another type than promised
    "empty_result",  # nothing came back
    "truncated",  # the result stops in the middle
    "stale",  # an old copy, with old figures
]
"""The tool is run, and its result damaged."""

FaultKind = Literal[RefusalKind, DamageKind]

REFUSALS: tuple[RefusalKind, ...] = get_args(RefusalKind)
DAMAGES: tuple[DamageKind, ...] = get_args(DamageKind)
KINDS: tuple[FaultKind, ...] = (*REFUSALS, *DAMAGES)

MAY_PASS = frozenset(KINDS) - {"permission_denied", "tool_gone", "renamed_field"}
"""Kinds after which the same call once more is sensible. A tool that is gone or forbidden stays so, and a renamed
field can be read as it is."""

ALWAYS_PERMANENT = frozenset({"permission_denied", "tool_gone"})
"""Kinds that stay for the rest of the episode by their nature."""
