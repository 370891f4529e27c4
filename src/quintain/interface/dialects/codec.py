"""A transformers fast tokenizer as the `Codec` a dialect needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.words import encodable


class TokenizerCodec:
    """Encodes with every added token switched off and decodes with every one spelled out.

    Plain text goes through a second tokenizer that has lost its added tokens, so neither `<|im_end|>` in a
    web page nor `<tool_call>` in a user's message can become the token of that name.

    Args:
        tokenizer: a transformers fast tokenizer.

    Raises:
        InputError: the tokenizer is not a fast one, or turns the plain text of an added token into that token.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise InputError(f"{type(tokenizer).__name__} is no fast tokenizer; it needs a tokenizer.json file")
        self._full = backend
        decoder = backend.get_added_tokens_decoder()
        self._added: dict[str, int] = {token.content: index for index, token in decoder.items()}
        plain = json.loads(backend.to_str()) | {"added_tokens": [], "post_processor": None}
        self._plain = type(backend).from_str(json.dumps(plain))
        self._plain.no_truncation()
        self._plain.no_padding()
        for token, index in self._added.items():
            if index in self.encode(token):
                raise InputError(f"tokenizer can't spell {token!r} as plain text, so text could forge that token")

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, in which special tokens are plain text; lone surrogates become `?`."""
        ids: list[int] = self._plain.encode(encodable(text), add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`, special tokens spelled out; an id the vocabulary lacks is skipped."""
        known = [index for index in ids if 0 <= index < 2**32]
        text: str = self._full.decode(known, skip_special_tokens=False)
        return text

    def special(self, token: str) -> int:
        """Id of a special token.

        Raises:
            InputError: the tokenizer has none of that name.
        """
        if token not in self._added:
            raise InputError(f"tokenizer has no token {token!r}; it has: {', '.join(sorted(self._added)) or 'none'}")
        return self._added[token]
