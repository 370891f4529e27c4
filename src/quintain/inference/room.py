"""How many tokens may still be generated."""

from __future__ import annotations

from collections.abc import Mapping

from quintain.interface.errors import ContextFull, InputError
from quintain.interface.generation import Sampling


def room(length: int, sampling: Sampling, limits: Mapping[str, int], remedy: str) -> int:
    """How many tokens may be generated after `length`.

    Args:
        length: tokens there are.
        sampling: how many are asked for.
        limits: longest sequence, by what limits it.
        remedy: what to do where it is too short.

    Raises:
        InputError: no tokens to continue, or none asked for.
        ContextFull: they leave no room for another.
    """
    if not length:
        raise InputError("generate: no ids; a sequence needs at least one token to continue")
    if sampling.max_tokens < 1:
        raise InputError(f"generate: max_tokens is {sampling.max_tokens}, at least 1 is needed")
    for name, limit in limits.items():
        if length + 1 > limit:
            raise ContextFull(f"generate: {length} tokens + 1 to generate > {limit}, {name}; {remedy}")
    return min(sampling.max_tokens, min(limits.values()) - length)
