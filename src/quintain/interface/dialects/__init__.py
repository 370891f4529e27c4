"""The dialects, by name."""

from __future__ import annotations

from collections.abc import Callable

from quintain.interface.dialects.base import Codec, Dialect
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.dialects.deepseek import DeepSeek
from quintain.interface.dialects.hermes import Hermes, HermesCompact
from quintain.interface.errors import InputError

__all__ = ["NAMES", "Codec", "Dialect", "TokenizerCodec", "get"]

_DIALECTS: dict[str, Callable[[Codec], Dialect]] = {kind.id: kind for kind in (Hermes, HermesCompact, DeepSeek)}

NAMES = tuple(_DIALECTS)
"""Every dialect `get` knows."""


def get(name: str, codec: Codec, *, compact_docs: bool = False) -> Dialect:
    """A dialect by name.

    Args:
        name: one of `NAMES`.
        codec: the tokenizer.
        compact_docs: the variant for small models, `NAME-compact`.

    Raises:
        InputError: there is no such dialect, or the tokenizer lacks its special tokens.
    """
    wanted = f"{name}-compact" if compact_docs and not name.endswith("-compact") else name
    if wanted not in _DIALECTS:
        raise InputError(f"no dialect {wanted!r}; dialects: {', '.join(NAMES)}")
    return _DIALECTS[wanted](codec)
