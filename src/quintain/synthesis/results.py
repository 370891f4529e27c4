"""Tool results of past episodes as documents for the memory: what an agent once found need not be found again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from quintain.interface.episode import Episode
from quintain.synthesis.documents import Document


def result_documents(episodes: Iterable[Episode], tools: Collection[str], counts: Counter[str]) -> Iterator[Document]:
    """Results of tools that read documents, discarded and failed episodes included.

    Args:
        episodes: of earlier stages.
        tools: names of tools whose result is a text about their first text argument (`open(title)`).
        counts: counts errors that were passed over.
    """
    for episode in episodes:
        for turn in episode.turns:
            for call, seen in zip(turn.action.calls, turn.observations, strict=False):
                subject = next((value for value in call.arguments.values() if isinstance(value, str)), "")
                if call.tool not in tools:
                    continue
                if seen.error or seen.fault or not subject.strip():
                    counts["tool results with an error"] += 1
                    continue
                yield Document(" ".join(subject.split()), seen.content, f"episode {episode.id}")
