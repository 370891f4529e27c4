"""The contamination scan: which items of a corpus give away tasks of an evaluation, and where.

Four signs, each a reason of its own in the verdict:

- `canary`: a string that stands in a sealed pool and nowhere else; of any pool, also one that is not known here.
- `same text`: an item is the prompt, but for case, spacing and forms of Unicode.
- `verbatim run`: 13 words in a row are those of a task (Brown et al. 2020, appendix C); half of a shorter text.
- `overlap`: in one stretch of the item, the weighed share of a task's runs of 2 tokens is high. The stretch is
  found by runs of 5 tokens with numbers masked; order, numbers, and missing parts change the share little.

Questions of fewer than 16 words are also found by their names alone, in another order or cut short (`short_questions`);
the signs are then `overlap` and `verbatim run`.

Template wording weighs nothing (`leak_index`), so siblings of one template are not taken for leaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from quintain.curation.inverted import Inverted
from quintain.curation.leak_index import PAIR, SEED, LeakIndex, Part
from quintain.curation.pools import Manifest, canaries, plain
from quintain.curation.short_questions import in_another_order, longest_cut
from quintain.curation.tokens import Positions, Tokens, grams, tokenize
from quintain.interface.errors import InputError

Reason = Literal["canary", "same text", "verbatim run", "overlap"]

BATCH = 1 << 18
"""Characters looked at together: the arrays stay in the processor's cache."""
UNKNOWN = ""
"""Name of the pool of a canary that none of the known ones has."""
LONGEST_PROMPT = 1 << 14
"""Longer texts are not held against the hashes of sealed prompts."""
STRICT_BELOW, LOOSE_FROM = 8, 20
"""A part of up to 8 words has to match in full; from 20 words on a share of `LOOSE` is enough."""
STRICT, LOOSE = 0.98, 0.5
WORTH_A_LOOK = 0.1
"""Share of a part's runs of 5 tokens below which a stretch is not compared any further."""


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of a corpus: a document, a statement, a prompt, a tool result.

    Attributes:
        where: file and place, for a person.
        text: what is scanned.
    """

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """An item that gives a task away.

    Attributes:
        where: the item.
        pool: the pool; `UNKNOWN` for a canary of none of those compared.
        task: id of the task; empty for one of a pool that stays sealed.
        field: `prompt`, `answer` or `canary`.
        reason: the sign.
        share: weighed share of the part that was found, in [0, 1].
        found: the stretch of the item.
        original: the task's text.
    """

    where: str
    pool: str
    task: str
    field: str
    reason: Reason
    share: float
    found: str
    original: str

    def refusal(self, who: str) -> InputError:
        """What is said where `who` would learn from it."""
        pool = f"the sealed pool {self.pool!r}" if self.pool != UNKNOWN else "a sealed pool"
        return InputError(
            f"{who}: {self.where} holds a task of {pool} ({self.reason}); "
            "evaluation data is never learnt from: take it out"
        )


@dataclass(frozen=True, slots=True)
class Scanned:
    """What came of one batch of items.

    Attributes:
        items: how many there were.
        bytes: of their text, as UTF-8.
        findings: in the order of the items.
    """

    items: int
    bytes: int
    findings: list[Finding]


class Scanner:
    """Scans a stream of items.

    Args:
        index: of the tasks.
        sealed: manifests of pools that stay closed: their canaries and prompts are recognised all the same.
    """

    def __init__(self, index: LeakIndex, sealed: Sequence[Manifest] = ()) -> None:
        self.index = index
        self.sealed = sealed
        self._prompts = {plain(task.prompt): (task, pool) for pool, tasks in index.pools.items() for task in tasks}
        self._longest = max((len(text) for text in self._prompts), default=0)

    def scan(self, items: Iterable[Item]) -> Iterator[Finding]:
        """Findings in the order of the items; memory stays the same however long the stream is."""
        for batch in batches(items):
            yield from self.batch(batch).findings

    def batch(self, items: Sequence[Item]) -> Scanned:
        """Scans one batch; others change nothing about it."""
        found = [one for item in items for one in self._plain_signs(item)]
        found += self._overlaps(items)
        best: dict[tuple[str, str, str], Finding] = {}
        for one in found:
            best.setdefault((one.where, one.pool, one.task), one)
        return Scanned(len(items), sum(_size(one.text) for one in items), list(best.values()))

    def _plain_signs(self, item: Item) -> Iterator[Finding]:
        for canary in canaries(item.text):
            pool = next((one.name for one in self.sealed if one.canary == canary), UNKNOWN)
            yield Finding(item.where, pool, "", "canary", "canary", 1.0, canary, canary)
        for manifest in self.sealed:
            if len(item.text) <= LONGEST_PROMPT and manifest.owns(item.text):
                yield Finding(item.where, manifest.name, "", "prompt", "same text", 1.0, item.text, "(sealed)")
        if len(item.text) <= 2 * self._longest and (known := self._prompts.get(plain(item.text))):
            task, pool = known
            yield Finding(item.where, pool, task.id, "prompt", "same text", 1.0, item.text, task.prompt)

    def _overlaps(self, items: Sequence[Item]) -> Iterator[Finding]:
        tokens = tokenize([item.text for item in items])
        by_seeds = _stretches(tokens, self.index.seeds, SEED, self.index.reach, WORTH_A_LOOK)
        by_name = _stretches(tokens, self.index.names, 1, self.index.reach, STRICT)
        by_name = by_name[self.index.pieces.held(tokens.masked, *by_name[:, [0, 2, 3]].T)]
        for compare, stretches in ((_compare, by_seeds), (_compare_short, by_name)):
            for number, text, begin, end in stretches.tolist():
                part = self.index.parts[number]
                found = compare(part, tokens, begin, end)
                if found is not None:
                    known = (items[text].where, part.pool, part.task.id, part.field, *found)
                    yield Finding(*known, tokens.excerpt(begin, end - 1), part.text)


def _stretches(tokens: Tokens, index: Inverted, n: int, reach: Positions, least: float) -> Positions:
    """Part, text, first token and end of every stretch of a text in which enough of a part lies together `[S, 4]`."""
    at, part, share = index.lookup(grams(tokens.masked, n))
    text = tokens.text_of(at)
    within = text == tokens.text_of(at + n - 1)
    order = np.lexsort((at[within], part[within], text[within]))
    at, part, share, text = (one[within][order] for one in (at, part, share, text))
    if not len(at):
        return np.empty((0, 4), np.int64)
    begins = np.concatenate(([True], (np.diff(text) != 0) | (np.diff(part) != 0) | (np.diff(at) > reach[part[1:]])))
    first = np.flatnonzero(begins)
    last = np.concatenate((first[1:], [len(at)])) - 1
    worth = np.add.reduceat(share, first) >= least
    part, text, first, last = (one[worth] for one in (part[first], text[first], at[first], at[last]))
    slack = np.maximum(SEED, reach[part] - (last - first))  # for wording, and for pieces of a reordered text
    begin = np.maximum(tokens.bounds[text], first - slack)
    end = np.minimum(tokens.bounds[text + 1], last + SEED + slack)
    return np.stack((part, text, begin, end), axis=1)


def _compare(part: Part, tokens: Tokens, begin: int, end: int) -> tuple[Reason, float] | None:
    """Why a stretch of tokens gives a part away, and the share of it that was found; None if it does not."""
    pairs = set(grams((tokens.raw if part.exact else tokens.masked)[begin:end], PAIR).tolist())
    # Of the content alone: siblings share the rest. Of all: a document on the task's subject has some of the content.
    share = min(sum(one[run] for run in one.keys() & pairs) for one in (part.pairs, part.content))
    if not part.long.isdisjoint(grams(tokens.raw[begin:end], part.run).tolist()):
        return "verbatim run", round(share, 3)
    return ("overlap", round(share, 3)) if share >= needed(part) else None


def _compare_short(part: Part, tokens: Tokens, begin: int, end: int) -> tuple[Reason, float] | None:
    """The same for a stretch that holds all tokens of a piece of a short question."""
    assert part.short is not None
    if in_another_order(part.short, tokens.masked[begin:end].tolist()):
        return "overlap", 1.0
    mark = part.short.end
    cut = longest_cut(
        part.short, tokens.raw[begin:end].tolist(), lambda at: mark in tokens.excerpt(begin + at, begin + at)
    )
    return ("verbatim run", round(cut / part.length, 3)) if cut else None


def needed(part: Part) -> float:
    """Share of a part that has to be found: all of a short one, less of a long one (as `decon` does)."""
    if part.whole:
        return STRICT
    slope = (part.words - STRICT_BELOW) / (LOOSE_FROM - STRICT_BELOW)
    return STRICT + (LOOSE - STRICT) * min(1.0, max(0.0, slope))


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The stream in the pieces that are scanned together."""
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.text) + 1
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size(text: str) -> int:
    """Bytes as UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
