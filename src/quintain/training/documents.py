"""Samples as documents: token ids with a weight of 0 or 1 for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from quintain.interface.dialects.base import Dialect
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Message, Observation
from quintain.interface.sample import Said, Sample
from quintain.interface.tools import Toolset

_END_OF_TEXT = "<|endoftext|>"
"""What ends a text in most vocabularies; a chat model's end token ends a turn instead."""


@dataclass(frozen=True, slots=True)
class Document:
    """A tokenised sample.

    Attributes:
        source: which part of a mix it belongs to.
        ids: token ids `[T]`.
        weights: 1 where predicting the token carries loss, else 0 `[T]`.
    """

    source: str
    ids: Sequence[int]
    weights: Sequence[int]


class Reader:
    """Turns samples into documents.

    Args:
        tokenizer: of the model, a transformers fast tokenizer.
        dialect: renders conversations.
        toolsets: the tools of each world.
        skipped: counts the samples that are left out, by reason.
    """

    def __init__(self, tokenizer: Any, dialect: Dialect, toolsets: Iterable[Toolset], skipped: Counter[str]) -> None:
        self._skipped = skipped
        self._codec = TokenizerCodec(tokenizer)
        self._dialect = dialect
        self._toolsets = {one.digest: one for one in toolsets}
        own = tokenizer.get_vocab().get(_END_OF_TEXT)
        self._end = tokenizer.eos_token_id if own is None else own
        added = tokenizer("").input_ids
        self._begin = added[:1] if added and added[0] == tokenizer.bos_token_id else []

    def documents(self, samples: Iterable[Sample]) -> Iterator[Document]:
        """Every sample that can be rendered; the others are counted.

        Raises:
            InputError: a sample's calls belong to another toolset.
        """
        for sample in samples:
            self._check(sample)
            try:
                yield self._text(sample) if sample.text else self._conversation(sample)
            except ValueError:  # an action's text would not parse back to itself
                self._skipped[f"{sample.source}: can't be written in dialect {self._dialect.id}"] += 1

    def _text(self, sample: Sample) -> Document:
        """The text between the tokens that begin and end one; unlearnt parts have weight 0."""
        ids, weights = list(self._begin), [1] * len(self._begin)
        place = 0
        for start, end in (*sample.unlearnt, (len(sample.text), len(sample.text))):
            for part, weight in ((sample.text[place:start], 1), (sample.text[start:end], 0)):
                piece = self._codec.encode(part) if part else []
                ids += piece
                weights += [weight] * len(piece)
            place = end
        return Document(sample.source, [*ids, self._end], [*weights, 1])

    def _conversation(self, sample: Sample) -> Document:
        toolset = Toolset([]) if sample.toolset is None else self._toolsets[sample.toolset]
        said = list(sample.messages)
        first = next((place for place, one in enumerate(said) if not isinstance(one, Message)), len(said))
        opening = [one for one in said[:first] if isinstance(one, Message)]
        ids = list(self._dialect.prompt(opening, toolset))
        for kind, group in groupby(said[first:], type):
            ids += self._following(kind, list(group))
        return Document(sample.source, ids, [1] * len(ids))

    def _following(self, kind: type, group: list[Said]) -> list[int]:
        if kind is Observation:
            return list(self._dialect.observe([one for one in group if isinstance(one, Observation)]))
        ids: list[int] = []
        for one in group:
            ids += self._dialect.write(one) if isinstance(one, Action) else []
            ids += self._dialect.say(one) if isinstance(one, Message) else []
        return ids

    def _check(self, sample: Sample) -> None:
        if sample.toolset is not None and sample.toolset not in self._toolsets:
            now = ", ".join(f"{digest[:19]}..." for digest in self._toolsets)
            raise InputError(
                f"sample {sample.id!r} was made for toolset {sample.toolset[:19]}..., the recipe now has {now}; "
                "run its synthesis stage again"
            )
