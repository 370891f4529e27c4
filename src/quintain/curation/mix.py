"""The mix: which of the fit episodes are kept. Works on a few numbers an episode, never on its content."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quintain.curation.config import CurationConfig
from quintain.interface.episode import Episode
from quintain.interface.failures import recovered
from quintain.interface.tasks import tag_value

UNDETERMINED = "und"
"""Language of an episode without a `lang:` tag (ISO 639-2)."""

KEPT = ""

Numbers = NDArray[np.int64]


def family_of(episode: Episode) -> str:
    """World and template: what a kind of tasks has in common."""
    return f"{episode.world}/{episode.template}"


def language_of(episode: Episode) -> str:
    """The tag `lang:...` of its task."""
    found = tag_value(episode.tags, "lang:")
    return UNDETERMINED if found is None else found


@dataclass(slots=True)
class Candidates:
    """Fit episodes as columns of numbers, 34 bytes each.

    Attributes:
        families: names of the families, by number.
        languages: names of the languages, by number.
    """

    seed: int
    families: dict[str, int] = field(default_factory=dict)
    languages: dict[str, int] = field(default_factory=dict)
    _family: array[int] = field(default_factory=lambda: array("q"))
    _language: array[int] = field(default_factory=lambda: array("q"))
    _success: array[int] = field(default_factory=lambda: array("b"))
    _cluster: array[int] = field(default_factory=lambda: array("q"))
    _draw: array[int] = field(default_factory=lambda: array("q"))
    _chosen: array[int] = field(default_factory=lambda: array("b"))

    def add(self, episode: Episode, *, chosen: bool = False) -> None:
        """Notes one episode; one that a person has chosen comes before all others of its group."""
        self._family.append(self.families.setdefault(family_of(episode), len(self.families)))
        self._language.append(self.languages.setdefault(language_of(episode), len(self.languages)))
        self._success.append(recovered(episode))
        self._cluster.append(_number(episode.cluster))
        self._draw.append(_number(f"{self.seed}/{episode.id}"))
        self._chosen.append(chosen)

    def __len__(self) -> int:
        return len(self._draw)

    def choose(self, config: CurationConfig) -> list[str]:
        """For each episode, in order, `KEPT` or the reason it is left out.

        Caps per cluster come first, then the balance of families, of languages, and at last the share of failures and
        the size. What is left out is drawn by a hash of seed and episode id, so the order of the data plays no part;
        what a person has chosen is the last to go.
        """
        self_cluster, success = _numbers(self._cluster), _numbers(self._success)
        draw = np.empty(len(self), dtype=np.int64)
        draw[np.lexsort((_numbers(self._draw), 1 - _numbers(self._chosen)))] = np.arange(len(self))
        reasons = np.full(len(self), KEPT, dtype=object)

        def drop(out: NDArray[np.bool_], reason: str) -> None:
            reasons[out & (reasons == KEPT)] = reason

        drop(_rank(self_cluster, draw, reasons == KEPT) >= config.cluster_cap, "cluster_cap")
        for column, reason in ((self._family, "family_balance"), (self._language, "language_balance")):
            group = _numbers(column)
            drop(_rank(group, draw, reasons == KEPT) >= _limits(group, reasons == KEPT, config.balance), reason)
        alive = reasons == KEPT
        successes, failures = shares(
            int((alive & (success == 1)).sum()), int((alive & (success == 0)).sum()), config.failure_share, config.size
        )
        place = _rank(success, draw, alive)
        drop((success == 0) & (place >= failures), "failure_share")
        drop((success == 1) & (place >= successes), "size")
        return list(reasons)


def shares(successes: int, failures: int, share: float, size: int | None) -> tuple[int, int]:
    """How many successes and failures are kept, so that failures make up at most `share` and all at most `size`."""
    if size is not None:
        successes = min(successes, round(size * (1 - share)))
    return successes, min(failures, round(successes * share / (1 - share)))


def _limits(group: Numbers, alive: NDArray[np.bool_], balance: float) -> Numbers:
    """For each episode, how many of its group may stay `[N]`."""
    counts = np.bincount(group[alive], minlength=int(group.max(initial=0)) + 1).astype(float)
    mean = counts.sum() / max(1, np.count_nonzero(counts))
    over = counts > mean
    counts[over] = np.ceil(mean * (counts[over] / mean) ** (1 - balance))
    return counts.astype(np.int64)[group]


def _rank(group: Numbers, draw: Numbers, alive: NDArray[np.bool_]) -> Numbers:
    """Place of each living episode among those of its group, by draw, from 0 `[N]`; 0 for the others."""
    places = np.zeros(len(group), dtype=np.int64)
    order = np.flatnonzero(alive)
    order = order[np.lexsort((draw[order], group[order]))]
    begins = np.flatnonzero(np.r_[True, group[order][1:] != group[order][:-1]]) if len(order) else order
    lengths = np.diff(np.r_[begins, len(order)])
    places[order] = np.arange(len(order)) - np.repeat(begins, lengths)
    return places


def _numbers(column: array[int]) -> Numbers:
    return np.array(column, dtype=np.int64)


def _number(text: str) -> int:
    """A whole number of 64 bits, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)
