"""Exact and near duplicates, found as episodes stream past.

Two episodes are compared by what the agent read first and what it wrote: prompt, thoughts, calls, answers. What the
tools returned is left out, so that one long page can't make two different episodes alike. A success and a failure are
never duplicates of each other, however alike they look.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator

import rensa

from quintain.interface.episode import Episode
from quintain.interface.failures import recovered

PERMUTATIONS = 64
"""Hashes of a signature: the estimate of a similarity of 0.9 has a standard error of 0.04."""

BANDS = 8
"""Bands of 8 hashes: of pairs with a similarity of 0.9 about 99 % are compared, of those with 0.5 about 3 %."""

SHINGLE = 3
"""Words in a row that make one element of the compared sets."""

REMEMBERED = 1_000_000
"""Latest episodes the index holds, about 1.2 kB each: what bounds its memory."""

SEED = 0
"""Of the hashes: the same episodes are found on every run."""

_WORD = re.compile(r"[㐀-鿿]|[^\W㐀-鿿]+|[^\w\s]")


class Duplicates:
    """Remembers what it has seen.

    Args:
        threshold: similarity from which an episode is a near duplicate; 1 finds exact copies only.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._seen: set[bytes] = set()
        self._index = {
            success: rensa.RMinHashDeduplicator(threshold, PERMUTATIONS, True, BANDS, SEED) for success in (True, False)
        }
        self._added = {True: 0, False: 0}

    def kind(self, episode: Episode) -> str:
        """`exact_duplicate`, `near_duplicate` or "" for an episode seen for the first time."""
        success = recovered(episode)
        text = f"{success}\n" + "\n".join(written(episode))
        key = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
        if key in self._seen:
            return "exact_duplicate"
        self._seen.add(key)
        if self._threshold < 1 and not self._new(shingles(text), success):
            return "near_duplicate"
        return ""

    def _new(self, elements: list[str], success: bool) -> bool:
        sketch = rensa.RMinHash(PERMUTATIONS, SEED)
        sketch.update(elements)
        index, number = self._index[success], self._added[success]
        if not index.add(str(number), sketch):
            return False
        if number >= REMEMBERED:
            index.remove(str(number - REMEMBERED))
        self._added[success] = number + 1
        return True


def written(episode: Episode) -> Iterator[str]:
    """What the agent read first and what it wrote, without observations, ids and times."""
    for message in episode.messages:
        yield message.text
    for place, turn in enumerate(episode.turns, start=1):
        action = turn.action
        yield action.thought
        for call in action.calls:
            yield f"{call.tool} {json.dumps(call.arguments, sort_keys=True, ensure_ascii=False)}"
        yield action.answer or action.summary or action.text
        if place in episode.user_messages:
            yield episode.user_messages[place].text


def shingles(text: str) -> list[str]:
    """Runs of `SHINGLE` words; a Chinese character and a punctuation mark are words of their own."""
    words = _WORD.findall(text)
    return [" ".join(words[start : start + SHINGLE]) for start in range(max(1, len(words) - SHINGLE + 1))]
