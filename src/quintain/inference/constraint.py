"""Keeps a generation within a grammar: llguidance says after each token which may come next."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from quintain.interface.errors import InputError, QuintainError


class Constraint:
    """How far one turn has come in its grammar.

    Args:
        matcher: at the start of the turn.
        vocabulary: number of logits.
    """

    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    def allowed(self) -> Tensor:
        """Which tokens may come next `[V]` bool; the stop token among them where the turn may end."""
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        return torch.from_numpy(bits[: self._vocabulary].astype(np.bool_))

    def advance(self, token: int) -> None:
        """Takes the token that was drawn.

        Raises:
            QuintainError: the grammar does not allow it.
        """
        if not self._matcher.consume_token(token):
            raise QuintainError(f"token {token} is outside of the grammar: {self._matcher.get_error()}")


class Grammars:
    """Grammars compiled for one tokenizer, each once.

    Args:
        tokenizer: a transformers fast tokenizer.
        vocabulary: number of the model's logits.
        stop: tokens that end a turn.

    Raises:
        InputError: llguidance is missing.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, stop: Sequence[int]) -> None:
        if find_spec("llguidance") is None:
            raise InputError("grammar-constrained calls need llguidance: pip install 'quintain[grammar]'")
        from llguidance.hf import from_tokenizer

        self._vocabulary = vocabulary
        self._tokenizer = from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=list(stop))
        self._compiled: dict[str, Any] = {}

    def begin(self, grammar: str) -> Constraint:
        """A turn under a grammar.

        Raises:
            InputError: llguidance can't compile it.
        """
        if grammar not in self._compiled:
            self._compiled[grammar] = self._compile(grammar)
        return Constraint(self._compiled[grammar].deep_copy(), self._vocabulary)

    def _compile(self, grammar: str) -> Any:
        from llguidance import LLMatcher

        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise InputError(f"grammar of the tools can't be compiled: {matcher.get_error().splitlines()[0]}")
        return matcher
