"""The dialects, by name."""

from __future__ import annotations

from quintain.interface.canonical import digest
from quintain.interface.dialects.base import Codec, Dialect
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.dialects.deepseek import DeepSeek
from quintain.interface.dialects.hermes import Hermes, HermesCompact
from quintain.interface.dialects.lines import Lines
from quintain.interface.dialects.text import TextDialect
from quintain.interface.errors import InputError

__all__ = ["NAMES", "Codec", "Dialect", "TokenizerCodec", "digest_of", "get"]

_DIALECTS: dict[str, type[TextDialect]] = {kind.id: kind for kind in (Hermes, HermesCompact, Lines, DeepSeek)}

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
    return _kind(f"{name}-compact" if compact_docs and not name.endswith("-compact") else name)(codec)


def digest_of(name: str) -> str:
    """Digest of a dialect's id and version, without a tokenizer.

    Raises:
        InputError: there is no such dialect.
    """
    kind = _kind(name)
    return digest({"id": kind.id, "version": kind.version})


def _kind(name: str) -> type[TextDialect]:
    if name not in _DIALECTS:
        raise InputError(f"no dialect {name!r}; dialects: {', '.join(NAMES)}")
    return _DIALECTS[name]
