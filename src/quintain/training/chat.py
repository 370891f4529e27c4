"""Chat beside trajectories in fine-tuning: questions answered without tools, and thoughts cut to their summary.

AgentFounder (Su et al. 2025, arXiv 2509.13310) compares three ways of fine-tuning: chat first and trajectories after,
both mixed, and chat first with summarised reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from quintain.interface.dialects.base import Dialect
from quintain.interface.episode import Digests, Episode
from quintain.interface.example import Example
from quintain.interface.messages import Action, Message
from quintain.interface.sample import Sample
from quintain.interface.tools import Toolset

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])\s*(?=\S)")


def chat_examples(
    samples: Iterable[Sample], dialect: Dialect, digests: Digests, *, summarise: bool = False
) -> Iterator[Example]:
    """One example for each sample that is a question and an answer without tools; loss on the answer, thought included.

    Args:
        samples: of any kind; the others are passed over.
        dialect: writes them, with a prompt without tools.
        digests: of the interface, which every example carries.
        summarise: thoughts are cut to their first and last sentence.
    """
    no_tools = Toolset([])
    for sample in samples:
        *opening, last = sample.messages or (None,)
        said = [one for one in opening if isinstance(one, Message)]
        if not (isinstance(last, Action) and last.answer is not None and len(said) == len(opening) > 0):
            continue
        prompt, written = dialect.prompt(said, no_tools), dialect.write(_summarised(last) if summarise else last)
        yield Example(
            ids=(*prompt, *written),
            weights=(*[0.0] * len(prompt), *[1.0] * len(written)),
            source="sft:chat",
            cluster=sample.cluster,
            digests=digests,
        )


def summarised(text: str) -> str:
    """The first and the last sentence of a text: what it sets out to find, and what it finds.

    >>> summarised("The area of Chad is asked. It is 1284000 there. That of Mali is 1240192. So Chad is larger.")
    'The area of Chad is asked. So Chad is larger.'
    """
    sentences = _SENTENCE.split(text.strip())
    if len(sentences) < 3:
        return text
    space = "" if sentences[0][-1] in "。！？" else " "
    return f"{sentences[0]}{space}{sentences[-1]}"


def summarised_episode(episode: Episode) -> Episode:
    """The episode with summarised thoughts, to be written anew: without the tokens it was played with."""
    turns = tuple(replace(turn, action=_summarised(turn.action)) for turn in episode.turns)
    return replace(episode, turns=turns, segments=(), spans=())


def _summarised(action: Action) -> Action:
    return replace(action, thought=summarised(action.thought), text="", generation=None)
