"""What of an evaluation's tasks would give them away: runs of 5 tokens, weighed by how few tasks share them.

The design follows `decon` (allenai/decon, `doc/simple.md`): an inverted index over the evaluation only,
while the corpus streams past; runs weighed by inverse document frequency; short texts need a fuller match.
What differs: documents are counted by *cluster*, and a run that tasks of several clusters share **within one
template** is the template's wording and weighs nothing. Tasks made by one template share their wording by
design, in training and in evaluation. Short texts have an index of single tokens beside it (`short_questions`).
Numbers are alike, so that a changed one hides no leak; where they alone tell tasks of a template apart, they count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from quintain.curation.inverted import Inverted, Weights
from quintain.curation.pieces import Pieces
from quintain.curation.short_questions import ShortQuestion, short_question
from quintain.curation.tokens import NUMBER, Hashes, grams, tokenize
from quintain.interface.tasks import Task

SEED = 5
"""Tokens of a run that starts a comparison."""
PAIR = 2
"""Tokens of the runs compared then: short, so that order, numbers and missing parts matter little."""
LONG = 13
"""Words in a row whose verbatim copy is a leak by itself (Brown et al. 2020, appendix C)."""
HALVED_FROM = 16
"""From this many words on, half of the text is enough. In shorter ones 8 words are a template's wording too often."""
WORDING = 3
"""Clusters of one template that share a run make it wording; two may be copies of one another."""
LEAST_CONTENT = 0.25
"""A part with a smaller share of runs of its own is compared by all of them, and has to match fully."""
ANSWER_TOKENS = 16
"""Texts in answers are indexed from this length on: shorter ones are facts, which a corpus may state."""


@dataclass(frozen=True, slots=True)
class Part:
    """One text of a task.

    Attributes:
        task: its task.
        pool: name of the pool.
        field: `prompt` or `answer`.
        text: the text itself.
        length: its tokens.
        words: its words; two characters of a script without spaces count as one.
        pairs: shares of its runs of 2 tokens, wording included.
        content: shares of its runs of 2 tokens that are not wording.
        seeds: shares of its runs of 5 tokens that are not wording.
        run: tokens of a verbatim run that is a leak by itself.
        long: hashes of its runs of that length that hold content.
        whole: nearly all of it is wording, so only a full match counts.
        exact: its template has the same text with other numbers, so those of `pairs` and `content` are not alike.
        names: shares of what tells a short text from others of its template: its single tokens that are not wording or,
            where there are none (names of common characters), the rarest token of its pairs that are not.
        short: how a short text is compared beside its runs; None for others.
    """

    task: Task
    pool: str
    field: str
    text: str
    length: int
    words: float
    pairs: Weights
    content: Weights
    seeds: Weights
    run: int
    long: frozenset[int]
    whole: bool
    exact: bool
    names: Weights
    short: ShortQuestion | None


class LeakIndex:
    """Where the parts of pools may stand in a text.

    Args:
        pools: tasks by the name of their pool.
        siblings: other tasks the same generator made, for training: they show what is a template's wording.

    Attributes:
        pools: as given.
        parts: every indexed text.
        reach: tokens of each part.
        seeds: the parts by their runs of 5 tokens.
        names: short parts by the single tokens of their names.
        pieces: what of them a text has to hold.
    """

    def __init__(self, pools: Mapping[str, Sequence[Task]], siblings: Sequence[Task] = ()) -> None:
        self.pools = pools
        sources = [_Source(task, pool, *text) for pool in pools for task in pools[pool] for text in _texts(task)]
        others = [_Source(task, "", "prompt", task.prompt) for task in siblings]
        self.parts = _parts(sources + others)[: len(sources)]
        self.reach = np.array([part.length for part in self.parts], np.int64)
        self.seeds = Inverted([part.seeds for part in self.parts])
        self.names = Inverted([part.names for part in self.parts])
        self.pieces = Pieces([part.short.pieces if part.short else () for part in self.parts])


@dataclass(frozen=True, slots=True)
class _Source:
    task: Task
    pool: str
    field: str
    text: str


def _parts(sources: Sequence[_Source]) -> list[Part]:
    tokens = tokenize([source.text for source in sources])
    spans = list(pairwise(tokens.bounds.tolist()))
    masked = [tokens.masked[first:last] for first, last in spans]
    _, _, seeds, whole = _weigh([grams(one, SEED).tolist() for one in masked], sources)
    pairs, own_pairs, content, _ = _weigh([grams(one, PAIR).tolist() for one in masked], sources)
    # where runs of 5 leave something to look for, wording alone is no match: a sibling has as much of it
    content = [
        own if own and not all_of_it else one for own, all_of_it, one in zip(own_pairs, whole, content, strict=True)
    ]
    singles, own_singles, _, _ = _weigh([grams(one, 1).tolist() for one in masked], sources)
    names = {1: own_singles, PAIR: own_pairs}
    exact = _told_apart_by_numbers(masked, sources)
    number_only = {n: set(grams(np.full(n, NUMBER), n).tolist()) for n in names}
    parts = []
    for number, (first, last) in enumerate(spans):
        source, words = sources[number], float(tokens.words[first:last].sum())
        run = _run_tokens(last - first, words)
        long = _long_runs(tokens.raw[first:last], masked[number], {} if whole[number] else seeds[number], run)
        if exact[number]:
            raw_pairs = Counter(grams(tokens.raw[first:last], PAIR).tolist())
            pairs[number] = content[number] = _shares({run: float(count) for run, count in raw_pairs.items()})
        counted = (pairs[number], content[number], seeds[number])
        found = (last - first, words, *counted, run, long, whole[number], exact[number])
        own = {n: _without(one[number], number_only[n]) for n, one in names.items()} if words < HALVED_FROM else {}
        size = next((n for n, one in own.items() if one), 0)
        places = np.flatnonzero(np.isin(grams(masked[number], size), list(own[size]))).tolist() if size else []
        short = short_question(source.text, tokens.raw[first:last].tolist(), masked[number].tolist(), places, size)
        named = own[1] or _rarest(singles[number], masked[number], places) if short else {}
        parts.append(Part(source.task, source.pool, source.field, source.text, *found, named, short))
    return parts


def _told_apart_by_numbers(masked: Sequence[Hashes], sources: Sequence[_Source]) -> list[bool]:
    """Which texts are with other numbers those of further clusters of their template."""
    keys = [(one.tobytes(), source.task.template) for one, source in zip(masked, sources, strict=True)]
    held = {(key, source.task.cluster) for key, source in zip(keys, sources, strict=True)}
    clusters = Counter(key for key, _ in held)
    return [clusters[key] >= WORDING and NUMBER in one for key, one in zip(keys, masked, strict=True)]


def _rarest(singles: Weights, masked: Hashes, places: Sequence[int]) -> Weights:
    """The rarest token of the pairs at these places, with the share 1: whatever holds all of them holds it."""
    tokens = grams(masked, 1)
    held = {int(tokens[at + offset]) for at in places for offset in range(PAIR)}
    return {max(held, key=singles.__getitem__): 1.0}


def _weigh(
    runs: Sequence[Sequence[int]], sources: Sequence[_Source]
) -> tuple[list[Weights], list[Weights], list[Weights], list[bool]]:
    """Shares of every text's runs, of its own runs, which are not wording, of what counts, and who is all wording.

    What counts are a text's own runs, or all of one that is nearly all wording.
    """
    tasks = [source.task for source in sources]
    held = {(run, task.template, task.cluster) for found, task in zip(runs, tasks, strict=True) for run in found}
    by_template = Counter((run, template) for run, template, _ in held)
    clusters = Counter(run for run, _ in {(run, cluster) for run, _, cluster in held})
    total = len({task.cluster for task in tasks})
    shares, owned, content, whole = [], [], [], []
    for found, task in zip(runs, tasks, strict=True):
        weights = {run: math.log1p(total / clusters[run]) for run in found}
        own = {run: weight for run, weight in weights.items() if by_template[run, task.template] < WORDING}
        whole.append(len(own) < LEAST_CONTENT * len(weights))
        shares.append(_shares(weights))
        owned.append(_shares(own))
        content.append(shares[-1] if whole[-1] else owned[-1])
    return shares, owned, content, whole


def _without(weights: Weights, left_out: set[int]) -> Weights:
    return _shares({run: weight for run, weight in weights.items() if run not in left_out})


def _shares(weights: Weights) -> Weights:
    total = sum(weights.values())
    return {run: weight / total for run, weight in weights.items()}


def _run_tokens(length: int, words: float) -> int:
    """Tokens of 13 words, or of half of a text of 16 to 26."""
    return math.ceil((LONG if words < HALVED_FROM else min(LONG, words / 2)) * length / max(1.0, words))


def _long_runs(raw: Hashes, masked: Hashes, seeds: Weights, n: int) -> frozenset[int]:
    """Verbatim runs of n tokens in which at least one run of 5 has weight."""
    runs = grams(raw, n)
    if not len(runs):
        return frozenset()
    weighs = np.array([run in seeds for run in grams(masked, SEED).tolist()], np.int64)
    held = np.convolve(weighs, np.ones(n - SEED + 1, np.int64), "valid") > 0
    return frozenset(runs[held].tolist())


def _texts(task: Task) -> list[tuple[str, str]]:
    """The texts of a task that would give it away, with the field they stand in."""
    answers = [text for text in _strings(task.answer) if tokenize([text]).bounds[-1] >= ANSWER_TOKENS]
    return [("prompt", task.prompt), *(("answer", text) for text in answers)]


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]
